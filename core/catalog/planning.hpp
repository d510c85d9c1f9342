// What the coordinator asks of a planner, answered by this library's planners: pure functions, for
// whoever runs them (a thread on hardware, a time later in simulation).
#pragma once

#include <optional>

#include "core/catalog/coordinator.hpp"
#include "core/plan/planner.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

// Tells transfers apart in the messages of their workers (UpdateTables::transfer): the low bits of
// the epoch and of the plan's count in it.
[[nodiscard]] std::uint32_t transfer_number(PlanNumber id);

// Never throws: where there is no plan, `problem` says why. The tables' transfer id is the plan's.
// Each edge gets an alternate parent where there is one.
[[nodiscard]] PlanMade answer_plan(const Router& router, const MakePlan& request, Policy policy,
                                   const PlanOptions& options);

// New parents for the children of the lost, for orphans and for half of the children of the slow.
// Near-linear in the edges of the stripes that are touched. Never throws.
[[nodiscard]] RepairMade answer_repair(const Router& router, const MakeRepair& request);

// Parents for those who come late. Never throws.
[[nodiscard]] RepairMade answer_join(const Router& router, const MakeJoin& request);

// The answer to any command that asks the planner something; nothing for the others.
[[nodiscard]] std::optional<CoordinatorEvent> answer_question(const Router& router,
                                                              const CoordinatorCommand& command,
                                                              Policy policy,
                                                              const PlanOptions& options);

}  // namespace holdfast
