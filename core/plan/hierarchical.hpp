// The planner that follows the structure of the machine.
//
// Each class is cut into stripes: one for each NIC of a host (rail), each of the two complementary
// trees, and as many times over as a WAN needs streams to fill. A stripe
//   - crosses the boundary of each host once, through the NIC of its rail, and spreads inside the
//     host over NVLink from the GPU next to that NIC;
//   - runs between hosts along its tree over the hosts of a site in domain order, so that each
//     uplink carries each byte about once;
//   - enters each further site once, from the host with the least to send; sites are datacenters,
//     or pods where the crossings of one tree exceed what their uplinks carry, and in each of them
//     hosts of like speed.
//
// Exceptions. One slow NIC in a tree would slow everyone below it. Where links of a kind differ, a
// goal is set (a time that the slowest receiver needs anyway), links that would take longer than
// that for what every other one of their kind carries are slow, and whoever sits behind one leaves
// the trees: a host's slow NIC is no slot of its stripes, a GPU with a slow NVLink no relay. They
// are fed apart after the trees are laid, stripe by stripe over the ways that are loaded least, for
// which a class is cut finer; stripes of one tree share its connections.
//
// O(edges x NICs of a host + sites^2); with exceptions also O(those x stripes x 100).
// Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/cost_model.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"
#include "core/plan/sites.hpp"
#include "core/plan/slow_links.hpp"

namespace holdfast {

struct HierarchicalShape {
  SiteRule sites;
  SlowLinks slow;
  double goal = 0;  // seconds; what exceptions may load a channel to without being choosy
};

[[nodiscard]] Plan plan_hierarchical(const PlanSpace& space, const HierarchicalShape& shape);

struct CandidatePlan {
  Plan plan;
  Prediction prediction;
};

// Plans of several shapes with what the cost model says of each; at least one. The first is the
// plainest.
[[nodiscard]] std::vector<CandidatePlan> hierarchical_candidates(const PlanSpace& space);

}  // namespace holdfast
