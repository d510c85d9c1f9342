#include "tests/quality/bench.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>

#include "core/io/results.hpp"
#include "core/io/run_figures.hpp"
#include "core/io/topology_reader.hpp"
#include "core/plan/checker.hpp"
#include "core/weights/presets.hpp"

namespace holdfast::quality {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Topology shipped_topology(const std::string& name) {
  return read_topology(std::string(HOLDFAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
}

Bench::Bench(const Case& c, std::uint32_t blocks, Topology topology, const std::string& options)
    : case_(c),
      blocks_(blocks),
      scenario_(parse_scenario(scenario_text(c, blocks, options), c.name)),
      topology_(std::move(topology)),
      manifest_(preset_manifest(c.model)),
      task_(make_update(scenario_, topology_, manifest_)),
      router_(topology_),
      bound_(lower_bound(topology_, task_.demand)) {
  if (const auto wrong = refute(bound_.cut, topology_, task_.demand)) {
    throw std::logic_error("the bound's certificate does not hold: " + *wrong);
  }
}

Planned Bench::planned(Policy policy, Row& row) {
  const auto start = std::chrono::steady_clock::now();
  Planned planned = make_plan(policy, router_, task_.demand);
  row.plan_s = seconds_since(start);
  row.name = case_.name;
  row.policy = to_string(policy);
  row.planner = planned.planner;
  row.blocks = blocks_;
  row.bound = bound_.time();
  row.predicted = planned.predicted;
  row.makespan = planned.predicted;
  row.share = row.bound.seconds() / row.makespan.seconds();
  if (const auto bad = check(planned.plan, task_.demand, router_); !bad.empty()) {
    throw std::logic_error("the plan is refused: " + bad.front().message);
  }
  return planned;
}

Row Bench::predict(Policy policy) {
  Row row;
  static_cast<void>(planned(policy, row));
  return row;
}

sim::SimulationOptions Bench::simulation_options() const {
  sim::SimulationOptions options;
  options.trace = sim::Trace::None;
  options.jitter = scenario_.options.jitter;
  options.seed = scenario_.seed.value_or(0);
  return options;
}

void Bench::take(const sim::SimulationResult& result, Row& row) const {
  if (result.failure) {
    row.failure = *result.failure;
    return;
  }
  row.makespan = result.makespan;
  row.deliveries = result.deliveries;
  row.share = row.bound.seconds() / row.makespan.seconds();
  const ResultsContext context{scenario_, topology_, task_, bound_, {}, {}, {}};
  row.stall_share = stall_of(context, result.completed).fraction().value_or(0);
}

Row Bench::run(Policy policy) {
  if (is_online(policy)) return run_greedy();
  Row row;
  const Planned planned = this->planned(policy, row);
  take(simulated(planned.plan, row), row);
  return row;
}

Row Bench::run_greedy() {
  Row best;
  for (const std::optional<std::uint32_t> cap :
       {std::optional<std::uint32_t>(), std::optional(1U), std::optional(2U), std::optional(4U)}) {
    Row row;
    row.name = case_.name;
    row.policy = to_string(Policy::Greedy);
    row.planner = cap ? "cap " + std::to_string(*cap) : "no cap";
    row.blocks = blocks_;
    row.bound = bound_.time();
    const auto start = std::chrono::steady_clock::now();
    take(sim::simulate_greedy(router_, task_.demand, cap, simulation_options()), row);
    row.simulate_s = seconds_since(start);
    row.predicted = row.makespan;  // there is none
    if (best.name.empty() || (row.failure.empty() && row.makespan < best.makespan)) best = row;
  }
  return best;
}

const sim::SimulationResult& Bench::simulated(const Plan& plan, Row& row) {
  const Hash128 hash = hash_of(plan);
  const auto known = results_.find(hash);
  if (known != results_.end()) return known->second;
  const auto start = std::chrono::steady_clock::now();
  const auto& result =
      results_.emplace(hash, sim::simulate(router_, task_.demand, plan, simulation_options()))
          .first->second;
  row.simulate_s = seconds_since(start);
  return result;
}

}  // namespace holdfast::quality
