// Names to endpoints, endpoints to replicas.
#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "core/io/scenario_update.hpp"
#include "core/nearest.hpp"

namespace holdfast {
namespace {

const char* word_for(PlacedOn on) {
  return on == PlacedOn::Gpus ? "GPU" : "host memory";
}

NodeKind kind_of(PlacedOn on) {
  return on == PlacedOn::Gpus ? NodeKind::Gpu : NodeKind::HostMemory;
}

// How the nodes that a placement may name are reached: by their own name, by their domain's, or
// both.
struct Lookup {
  const ScenarioGroup& group;
  const Topology& topology;
  NodeKind kind;
  bool nodes;
  bool domains;
  std::vector<char> chosen;                      // by node
  std::vector<std::string>* warnings = nullptr;  // if somebody wants them

  void take_node(NodeId id) { chosen[id.index()] = 1; }

  bool take_domain(DomainId id) {
    bool any = false;
    for (const NodeId node : topology.members(id)) {
      if (topology.node(node).kind == kind) {
        take_node(node);
        any = true;
      }
    }
    return any;
  }

  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const {
    throw Error(code, fmt::format("group '{}': {}", group.name.text, message),
                group.placement.place);
  }

  void take_literal(const NamePattern& pattern) {
    const std::string& name = pattern.text();
    const NodeId node = topology.find_node(name);
    const DomainId domain = topology.find_domain(name);
    if (nodes && node.valid()) {
      if (topology.node(node).kind != kind) {
        refuse(ErrorCode::BadValue,
               fmt::format("'{}' is no {} but a {}", name, word_for(group.placement.on),
                           to_string(topology.node(node).kind)));
      }
      if (!topology.node(node).up) {
        refuse(ErrorCode::BadValue, fmt::format("'{}' is down in this topology", name));
      }
      take_node(node);
      return;
    }
    if (domains && domain.valid()) {
      if (!take_domain(domain)) {
        refuse(ErrorCode::BadValue,
               fmt::format("'{}' has no {}", name, word_for(group.placement.on)));
      }
      return;
    }
    if (node.valid()) {
      refuse(ErrorCode::UnknownName,
             fmt::format("'{}' is a node, not a domain; name single GPUs under 'gpus'", name));
    }
    if (domain.valid()) {
      refuse(ErrorCode::UnknownName,
             fmt::format("'{}' is a domain, not a GPU; name domains under 'hosts'", name));
    }
    refuse(ErrorCode::UnknownName,
           fmt::format("no {} is called '{}'{}", what(), name, suggestion(pattern, known())));
  }

  void take_pattern(const NamePattern& pattern, const Place& place) {
    std::vector<std::string_view> matched;
    bool any = false;
    if (nodes) {
      const auto all = topology.nodes();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].kind == kind && pattern.matches(all[i].name)) {
          take_node(NodeId(i));
          matched.push_back(all[i].name);
          any = true;
        }
      }
    }
    if (domains) {
      const auto all = topology.domains();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (pattern.matches(all[i].name)) {
          matched.push_back(all[i].name);
          any = take_domain(DomainId(i)) || any;
        }
      }
    }
    if (matched.empty()) {
      refuse(ErrorCode::UnknownName, fmt::format("'{}' matches no {}{}", pattern.text(), what(),
                                                 suggestion(pattern, known())));
    }
    if (!any) {
      refuse(ErrorCode::BadValue, fmt::format("nothing that '{}' matches has a {}", pattern.text(),
                                              word_for(group.placement.on)));
    }
    if (warnings == nullptr) {
      return;
    }
    for (const NamePattern::Unused& unused : pattern.unused(matched)) {
      warnings->push_back(fmt::format(
          "{}: group '{}': '{}' names more than there is: no {} has {} of '{}'", to_string(place),
          group.name.text, pattern.text(), what(), unused.numbers, unused.bracket));
    }
  }

  [[nodiscard]] const char* what() const {
    if (!nodes) {
      return "domain";
    }
    return domains ? "host memory or domain" : "GPU";
  }

  [[nodiscard]] std::vector<std::string> known() const {
    std::vector<std::string> names;
    if (domains) {
      for (const Domain& domain : topology.domains()) {
        names.push_back(domain.name);
      }
    }
    if (nodes) {
      for (const Node& node : topology.nodes()) {
        if (node.kind == kind) {
          names.push_back(node.name);
        }
      }
    }
    return names;
  }
};

