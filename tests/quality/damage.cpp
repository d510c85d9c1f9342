#include "tests/quality/damage.hpp"

#include <fmt/format.h>

#include <numeric>
#include <random>
#include <vector>

namespace holdfast::quality {

Topology damaged(const Topology& topology, std::uint64_t seed, std::uint32_t per_mille) {
  TopologyBuilder builder(fmt::format("{} damaged by seed {}", topology.name(), seed));
  for (const Domain& domain : topology.domains()) {
    builder.add_domain(domain.name, domain.level, domain.parent);
  }
  for (const Node& node : topology.nodes()) builder.add_node(node);
  for (const Link& link : topology.links()) builder.add_link(link);
  for (const FaultDomain& domain : topology.fault_domains()) builder.add_fault_domain(domain);
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::uint32_t> links(topology.links().size());
  std::iota(links.begin(), links.end(), 0U);
  const std::size_t count = (links.size() * per_mille + 500) / 1000;
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(links[i], links[i + below(links.size() - i)]);
    const std::uint64_t part = 100'000 + below(800'001);  // of a million
    Link& link = builder.link(LinkId(links[i]));
    link.capacity = Rate(link.capacity.bytes_per_second() / 1'000'000 * part);
  }
  return builder.build();
}

}  // namespace holdfast::quality
