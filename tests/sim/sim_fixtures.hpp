// Small machines, demands and plans whose times can be worked out by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::sim::testing {

inline constexpr Rate kRate(1'000'000'000);
inline constexpr Bytes kBlock(1'000'000);  // takes 1 ms at kRate
inline constexpr Time kBlockTime = milliseconds(1);
inline constexpr Time kLatency = microseconds(5);  // of a whole path between two hosts

// Hosts of one GPU (node "gpu<i>") and one NIC on one switch. PCIe is ten times as fast as the NIC
// and has no latency, so that NICs alone decide.
struct StarShape {
  std::uint32_t hosts = 2;
  Rate rate = kRate;
  Time latency = kLatency;  // even
  Rate digest_rate = {};    // zero: digests take no time
};
[[nodiscard]] Topology make_star(const StarShape& shape);

// `hosts` on each side of a WAN link of 10 x kRate with 30 ms and a cap of kRate / 8 a stream.
inline constexpr Time kWanLatency = milliseconds(30);
inline constexpr Rate kStreamCap(125'000'000);
[[nodiscard]] Topology make_wan(std::uint32_t hosts);

// Worker i is "gpu<i>"; worker 0 holds `blocks` blocks of kBlock bytes, all others want all of
// them.
[[nodiscard]] Demand make_demand(const Topology& topology, std::uint32_t workers,
                                 std::uint32_t blocks, bool verify = true);

// The path from one worker's NIC to the other's.
[[nodiscard]] Path path_between(const Topology& topology, const Demand& demand, WorkerId parent,
                                WorkerId child, std::uint32_t stream = 0);

// A stripe of class 0: parents[i] is the parent of worker i + 1.
[[nodiscard]] Stripe make_stripe(const Topology& topology, const Demand& demand,
                                 BlockSelection blocks, const std::vector<std::uint32_t>& parents,
                                 std::uint32_t window);
[[nodiscard]] Plan make_plan(const Topology& topology, const Demand& demand,
                             std::vector<Stripe> stripes);
// One stripe with everything.
[[nodiscard]] Plan tree_plan(const Topology& topology, const Demand& demand,
                             const std::vector<std::uint32_t>& parents, std::uint32_t window);
// Two stripes over complementary trees.
[[nodiscard]] Plan two_tree_plan(const Topology& topology, const Demand& demand,
                                 std::uint32_t window);
[[nodiscard]] std::vector<std::uint32_t> chain_parents(std::uint32_t receivers);

}  // namespace holdfast::sim::testing
