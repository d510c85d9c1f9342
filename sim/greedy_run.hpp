// Carries out an update whose plan is made while it runs: GreedyPolicy as the engines' coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/engine_run.hpp"
#include "sim/simulation.hpp"

namespace holdfast::sim {

// `simulate_greedy` without the fork: once in the life of a process.
[[nodiscard]] SimulationResult run_greedy(const Router& router, const Demand& demand,
                                          std::optional<std::uint32_t> reader_cap,
                                          const SimulationOptions& options,
                                          const std::function<void(double)>& progress);

}  // namespace holdfast::sim
