// Runs the engines of all workers over a SimNetwork, in this process.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/engine/worker_engine.hpp"
#include "sim/flow_network.hpp"
#include "sim/simulation.hpp"

namespace holdfast::sim {

// Work for an engine that was not in its plan; the parent is told of its child if it has to pass on
// what arrives.
struct Order {
  WorkerId reader;
  Assignment assignment;
};

// Gives engines their work while they run: what a coordinator does.
class Director {
 public:
  Director() = default;
  Director(const Director&) = delete;
  Director& operator=(const Director&) = delete;
  virtual ~Director() = default;

  // Known to the engines at time zero.
  virtual std::vector<Order> start() = 0;
  // Everything that the worker was assigned has been verified there. Asked one control latency
  // after that; what it answers reaches the engines another one later.
  virtual std::vector<Order> done(WorkerId reader) = 0;
  [[nodiscard]] virtual Time control_latency() const = 0;
};

// `simulate` without the fork: once in the life of a process. `progress` hears the fraction of the
// deliveries, about every 1/256. `driver`: instead of what options.sharing says. With a director
// the plan says what the stripes are and has no edges.
[[nodiscard]] SimulationResult run_engines(const Router& router, const Demand& demand,
                                           const Plan& plan, const SimulationOptions& options,
                                           const std::function<void(double)>& progress,
                                           std::optional<FlowDriver> driver = std::nullopt,
                                           Director* director = nullptr);

}  // namespace holdfast::sim
