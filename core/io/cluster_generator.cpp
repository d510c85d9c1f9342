#include "core/io/cluster_generator.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/io/fat_tree.hpp"
#include "core/io/rail_fabric.hpp"
#include "core/nearest.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMost = static_cast<std::int64_t>(TopologyDraft::kMostNodes);

void add_plain_hosts(FabricSite& site) {
  for (std::uint64_t i = 0; i < site.hosts(); ++i) (void)site.add_next_host(site.domain());
}

Tops add_star(FabricSite& site, const YamlValue& value) {
  site.need_nics(value);
  YamlMap map = value.map();
  const Time latency = map.require("latency").time();
  for (const char* key : {"oversubscription", "spines", "spines_per_pod", "cores", "rails",
                          "hosts_per_pod", "hosts_per_rack"}) {
    map.no_effect(key, "all NICs of a star hang on one switch");
  }
  map.finish();
  site.draft().expect(1, site.nics(), value);
  std::vector<NicPort> ports;
  for (std::uint64_t i = 0; i < site.hosts(); ++i) {
    for (const NicPort& port : site.add_next_host(site.domain())) ports.push_back(port);
  }
  const NodeId hub = site.add_switch(site.prefix() + "switch", NodeKind::Switch, site.domain());
  for (const NicPort& port : ports) {
    site.add_fabric_link(port.nic, hub, port.rate, latency, value);
  }
  return {hub};
}

std::vector<NodeId> add_gateways(const FabricSite& site, const Tops& tops, const YamlValue& value) {
  YamlMap map = value.map();
  const auto count = static_cast<std::uint64_t>(map.require("count").integer(1, 1024));
  const YamlValue rate_value = map.require("rate");
  const Rate rate = rate_value.rate(Zero::Refused);
  const Time latency = map.require("latency").time();
  map.finish();
  if (tops.empty()) {
    value.refuse(
        ErrorCode::BadTopology,
        "there is no fabric for gateways to join; add 'star', 'rail_optimised' or 'fat_tree'");
  }
  const Rate each = rate / tops.size();  // what is left of a byte a second is dropped
  if (each == Rate(0)) {
    rate_value.refuse(ErrorCode::BadTopology,
                      fmt::format("{} leaves less than a byte a second to each of the {} switches "
                                  "on top of the fabric; write more",
                                  to_string(rate), tops.size()));
  }
  site.draft().expect(count, count * tops.size(), value);
  std::vector<NodeId> gateways;
  for (std::uint64_t i = 0; i < count; ++i) {
    const NodeId gateway = site.add_switch(site.name("gw", i), NodeKind::Gateway, site.domain());
    gateways.push_back(gateway);
    for (const NodeId top : tops) {
      site.add_fabric_link(top, gateway, each, latency, value);
    }
  }
  return gateways;
}

// The classes of hosts: one map, or a list of them.
std::vector<FabricSite::HostClass> read_host_classes(const TopologyDraft& draft,
                                                     HostTemplates& templates,
                                                     const YamlValue& hosts) {
  std::vector<FabricSite::HostClass> classes;
  std::uint64_t nodes = 0;
  std::uint64_t links = 0;
  for (const YamlValue& item : hosts.is_list() ? hosts.list() : std::vector{hosts}) {
    YamlMap map = item.map();
    const HostTemplate& host = templates.named(map.require("template"));
    const YamlValue count = map.require("count");
    classes.push_back({&host, static_cast<std::uint64_t>(count.integer(1, kMost)), item});
    map.finish();
    nodes += classes.back().count * host.nodes();
    links += classes.back().count * host.links();
    draft.expect(nodes, links, count);
  }
  if (classes.empty()) hosts.refuse(ErrorCode::BadValue, "the list is empty; add a class of hosts");
  return classes;
}

Tops add_fabric(FabricSite& site, YamlMap& map) {
  const auto star = map.find("star");
  const auto rails = map.find("rail_optimised");
  const auto tree = map.find("fat_tree");
  const YamlValue* second = nullptr;
  if (star && rails) second = &*rails;
  if ((star || rails) && tree) second = &*tree;
  if (second != nullptr) {
    second->refuse(ErrorCode::BadValue,
                   "a cluster has one fabric; keep 'star', 'rail_optimised' or 'fat_tree'");
  }
  if (star) return add_star(site, *star);
  if (rails) return add_rail_fabric(site, *rails);
  if (tree) return add_fat_tree(site, *tree);
  add_plain_hosts(site);
  return {};
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
  FabricSite site(draft, read_host_classes(draft, templates, hosts), cluster);
  const auto gateways = map.find("gateways");
  const Tops tops = add_fabric(site, map);
  if (!gateways) return {};
  return add_gateways(site, tops, *gateways);
}

}  // namespace holdfast
