// Runs of scenarios with a workload, faults or retention: what `simulate` does for them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/task.hpp"
#include "core/io/results.hpp"
#include "sim/workload_run.hpp"

namespace holdfast::cli {

// What is wrong with names and files of members, faults and stores is thrown as Error with its
// place; what has no effect is returned. Precondition: the task has a deployment. As long as one
// drawing of members and faults takes.
[[nodiscard]] std::vector<std::string> check_workload(const Task& task, std::uint64_t seed);

// Fills the record in. What goes wrong in the run is its failure; throws Error where it cannot
// begin: Unsupported for a policy that has no service yet. Precondition: the task has a deployment.
void carry_out_workload(const Task& task, Policy policy, sim::Trace trace,
                        const std::function<void(double)>& progress, RunRecord& record);

// Lines for people: who does what, and then what came of it.
[[nodiscard]] std::string workload_heading(const Task& task);
[[nodiscard]] std::string workload_table(std::span<const RunRecord> runs);
// What failed in each run, the first lines of it.
[[nodiscard]] std::string failures_text(std::span<const RunRecord> runs);

}  // namespace holdfast::cli
