#include "core/io/other_traffic.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/io/share.hpp"
#include "core/topology/capacity_share.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostEntries = 10'000;

OtherTraffic read_entry(const YamlValue& value) {
  OtherTraffic traffic;
  traffic.place = value.place();
  YamlMap map = value.map();
  if (const auto kind = map.find("kind")) {
    traffic.kind = kind->one_of<TrafficKind>({{"nic", TrafficKind::Nic},
                                              {"uplink", TrafficKind::Uplink},
                                              {"wan", TrafficKind::Wan},
                                              {"nvlink", TrafficKind::NvLink},
                                              {"pcie", TrafficKind::Pcie},
                                              {"memory", TrafficKind::Memory}});
  }
  if (const auto at = map.find("at")) {
    traffic.at = read_patterns(*at);
  }
  if (const auto links = map.find("links")) {
    traffic.links = read_patterns(*links);
  }
  const YamlValue share = map.require("share");
  traffic.share = read_share(share, Zero::Refused);
  map.finish();
  if (traffic.share == kWholeInMillionths) {
    share.refuse(ErrorCode::BadValue,
                 "other traffic with 100% of a link leaves nothing to the update; write less, or "
                 "'up: false' in the topology");
  }
  if (!traffic.kind && traffic.at.empty() && traffic.links.empty()) {
    value.refuse(ErrorCode::MissingKey,
                 "say which links: 'kind: nic' (or uplink, wan, nvlink, pcie, memory), 'at: "
                 "PATTERN' of nodes or domains, 'links: PATTERN'");
  }
  return traffic;
}

std::string quoted_list(const std::vector<PlacedPattern>& patterns) {
  std::string text;
  for (const PlacedPattern& placed : patterns) {
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", placed.pattern.text());
  }
  return text;
}

// By node: whether the patterns name it or a domain around it.
std::vector<char> named_nodes(const std::vector<PlacedPattern>& patterns, const Topology& topology,
                              std::vector<std::string>* warnings) {
  std::vector<char> named(topology.nodes().size(), 0);
  const auto nodes = topology.nodes();
  const auto domains = topology.domains();
  for (const PlacedPattern& placed : patterns) {
    std::vector<std::string_view> matched;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (placed.pattern.matches(nodes[i].name)) {
        named[i] = 1;
        matched.push_back(nodes[i].name);
      }
    }
    for (std::size_t i = 0; i < domains.size(); ++i) {
      if (placed.pattern.matches(domains[i].name)) {
        matched.push_back(domains[i].name);
        for (const NodeId node : topology.members(DomainId(i))) {
          named[node.index()] = 1;
        }
      }
    }
    if (matched.empty()) {
      std::vector<std::string> known;
      for (const Domain& domain : domains) known.push_back(domain.name);
      for (const Node& node : nodes) known.push_back(node.name);
      refuse_unknown(placed, "node or domain", known);
    }
    warn_of_unused(placed, "node or domain", matched, warnings);
  }
  return named;
}

// By link: whether one of the patterns is its name.
std::vector<char> named_links(const std::vector<PlacedPattern>& patterns, const Topology& topology,
                              std::vector<std::string>* warnings) {
  std::vector<char> named(topology.links().size(), 0);
  const auto links = topology.links();
  for (const PlacedPattern& placed : patterns) {
    std::vector<std::string_view> matched;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (placed.pattern.matches(links[i].name)) {
        named[i] = 1;
        matched.push_back(links[i].name);
      }
    }
    if (matched.empty()) {
      std::vector<std::string> known;
      for (const Link& link : links) known.push_back(link.name);
      refuse_unknown(placed, "link", known);
    }
    warn_of_unused(placed, "link", matched, warnings);
  }
  return named;
}

}  // namespace

const char* to_string(TrafficKind kind) {
  switch (kind) {
    case TrafficKind::Nic:
      return "nic";
    case TrafficKind::Uplink:
      return "uplink";
    case TrafficKind::Wan:
      return "wan";
    case TrafficKind::NvLink:
      return "nvlink";
    case TrafficKind::Pcie:
      return "pcie";
    case TrafficKind::Memory:
      return "memory";
  }
  return "unknown";
}

TrafficKind traffic_kind(const Link& link, const Topology& topology) {
  switch (link.kind) {
    case LinkKind::Wan:
      return TrafficKind::Wan;
    case LinkKind::NvLink:
      return TrafficKind::NvLink;
    case LinkKind::Pcie:
      return TrafficKind::Pcie;
    case LinkKind::Memory:
      return TrafficKind::Memory;
    case LinkKind::Fabric:
      break;
  }
  const bool nic =
      topology.node(link.a).kind == NodeKind::Nic || topology.node(link.b).kind == NodeKind::Nic;
  return nic ? TrafficKind::Nic : TrafficKind::Uplink;
}

std::string to_string(const OtherTraffic& traffic) {
  std::string text = traffic.kind ? to_string(*traffic.kind) : "links";
  if (!traffic.at.empty()) {
    text += " at " + quoted_list(traffic.at);
  }
  if (!traffic.links.empty()) {
    text += " called " + quoted_list(traffic.links);
  }
  return text;
}

std::vector<OtherTraffic> read_other_traffic(const YamlValue& value) {
  std::vector<OtherTraffic> traffic;
  const std::vector<YamlValue> items = value.list();
  if (items.empty()) {
    value.refuse(ErrorCode::BadValue,
                 "write at least one entry like '{kind: nic, share: 30%}', or leave the key away");
  }
  if (items.size() > kMostEntries) {
    value.refuse(ErrorCode::LimitExceeded,
                 fmt::format("{} entries; at most {} are read", items.size(), kMostEntries));
  }
  for (const YamlValue& item : items) {
    traffic.push_back(read_entry(item));
  }
  return traffic;
}

std::vector<LinkId> links_of(const OtherTraffic& traffic, const Topology& topology,
                             std::vector<std::string>* warnings) {
  const auto links = topology.links();
  std::vector<char> at;
  std::vector<char> called;
  if (!traffic.at.empty()) {
    at = named_nodes(traffic.at, topology, warnings);
  }
  if (!traffic.links.empty()) {
    called = named_links(traffic.links, topology, warnings);
  }
  std::vector<LinkId> chosen;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    const bool fits = (!traffic.kind || traffic_kind(link, topology) == *traffic.kind) &&
                      (at.empty() || at[link.a.index()] != 0 || at[link.b.index()] != 0) &&
                      (called.empty() || called[i] != 0);
    if (fits) {
      chosen.emplace_back(i);
    }
  }
  if (chosen.empty()) {
    throw Error(ErrorCode::BadValue,
                fmt::format("'other_traffic': this topology has no {}; `holdfast topo show` lists "
                            "what is there",
                            to_string(traffic)),
                traffic.place);
  }
  return chosen;
}

Topology without_other_traffic(const Topology& topology, std::span<const OtherTraffic> traffic,
                               std::vector<std::string>* warnings) {
  std::vector<std::uint32_t> taken(topology.links().size(), 0);
  for (const OtherTraffic& entry : traffic) {
    for (const LinkId link : links_of(entry, topology, warnings)) {
      std::uint32_t& share = taken[link.index()];
      share += entry.share;
      if (share >= kWholeInMillionths) {
        throw Error(ErrorCode::BadValue,
                    fmt::format("'other_traffic': with this entry others have {}% of link '{}'; "
                                "shares of several entries add up and must stay below 100%",
                                static_cast<double>(share) / 1e4, topology.link(link).name),
                    entry.place);
      }
    }
  }
  return beside_other_traffic(topology, taken);
}

}  // namespace holdfast
