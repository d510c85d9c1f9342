// The folder that a run writes its results into.
#pragma once

#include <span>
#include <string>

#include "core/io/results.hpp"

namespace holdfast {

// Throws Error(FileUnwritable) unless `folder` is absent, empty, or holds results of Holdfast. Call
// it before a long run, so that nothing is computed in vain.
void require_results_folder(const std::string& folder);

// Writes all four files, first under another name: whoever looks finds the old results or the new
// ones, never half of a file. Creates the folder; other files in it stay. Throws
// Error(FileUnwritable).
void write_results(const std::string& folder, const ResultsContext& context,
                   std::span<const RunRecord> runs);

}  // namespace holdfast
