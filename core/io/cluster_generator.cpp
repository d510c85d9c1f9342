#include "core/io/cluster_generator.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "core/nearest.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMost = static_cast<std::int64_t>(TopologyDraft::kMostNodes);
__extension__ using Wide = unsigned __int128;

Link fabric_link(Rate capacity, Time latency) {
  return {"", {}, {}, LinkKind::Fabric, capacity, latency, std::nullopt, true};
}

struct Ratio {
  std::uint64_t in = 1;
  std::uint64_t out = 1;
};

Ratio read_ratio(const YamlValue& value) {
  const std::string text = value.text();
  Ratio ratio;
  const char* const end = text.data() + text.size();
  const auto in = std::from_chars(text.data(), end, ratio.in);
  bool ok = in.ec == std::errc() && in.ptr != end && *in.ptr == ':';
  if (ok) {
    const auto out = std::from_chars(in.ptr + 1, end, ratio.out);
    ok = out.ec == std::errc() && out.ptr == end;
  }
  constexpr std::uint64_t kGreatest = 1'000'000;
  if (!ok || ratio.in == 0 || ratio.out == 0 || ratio.in > kGreatest || ratio.out > kGreatest) {
    value.refuse(ErrorCode::BadValue,
                 "write what enters a leaf from below against what leaves it upwards, such as 2:1");
  }
  return ratio;
}

// What gateways are joined to: the switch, the spines, or the single leaf.
using Tops = std::vector<NodeId>;

struct Site {
  TopologyDraft& draft;
  const HostTemplate& host;
  std::uint64_t hosts;
  const Cluster& cluster;
  YamlValue origin;

  [[nodiscard]] std::string name(const char* what, std::uint64_t i) const {
    return fmt::format("{}{}{}", cluster.prefix, what, i);
  }
  NodeId add_switch(std::string name, NodeKind kind, DomainId domain) const {
    return draft.add_node({std::move(name), kind, domain, {}, {}, true}, origin);
  }
  void need_nics(const YamlValue& fabric) const {
    if (host.nics > 0) return;
    fabric.refuse(
        ErrorCode::BadTopology,
        fmt::format("hosts of template '{}' have no NICs to join; add 'nics' to it", host.name));
  }
};

void add_plain_hosts(const Site& site) {
  for (std::uint64_t i = 0; i < site.hosts; ++i) {
    add_host(site.draft, site.host, site.name("h", i), site.cluster.domain, site.origin);
  }
}

Tops add_star(const Site& site, const YamlValue& value) {
  site.need_nics(value);
  YamlMap map = value.map();
  const Time latency = map.require("latency").time();
  constexpr const char* kWhy = "all NICs of a star hang on one switch";
  map.no_effect("oversubscription", kWhy);
  map.no_effect("spines", kWhy);
  map.no_effect("rails", kWhy);
  map.no_effect("hosts_per_pod", kWhy);
  map.finish();
  site.draft.expect(1, site.hosts * site.host.nics, value);
  std::vector<NodeId> nics;
  for (std::uint64_t i = 0; i < site.hosts; ++i) {
    for (const NodeId nic :
         add_host(site.draft, site.host, site.name("h", i), site.cluster.domain, site.origin)) {
      nics.push_back(nic);
    }
  }
  const NodeId hub =
      site.add_switch(site.cluster.prefix + "switch", NodeKind::Switch, site.cluster.domain);
  for (const NodeId nic : nics) {
    site.draft.add_link_between(nic, hub, fabric_link(site.host.nic_rate, latency), value);
  }
  return {hub};
}

struct RailShape {
  std::uint64_t hosts_per_pod = 0;
  std::uint64_t pods = 0;
  std::uint64_t rails = 0;
  std::uint64_t spines = 0;
  Rate uplink;  // of each link from a leaf to a spine
  Time latency;
};

