// What besides the policy differs between results that are put side by side.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/io/results_reader.hpp"

namespace holdfast {

// A sentence for each folder of another scenario, machine, model or demand than the first one, then
// one for each option whose value differs among those of the first one's scenario: "the block size
// differs: 8 MiB in 'a', 32 MiB in 'b' and 'c'". What an option explains is not told again: other
// traffic changes the machine that is left, and another block size the blocks that are wanted.
// O(folders^2) for as few as people compare.
[[nodiscard]] std::vector<std::string> differences(std::span<const Results> folders);

}  // namespace holdfast
