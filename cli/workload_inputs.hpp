// From a scenario with a workload, faults or retention to what its simulation takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/deployment.hpp"
#include "core/io/scenario_files.hpp"
#include "sim/workload_run.hpp"

namespace holdfast::cli {

[[nodiscard]] sim::ServiceSetup setup_of(const Deployment& deployment);

// Draws members and faults by `seed`. Throws Error with the scenario's places. What has no effect
// is added to `warnings`.
[[nodiscard]] sim::WorkloadRun run_of(const LoadedScenario& loaded, const Deployment& deployment,
                                      std::uint64_t seed, std::vector<std::string>& warnings);

// Where the coordinator runs: on a host near the first trainer that no fault is aimed at, if there
// is one, and rather on one without workers.
[[nodiscard]] NodeId coordinator_host(const Topology& topology, const Deployment& deployment,
                                      const std::vector<FaultRule>& rules);

}  // namespace holdfast::cli
