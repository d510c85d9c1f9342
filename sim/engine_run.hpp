// Runs the engines of all workers over a SimNetwork, in this process.
#pragma once

#include <functional>

#include "sim/flow_network.hpp"
#include "sim/simulation.hpp"

namespace holdfast::sim {

// `simulate` without the fork: once in the life of a process. `progress` hears the fraction of the
// deliveries, about every 1/256.
[[nodiscard]] SimulationResult run_engines(const Router& router, const Demand& demand,
                                           const Plan& plan, const SimulationOptions& options,
                                           const std::function<void(double)>& progress,
                                           FlowDriver driver = best_flow_driver());

}  // namespace holdfast::sim
