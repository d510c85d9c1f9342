// Plans for baselines that use the protocol: some holders are not read from, nobody relays.
#pragma once

#include <functional>

#include "core/catalog/planning.hpp"

namespace holdfast::sim {

// May `reader` be given blocks of `source`?
using MayRead = std::function<bool(WorkerId source, WorkerId reader)>;

// As answer_plan with a star, but each receiver reads from holders that it may read from alone,
// and edges have no alternates. A plan that leaves a receiver without any source is none: `problem`
// names the receiver. Never throws. O(sum of receivers x holders of a class).
[[nodiscard]] PlanMade answer_plan_from(const Router& router, const MakePlan& request,
                                        const MayRead& may_read);
// Nobody turns to another reader: whoever lost its source is planned for anew.
[[nodiscard]] RepairMade answer_repair_with_nothing(const MakeRepair& request);

}  // namespace holdfast::sim
