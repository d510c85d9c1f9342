#include "core/io/rail_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/io/clos_levels.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMost = static_cast<std::int64_t>(TopologyDraft::kMostNodes);

struct Rails {
  std::uint64_t pods = 0;
  std::uint64_t hosts_per_pod = 0;
  std::uint64_t rails = 0;
};

std::uint64_t read_rail_count(const FabricSite& site, YamlMap& map) {
  const std::uint64_t nics = site.classes().front().host->nics;
  if (const auto value = map.find("rails")) {
    std::uint64_t most = 0;
    for (const auto& one : site.classes()) most = std::max<std::uint64_t>(most, one.host->nics);
    const auto rails =
        static_cast<std::uint64_t>(value->integer(1, static_cast<std::int64_t>(most)));
    site.need_even_nics(rails, "rails", *value);
    return rails;
  }
  for (const auto& one : site.classes()) {
    if (one.host->nics == nics) continue;
    map.value().refuse(
        ErrorCode::MissingKey,
        fmt::format("hosts have {} and {} NICs; write 'rails'", nics, one.host->nics));
  }
  return nics;
}

Rails read_rails(const FabricSite& site, YamlMap& map) {
  Rails shape;
  const YamlValue per_pod = map.require("hosts_per_pod");
  shape.hosts_per_pod = static_cast<std::uint64_t>(per_pod.integer(1, kMost));
  if (site.hosts() % shape.hosts_per_pod != 0) {
    per_pod.refuse(ErrorCode::BadTopology,
                   fmt::format("{} hosts do not divide into pods of {}; change one of the numbers",
                               site.hosts(), shape.hosts_per_pod));
  }
  shape.pods = site.hosts() / shape.hosts_per_pod;
  shape.rails = read_rail_count(site, map);
  return shape;
}

// Two levels: `spines` joined to all leaves of all pods.
struct FlatSpines {
  std::uint64_t count = 0;
  Ratio ratio;
  Time latency;
};

FlatSpines read_flat_spines(YamlMap& map, std::uint64_t leaves) {
  FlatSpines flat;
  flat.latency = map.require("latency").time();
  map.no_effect("cores",
                "they join pods with spines of their own; write 'spines_per_pod' instead "
                "of 'spines'");
  if (leaves == 1) {
    constexpr const char* kWhy = "one pod with one rail has a single leaf, which needs no spine";
    map.no_effect("spines", kWhy);
    map.no_effect("oversubscription", kWhy);
    return flat;
  }
  flat.count = static_cast<std::uint64_t>(map.require("spines").integer(1, kMost));
  flat.ratio = read_oversubscription(map, "nothing is above these spines").leaf;
  return flat;
}

// One pod: its hosts, its leaves and the links between them.
std::vector<Feed> add_pod(FabricSite& site, const Rails& shape, const std::string& pod,
                          DomainId domain, Time latency, const YamlValue& origin) {
  std::vector<std::vector<NicPort>> ports_of_rail(shape.rails);
  for (std::uint64_t h = 0; h < shape.hosts_per_pod; ++h) {
    const std::vector<NicPort> ports = site.add_next_host(domain);
    for (std::size_t i = 0; i < ports.size(); ++i) {
      ports_of_rail[i % shape.rails].push_back(ports[i]);
    }
  }
  std::vector<Feed> leaves;
  for (std::uint64_t r = 0; r < shape.rails; ++r) {
    Feed leaf{site.add_switch(fmt::format("{}.leaf{}", pod, r), NodeKind::Switch, domain)};
    for (const NicPort& port : ports_of_rail[r]) {
      site.add_fabric_link(port.nic, leaf.node, port.rate, latency, origin);
      leaf.from_below += port.rate.bytes_per_second();
    }
    leaves.push_back(leaf);
  }
  return leaves;
}

Tops add_flat_spines(FabricSite& site, const FlatSpines& flat, const std::vector<Feed>& leaves,
                     const YamlValue& origin) {
  if (flat.count == 0) return {leaves.front().node};
  std::vector<Feed> spines;
  std::vector<Feed*> joined;
  Tops tops;
  for (std::uint64_t s = 0; s < flat.count; ++s) {
    tops.push_back(site.add_switch(site.name("spine", s), NodeKind::Spine, site.domain()));
    spines.push_back({tops.back()});
  }
  for (Feed& spine : spines) joined.push_back(&spine);
  for (const Feed& leaf : leaves) {
    join_upwards(site, leaf, joined, flat.ratio, flat.latency, "spines", origin);
  }
  return tops;
}

Tops add_two_levels(FabricSite& site, const Rails& shape, YamlMap& map) {
  const std::uint64_t leaf_count = shape.pods * shape.rails;
  const FlatSpines flat = read_flat_spines(map, leaf_count);
  const YamlValue origin = flat.count == 0 ? map.value() : map.require("spines");
  map.finish();
  site.draft().expect(leaf_count + flat.count, site.nics() + leaf_count * flat.count, map.value());
  std::vector<Feed> leaves;
  for (std::uint64_t p = 0; p < shape.pods; ++p) {
    const std::string pod = site.name("pod", p);
    const DomainId domain =
        site.draft().add_domain(pod, Level::Pod, site.domain(), site.classes().front().origin);
    for (const Feed& leaf : add_pod(site, shape, pod, domain, flat.latency, map.value())) {
      leaves.push_back(leaf);
    }
  }
  return add_flat_spines(site, flat, leaves, origin);
}

Tops add_three_levels(FabricSite& site, const Rails& shape, YamlMap& map) {
  map.no_effect("spines", "the pods have spines of their own, by 'spines_per_pod'");
  const ClosShape clos = read_clos(map, shape.pods, shape.rails);
  map.finish();
  expect_clos(site, clos, map.value());
  std::vector<std::vector<Feed>> spines;
  for (std::uint64_t p = 0; p < shape.pods; ++p) {
    const std::string pod = site.name("pod", p);
    const DomainId domain =
        site.draft().add_domain(pod, Level::Pod, site.domain(), site.classes().front().origin);
    const std::vector<Feed> leaves = add_pod(site, shape, pod, domain, clos.latency, map.value());
    spines.push_back(add_spines(site, clos, pod, domain, leaves));
  }
  return add_cores(site, clos, spines);
}

}  // namespace

Tops add_rail_fabric(FabricSite& site, const YamlValue& value) {
  site.need_nics(value);
  YamlMap map = value.map();
  const Rails shape = read_rails(site, map);
  return map.has("spines_per_pod") ? add_three_levels(site, shape, map)
                                   : add_two_levels(site, shape, map);
}

}  // namespace holdfast
