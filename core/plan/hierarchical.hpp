// The planner that follows the structure of the machine.
//
// Each class is cut into stripes: one for each NIC of a host (rail), each of the two complementary
// trees, and as many times over as a WAN needs streams to fill. A stripe
//   - crosses the boundary of each host once, through the NIC of its rail, and spreads inside the
//     host over NVLink from the GPU next to that NIC;
//   - runs between hosts along its tree over the hosts of a site in domain order, so that each
//   uplink
//     carries each byte about once;
//   - enters each further site once, from the host with the least to send; sites are datacenters,
//   or
//     pods where the crossings of one tree exceed what their uplinks carry.
// Which level the sites have is decided by the cost model.
//
// O(edges x NICs of a host + sites^2); deterministic.
#pragma once

#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

// Chooses the level of sites by predicted time.
[[nodiscard]] Plan plan_hierarchical(const PlanSpace& space);

// With sites of one level (Datacenter, Pod or Rack).
[[nodiscard]] Plan plan_hierarchical(const PlanSpace& space, Level sites);

}  // namespace holdfast
