// Seeded damage to a topology: what a cluster looks like when some of its links have degraded.
#pragma once

#include <cstdint>

#include "core/topology/topology.hpp"

namespace holdfast::quality {

// The same topology with `per_mille` of its links, rounded, at 10 to 90 % of their capacity (both
// directions alike, whole bytes a second), drawn evenly by seed. Links inside hosts, of the fabric
// and of the WAN alike. O(V + E).
[[nodiscard]] Topology damaged(const Topology& topology, std::uint64_t seed,
                               std::uint32_t per_mille = 50);

}  // namespace holdfast::quality