// The capacity of one leaf-spine link, which has to be a whole number of bytes per second.
Rate uplink_capacity(const Site& site, const RailShape& shape, const Ratio& ratio,
                     const YamlValue& origin) {
  const std::uint64_t ports = shape.hosts_per_pod * (site.host.nics / shape.rails);
  const Wide up = Wide{site.host.nic_rate.bytes_per_second()} * ports * ratio.out;
  const Wide parts = Wide{ratio.in} * shape.spines;
  const Wide each = up / parts;
  if (up % parts != 0) {
    origin.refuse(
        ErrorCode::BadTopology,
        fmt::format("{} NICs of {} over {}:{} cannot be shared out evenly over {} spines; "
                    "change 'spines' or 'oversubscription'",
                    ports, to_string(site.host.nic_rate), ratio.in, ratio.out, shape.spines));
  }
  if (each == 0 || each > std::numeric_limits<std::uint64_t>::max()) {
    origin.refuse(ErrorCode::BadTopology,
                  "the links between leaves and spines get no sensible "
                  "capacity; change 'spines' or 'oversubscription'");
  }
  return Rate(static_cast<std::uint64_t>(each));
}

RailShape read_rails(const Site& site, YamlMap& map) {
  RailShape shape;
  const YamlValue per_pod = map.require("hosts_per_pod");
  shape.hosts_per_pod = static_cast<std::uint64_t>(per_pod.integer(1, kMost));
  if (site.hosts % shape.hosts_per_pod != 0) {
    per_pod.refuse(ErrorCode::BadTopology,
                   fmt::format("{} hosts do not divide into pods of {}; change one of the numbers",
                               site.hosts, shape.hosts_per_pod));
  }
  shape.pods = site.hosts / shape.hosts_per_pod;
  shape.rails = site.host.nics;
  if (const auto rails = map.find("rails")) {
    shape.rails = static_cast<std::uint64_t>(rails->integer(1, site.host.nics));
    if (site.host.nics % shape.rails != 0) {
      rails->refuse(ErrorCode::BadTopology,
                    fmt::format("{} NICs a host do not divide over {} rails; change one of the "
                                "numbers",
                                site.host.nics, shape.rails));
    }
  }
  shape.latency = map.require("latency").time();
  if (shape.pods * shape.rails == 1) {
    constexpr const char* kWhy = "one pod with one rail has a single leaf, which needs no spine";
    map.no_effect("spines", kWhy);
    map.no_effect("oversubscription", kWhy);
    return shape;
  }
  const YamlValue spines = map.require("spines");
  shape.spines = static_cast<std::uint64_t>(spines.integer(1, kMost));
  const auto oversubscription = map.find("oversubscription");
  const Ratio ratio = oversubscription ? read_ratio(*oversubscription) : Ratio{};
  shape.uplink = uplink_capacity(site, shape, ratio, spines);
  return shape;
}

Tops add_rails(const Site& site, const YamlValue& value) {
  site.need_nics(value);
  YamlMap map = value.map();
  const RailShape shape = read_rails(site, map);
  map.finish();
  const std::uint64_t leaves = shape.pods * shape.rails;
  site.draft.expect(leaves + shape.spines, site.hosts * site.host.nics + leaves * shape.spines,
                    value);
  std::vector<NodeId> all_leaves;
  for (std::uint64_t p = 0; p < shape.pods; ++p) {
    const std::string pod = site.name("pod", p);
    const DomainId domain =
        site.draft.add_domain(pod, Level::Pod, site.cluster.domain, site.origin);
    std::vector<std::vector<NodeId>> nics_of_rail(shape.rails);
    for (std::uint64_t h = 0; h < shape.hosts_per_pod; ++h) {
      const std::vector<NodeId> nics = add_host(
          site.draft, site.host, site.name("h", p * shape.hosts_per_pod + h), domain, site.origin);
      for (std::size_t i = 0; i < nics.size(); ++i) {
        nics_of_rail[i % shape.rails].push_back(nics[i]);
      }
    }
    for (std::uint64_t r = 0; r < shape.rails; ++r) {
      const NodeId leaf =
          site.add_switch(fmt::format("{}.leaf{}", pod, r), NodeKind::Switch, domain);
      all_leaves.push_back(leaf);
      for (const NodeId nic : nics_of_rail[r]) {
        site.draft.add_link_between(nic, leaf, fabric_link(site.host.nic_rate, shape.latency),
                                    value);
      }
    }
  }
  std::vector<NodeId> spines;
  for (std::uint64_t s = 0; s < shape.spines; ++s) {
    spines.push_back(site.add_switch(site.name("spine", s), NodeKind::Spine, site.cluster.domain));
  }
  for (const NodeId leaf : all_leaves) {
    for (const NodeId spine : spines) {
      site.draft.add_link_between(leaf, spine, fabric_link(shape.uplink, shape.latency), value);
    }
  }
  return spines.empty() ? all_leaves : spines;
}

