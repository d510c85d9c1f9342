#include "core/io/fat_tree.hpp"

#include <fmt/format.h>

#include "core/io/clos_levels.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMost = static_cast<std::int64_t>(TopologyDraft::kMostNodes);
constexpr std::int64_t kMostLeaves = 256;  // of a rack: as many as a host can have NICs

struct Racks {
  std::uint64_t pods = 0;
  std::uint64_t racks_per_pod = 0;
  std::uint64_t hosts_per_rack = 0;
  std::uint64_t leaves_per_rack = 1;
};

Racks read_racks(const FabricSite& site, YamlMap& map) {
  Racks shape;
  const YamlValue per_rack = map.require("hosts_per_rack");
  shape.hosts_per_rack = static_cast<std::uint64_t>(per_rack.integer(1, kMost));
  if (site.hosts() % shape.hosts_per_rack != 0) {
    per_rack.refuse(ErrorCode::BadTopology,
                    fmt::format("{} hosts do not divide into racks of {}; change one of the "
                                "numbers",
                                site.hosts(), shape.hosts_per_rack));
  }
  const std::uint64_t racks = site.hosts() / shape.hosts_per_rack;
  shape.racks_per_pod = racks;
  if (const auto per_pod = map.find("racks_per_pod")) {
    shape.racks_per_pod = static_cast<std::uint64_t>(per_pod->integer(1, kMost));
    if (racks % shape.racks_per_pod != 0) {
      per_pod->refuse(ErrorCode::BadTopology,
                      fmt::format("{} racks do not divide into pods of {}; change one of the "
                                  "numbers",
                                  racks, shape.racks_per_pod));
    }
  }
  shape.pods = racks / shape.racks_per_pod;
  if (const auto leaves = map.find("leaves_per_rack")) {
    shape.leaves_per_rack = static_cast<std::uint64_t>(leaves->integer(1, kMostLeaves));
    site.need_even_nics(shape.leaves_per_rack, "leaves", *leaves);
  }
  return shape;
}

// One rack: its hosts, its leaves and the links between them.
void add_rack(FabricSite& site, const Racks& shape, std::uint64_t number, DomainId pod,
              Time latency, const YamlValue& origin, std::vector<Feed>& leaves_of_pod) {
  const std::string rack = site.name("rack", number);
  const DomainId domain =
      site.draft().add_domain(rack, Level::Rack, pod, site.classes().front().origin);
  std::vector<NicPort> ports;
  std::vector<std::size_t> leaf_of_port;
  for (std::uint64_t h = 0; h < shape.hosts_per_rack; ++h) {
    const std::vector<NicPort> of_host = site.add_next_host(domain);
    for (std::size_t i = 0; i < of_host.size(); ++i) {
      ports.push_back(of_host[i]);
      leaf_of_port.push_back(i % shape.leaves_per_rack);
    }
  }
  const std::size_t first = leaves_of_pod.size();
  for (std::uint64_t l = 0; l < shape.leaves_per_rack; ++l) {
    leaves_of_pod.push_back(
        {site.add_switch(fmt::format("{}.leaf{}", rack, l), NodeKind::Switch, domain)});
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Feed& leaf = leaves_of_pod[first + leaf_of_port[i]];
    site.add_fabric_link(ports[i].nic, leaf.node, ports[i].rate, latency, origin);
    leaf.from_below += ports[i].rate.bytes_per_second();
  }
}

}  // namespace

Tops add_fat_tree(FabricSite& site, const YamlValue& value) {
  site.need_nics(value);
  YamlMap map = value.map();
  const Racks shape = read_racks(site, map);
  const ClosShape clos = read_clos(map, shape.pods, shape.racks_per_pod * shape.leaves_per_rack);
  map.finish();
  expect_clos(site, clos, value);
  std::vector<std::vector<Feed>> spines;
  for (std::uint64_t p = 0; p < shape.pods; ++p) {
    const std::string pod = site.name("pod", p);
    const DomainId domain =
        site.draft().add_domain(pod, Level::Pod, site.domain(), site.classes().front().origin);
    std::vector<Feed> leaves;
    for (std::uint64_t r = 0; r < shape.racks_per_pod; ++r) {
      add_rack(site, shape, p * shape.racks_per_pod + r, domain, clos.latency, value, leaves);
    }
    if (clos.spines_per_pod == 0) return {leaves.front().node};
    spines.push_back(add_spines(site, clos, pod, domain, leaves));
  }
  return add_cores(site, clos, spines);
}

}  // namespace holdfast
