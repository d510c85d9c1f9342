// Rail-optimised clusters of hosts with 8 GPUs and 8 NICs, one holder host, TP=8, two trees a
// shard.
#pragma once

#include <cstdint>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::sim::testing {

struct ScaleCase {
  Topology topology;
  Demand demand;
  Plan plan;
};

inline constexpr std::uint32_t kScaleGpus = 8;
inline constexpr std::uint64_t kScaleBlock = std::uint64_t{1} << 26;
inline constexpr Rate kScaleRate(50'000'000'000);

// GPU, PCIe switch and NIC on each rail; rail r of all hosts on switch r.
[[nodiscard]] ScaleCase make_scale_case(std::uint32_t hosts, std::uint32_t blocks);

// What couples everything: the same hosts in pods of `pod_hosts` with one switch for all rails, a
// trunk from each to one spine that is half as wide as its NICs together, and the two trees of each
// shard over the hosts in random order.
[[nodiscard]] ScaleCase make_coupled_case(std::uint32_t hosts, std::uint32_t blocks,
                                          std::uint32_t pod_hosts, std::uint64_t seed);

}  // namespace holdfast::sim::testing
