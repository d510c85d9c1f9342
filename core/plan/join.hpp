// Late receivers in a plan that is being carried out: a delta that disturbs nobody who runs.
//
// A joiner gets each stripe of its classes from somebody who has it or gets it anyway. Who already
// runs keeps its parents. Parents are taken where room is left: inside the joiner's host if
// anybody there has the stripe, else in its datacenter the port that is to send least for what it
// can carry (leaves and holders whose readers are done send nothing), then the nearest, so that the
// stripes of one joiner come from several parents and fill its ports. Joiners that were placed
// before are parents like others: many who join together feed each other.
#pragma once

#include <span>
#include <vector>

#include "core/plan/holdings.hpp"
#include "core/plan/plan_delta.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

struct JoinTask {
  std::vector<Joiner> joiners;      // in the order in which they are placed; ids are there
  std::vector<WorkerId> closed;     // ascending: take no new children (draining, dead, slow)
  std::vector<WorkerId> receiving;  // ascending: not complete yet; ports serve those alone
};

struct Joined {
  Demand demand;  // with the joiners among the receivers
  PlanDelta delta;
  std::vector<WorkerId> unplaced;  // ascending: some stripe has nobody to read from, none was added
};

// `plan` as it is carried out now, `verified` what everybody has now. A joiner that receives a
// class already gets nothing new for it. Deterministic; ties go to the lowest id. O(edges + workers
// x NICs + joiners x stripes x (log workers + blocks + route)).
[[nodiscard]] Joined join(const Router& router, const Demand& demand, const Plan& plan,
                          const JoinTask& task, const Holdings& verified);

}  // namespace holdfast
