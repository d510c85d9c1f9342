#include "sim/simulation.hpp"

#include "sim/engine_run.hpp"
#include "sim/greedy_run.hpp"
#include "sim/result_codec.hpp"
#include "sim/run_in_child.hpp"

namespace holdfast::sim {
namespace {

SimulationResult in_a_child(const SimulationOptions& options,
                            const std::function<SimulationResult(const ProgressFunction&)>& work) {
  return decode_result(run_in_a_child(options.progress, [&](const ProgressFunction& progress) {
    return encode_result(work(progress));
  }));
}

}  // namespace

SimulationResult simulate(const Router& router, const Demand& demand, const Plan& plan,
                          const SimulationOptions& options) {
  return in_a_child(options, [&](const ProgressFunction& progress) {
    return run_engines(router, demand, plan, options, progress);
  });
}

SimulationResult simulate_greedy(const Router& router, const Demand& demand,
                                 std::optional<std::uint32_t> reader_cap,
                                 const SimulationOptions& options) {
  return in_a_child(options, [&](const ProgressFunction& progress) {
    return run_greedy(router, demand, reader_cap, options, progress);
  });
}

}  // namespace holdfast::sim
