// Who waits where the sum of all waits is farther from its bound than the makespan is.
#pragma once

#include <optional>
#include <string>

#include "core/io/results_reader.hpp"

namespace holdfast {

// "GPUs wait ...: 'near' (rollout, 31 replicas) is complete after 190 ms to 10.6 s, where ...", the
// groups with the greatest excess first, three at most. Nothing where the stall share is not at
// least 0.1 below the makespan's, or where there is none. O(groups log groups).
[[nodiscard]] std::optional<std::string> stall_words(const RunFigures& run);

}  // namespace holdfast
