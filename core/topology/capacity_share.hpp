// The part of a machine that is left beside other traffic.
#pragma once

#include <cstdint>
#include <span>

#include "core/topology/topology.hpp"

namespace holdfast {

inline constexpr std::uint32_t kWholeInMillionths = 1'000'000;

// What is left of `capacity` when others keep `taken` millionths of it: rounded down to whole bytes
// a second, at least one. Precondition: taken < kWholeInMillionths.
[[nodiscard]] Rate left_of(Rate capacity, std::uint32_t taken);

// The same machine as it looks to one user who leaves others `taken[link]` millionths of each
// link's capacity, in both directions alike. Ids, names, latencies and stream caps (which bound one
// stream, not the link) stay; the hash is that of the smaller machine, so that a plan, a bound and
// a simulation made for one are not taken for the other's. Nothing taken: an equal topology.
// Throws Error(BadTopology) if `taken` has not one entry a link, or one of the whole. O(V + E).
[[nodiscard]] Topology beside_other_traffic(const Topology& topology,
                                            std::span<const std::uint32_t> taken);

}  // namespace holdfast
