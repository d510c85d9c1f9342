// New parents in a plan that is being carried out, for those who lost theirs.
//
// Pure and local: only the edges of orphans and half of the edges of slow parents move; stripes,
// and what everybody else reads from whom, stay. A child may get a parent P if P has the stripe
// from the start or has received all of it, or receives it over edges that lead back to such a
// worker without passing the child; and if P does not come to wait for the child when workers turn
// to their alternates by themselves, in whatever number. Of those one in the child's datacenter is
// taken if there is one (each byte crosses a WAN once: of many who lost one parent the first alone
// reads beyond), then the one whose port is loaded least (bytes of the edges that leave it, over
// its capacity) and then the nearest (the innermost common domain), then the lowest id.
//
// Why by load: in trees that use every port fully, a worker that dies frees as much as its children
// need, at its parents in the different trees, and nowhere else.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

struct LostEdge {
  WorkerId child;
  StripeId stripe;
  WorkerId from;  // whom it cannot read from
};

// Lists of workers ascend.
struct RepairTask {
  std::vector<WorkerId> lost;      // neither parents nor children any more
  std::vector<WorkerId> closed;    // take no new children
  std::vector<WorkerId> complete;  // have every block of theirs, whatever the plan says
  std::vector<WorkerId> readers;   // still receive
  std::vector<LostEdge> orphans;   // beside the children of the lost
  std::vector<WorkerId> slow;      // half of their children move if that spreads the load
};

struct MendedEdge {
  StripeId stripe;
  Edge edge;  // child, new parent, alternate, path, window
  bool parent_has_all = false;
  bool alternate_has_all = false;
  Path alternate_path;
};

struct Repair {
  std::vector<MendedEdge> edges;   // by stripe, then child
  std::vector<WorkerId> unmended;  // ascending: somebody lost a parent and there is no other
};

// `plan`: as it is carried out now. Deterministic.
// O(edges + workers + orphans x (workers of the stripe + tries x route length)).
[[nodiscard]] Repair mend(const Router& router, const Demand& demand, const Plan& plan,
                          const RepairTask& task);

}  // namespace holdfast
