// Plans as other systems would move the same weights, to compare with. What a plan cannot say is
// left to whoever runs a workload: the time to make a group or a connection, and that everybody of
// a static group stops until the slowest is done. All receivers of the one update ask at once here.
#pragma once

#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"
#include "core/plan/planner.hpp"

namespace holdfast {

// Point to point: every receiver reads whole shards from a holder, and nobody passes anything on.
// Of the holders of a class each has as many readers as any other, or one more, wherever they are:
// a static assignment in the order of the workers, which knows no network. One stripe a class.
[[nodiscard]] Plan plan_ucx(const PlanSpace& space);

// A broadcast in a static group of the workers that hold or want a class: from its first holder in
// the order of the workers (the ranks) that may serve; other holders are not used. Ring: a line
// through all receivers, one stripe; Tree: NCCL's double binary tree, two stripes. One channel a
// NIC. Throws Error(Unsupported) where a receiver may not serve: data passes through every rank.
[[nodiscard]] Plan plan_nccl(const PlanSpace& space, NcclAlgorithm algorithm);

}  // namespace holdfast
