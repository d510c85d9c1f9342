// One case at one block size: planned, checked, bounded and simulated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/io/scenario.hpp"
#include "core/io/scenario_update.hpp"
#include "core/plan/bound.hpp"
#include "core/plan/planner.hpp"
#include "core/topology/router.hpp"
#include "sim/simulation.hpp"
#include "tests/quality/cases.hpp"

namespace holdfast::quality {

struct Row {
  std::string name;
  std::string policy;
  std::string planner;
  std::uint32_t blocks = 0;
  Time makespan;
  Time bound;
  Time predicted;
  double share = 0;
  double stall_share = 0;
  double plan_s = 0;      // wall
  double simulate_s = 0;  // wall
  std::uint64_t deliveries = 0;
  std::string failure;  // empty: none
};

// Plans that come out the same are simulated once.
class Bench {
 public:
  // Throws std::logic_error if the bound's certificate does not hold.
  Bench(const Case& c, std::uint32_t blocks, Topology topology, const std::string& options = "");
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Throws std::logic_error if the checker refuses the plan. For `greedy`, which has none, the best
  // of its caps on readers: 1, 2, 4 and none.
  [[nodiscard]] Row run(Policy policy);
  // Without the simulation: makespan and shares are the cost model's.
  [[nodiscard]] Row predict(Policy policy);

 private:
  [[nodiscard]] Planned planned(Policy policy, Row& row);
  [[nodiscard]] Row run_greedy();
  [[nodiscard]] sim::SimulationOptions simulation_options() const;
  void take(const sim::SimulationResult& result, Row& row) const;
  const sim::SimulationResult& simulated(const Plan& plan, Row& row);

  Case case_;
  std::uint32_t blocks_;
  Scenario scenario_;
  Topology topology_;
  Manifest manifest_;
  UpdateTask task_;
  Router router_;
  Bound bound_;
  std::map<Hash128, sim::SimulationResult> results_;
};

[[nodiscard]] Topology shipped_topology(const std::string& name);

}  // namespace holdfast::quality
