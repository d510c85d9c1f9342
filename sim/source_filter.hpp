// Plans for baselines that use the protocol: some holders are not read from, nobody relays.
#pragma once

#include <functional>
#include <optional>

#include "core/catalog/planning.hpp"

namespace holdfast::sim {

// May `reader` be given blocks of `source`?
using MayRead = std::function<bool(WorkerId source, WorkerId reader)>;

// As answer_question with a star, but each receiver reads from holders that it may read from alone,
// and edges have no alternates. A plan that leaves a receiver without any source is none: `problem`
// names the receiver. Nobody turns to another reader: whoever lost its source, or comes late, is
// planned for anew. Never throws. O(sum of receivers x holders of a class).
[[nodiscard]] std::optional<CoordinatorEvent> answer_question_from(
    const Router& router, const CoordinatorCommand& command, const MayRead& may_read);

}  // namespace holdfast::sim