std::vector<NodeId> add_gateways(const Site& site, const Tops& tops, const YamlValue& value) {
  YamlMap map = value.map();
  const auto count = static_cast<std::uint64_t>(map.require("count").integer(1, 1024));
  const YamlValue rate_value = map.require("rate");
  const Rate rate = rate_value.rate(Zero::Refused);
  const Time latency = map.require("latency").time();
  map.finish();
  if (tops.empty()) {
    value.refuse(ErrorCode::BadTopology,
                 "there is no fabric for gateways to join; add 'star' or 'rail_optimised'");
  }
  if (rate.bytes_per_second() % tops.size() != 0) {
    rate_value.refuse(
        ErrorCode::BadTopology,
        fmt::format("{} cannot be shared out evenly over {} spines", to_string(rate), tops.size()));
  }
  site.draft.expect(count, count * tops.size(), value);
  std::vector<NodeId> gateways;
  for (std::uint64_t i = 0; i < count; ++i) {
    const NodeId gateway =
        site.add_switch(site.name("gw", i), NodeKind::Gateway, site.cluster.domain);
    gateways.push_back(gateway);
    for (const NodeId top : tops) {
      site.draft.add_link_between(top, gateway, fabric_link(rate / tops.size(), latency), value);
    }
  }
  return gateways;
}

}  // namespace

HostTemplates::HostTemplates(const YamlValue* section) {
  if (section == nullptr) return;
  for (const auto& [key, value] : section->map().entries()) {
    entries_.push_back({read_host_template(key.name(), value), key});
  }
}

const HostTemplate& HostTemplates::named(const YamlValue& value) {
  const std::string name = value.name();
  std::vector<std::string> known;
  for (Entry& entry : entries_) {
    known.push_back(entry.host.name);
    if (entry.host.name != name) continue;
    entry.used = true;
    return entry.host;
  }
  value.refuse(ErrorCode::UnknownName,
               fmt::format("there is no host template '{}'{}", name,
                           entries_.empty() ? "; describe it under 'hosts' at the top level"
                                            : suggestion(name, known)));
}

void HostTemplates::refuse_unused() const {
  for (const Entry& entry : entries_) {
    if (entry.used) continue;
    entry.origin.refuse(
        ErrorCode::NoEffect,
        fmt::format("no cluster uses the host template '{}'; leave it out", entry.host.name));
  }
}

std::vector<NodeId> add_cluster(TopologyDraft& draft, HostTemplates& templates, YamlMap& map,
                                const Cluster& cluster) {
  const YamlValue hosts = map.require("hosts");
  YamlMap hosts_map = hosts.map();
  const HostTemplate& host = templates.named(hosts_map.require("template"));
  const YamlValue count = hosts_map.require("count");
  const Site site{draft, host, static_cast<std::uint64_t>(count.integer(1, kMost)), cluster, hosts};
  hosts_map.finish();
  draft.expect(site.hosts * host.nodes(), site.hosts * host.links(), count);

  const auto star = map.find("star");
  const auto rails = map.find("rail_optimised");
  const auto gateways = map.find("gateways");
  if (star && rails) {
    rails->refuse(ErrorCode::BadValue, "a cluster has one fabric; keep 'star' or 'rail_optimised'");
  }
  Tops tops;
  if (star) {
    tops = add_star(site, *star);
  } else if (rails) {
    tops = add_rails(site, *rails);
  } else {
    add_plain_hosts(site);
  }
  if (!gateways) return {};
  return add_gateways(site, tops, *gateways);
}

}  // namespace holdfast