// A replica lies in one host or owns every chosen endpoint of the hosts that it lies in: parts of
// two hosts would be no machine that anybody runs. `replica` is sorted by host.
void refuse_straddling(const ScenarioGroup& group, std::span<const NodeId> replica,
                       const std::vector<std::uint32_t>& chosen_in, const Topology& topology) {
  const auto host_of = [&](NodeId node) { return topology.around(node, Level::Host); };
  if (host_of(replica.front()) == host_of(replica.back())) {
    return;
  }
  for (std::size_t begin = 0; begin < replica.size();) {
    const DomainId host = host_of(replica[begin]);
    std::size_t end = begin;
    while (end < replica.size() && host_of(replica[end]) == host) {
      ++end;
    }
    if (end - begin != chosen_in[host.index()]) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("group '{}': a replica of {} workers would get {} of the {} that "
                              "host '{}' gives; place whole replicas in each host, or whole hosts "
                              "in each replica",
                              group.name.text, replica.size(), end - begin, chosen_in[host.index()],
                              topology.domain(host).name),
                  group.placement.place);
    }
    begin = end;
  }
}

}  // namespace

Endpoints endpoints_of(const ScenarioGroup& group, const Topology& topology,
                       std::vector<std::string>* warnings) {
  const GroupPlacement& placement = group.placement;
  Lookup lookup{group,
                topology,
                kind_of(placement.on),
                placement.by_node || placement.on == PlacedOn::HostMemory,
                !placement.by_node || placement.on == PlacedOn::HostMemory,
                std::vector<char>(topology.nodes().size(), 0),
                warnings};
  for (std::size_t i = 0; i < placement.patterns.size(); ++i) {
    const NamePattern& pattern = placement.patterns[i];
    if (pattern.literal()) {
      lookup.take_literal(pattern);
    } else {
      lookup.take_pattern(pattern, placement.pattern_places[i]);
    }
  }
  Endpoints endpoints;
  for (std::size_t i = 0; i < lookup.chosen.size(); ++i) {
    if (lookup.chosen[i] == 0) continue;
    if (topology.nodes()[i].up) {
      endpoints.nodes.emplace_back(i);
    } else {
      ++endpoints.down;
    }
  }
  if (endpoints.down > 0 && warnings != nullptr) {
    warnings->push_back(
        fmt::format("{}: group '{}': {} of the endpoints that it is placed on are "
                    "down and left out",
                    to_string(placement.place), group.name.text, endpoints.down));
  }
  if (endpoints.nodes.empty()) {
    lookup.refuse(ErrorCode::BadValue,
                  fmt::format("every {} that it is placed on is down", word_for(placement.on)));
  }
  return endpoints;
}

std::vector<std::vector<NodeId>> replicas_of(const ScenarioGroup& group,
                                             const ScenarioLayout& layout, const Topology& topology,
                                             std::vector<std::string>* warnings) {
  auto [endpoints, left_out] = endpoints_of(group, topology, warnings);
  std::vector<std::uint32_t> chosen_in(topology.domains().size(), 0);
  for (const NodeId node : endpoints) {
    ++chosen_in[topology.around(node, Level::Host).index()];
  }
  std::stable_sort(endpoints.begin(), endpoints.end(), [&](NodeId a, NodeId b) {
    return topology.around(a, Level::Host) < topology.around(b, Level::Host);
  });
  const std::size_t size = group.placement.on == PlacedOn::HostMemory ? 1 : layout.layout.shards();
  const std::size_t fit = endpoints.size() / size;
  const std::size_t count = group.replicas.value_or(static_cast<std::uint32_t>(fit));
  if (count > fit || count == 0) {
    throw Error(
        ErrorCode::BadValue,
        fmt::format("group '{}': {} of {} workers {} {}, and it is placed on {}", group.name.text,
                    count > 1 ? fmt::format("{} replicas", count) : "a replica", size,
                    count > 1 ? "take" : "takes", std::max<std::size_t>(count, 1) * size,
                    endpoints.size()),
        group.replicas ? group.replicas_place : group.placement.place);
  }
  if (!group.replicas && endpoints.size() % size != 0) {
    throw Error(
        ErrorCode::BadValue,
        fmt::format("group '{}': {} workers{} do not divide into replicas of {}; place it on "
                    "{} or {} of them, or leave some out with 'replicas: {}'",
                    group.name.text, endpoints.size(),
                    left_out > 0 ? fmt::format(" ({} more are down)", left_out) : "", size,
                    fit * size, (fit + 1) * size, fit),
        group.placement.place);
  }
  std::vector<std::vector<NodeId>> replicas(count);
  for (std::size_t r = 0; r < count; ++r) {
    const auto begin = endpoints.begin() + static_cast<std::ptrdiff_t>(r * size);
    replicas[r].assign(begin, begin + static_cast<std::ptrdiff_t>(size));
    refuse_straddling(group, replicas[r], chosen_in, topology);
  }
  return replicas;
}

}  // namespace holdfast
