// Wall time of simulations by size: microseconds a block delivered, engines and notifications
// included, on two trees a shard. Compare within one run only: it depends on the machine.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <optional>

#include "sim/simulation.hpp"
#include "tests/sim/scale_fixture.hpp"

namespace holdfast::sim {
namespace {

double cpu_of_children = 0;  // seconds, all that ended so far

void simulate_case(benchmark::State& state, const testing::ScaleCase& scale, Sharing sharing,
                   std::optional<Time> step = std::nullopt) {
  const Router router(scale.topology);
  SimulationOptions options;
  options.sharing = sharing;
  options.sharing_step = step;
  options.trace = Trace::None;
  std::uint64_t deliveries = 0;
  for (auto _ : state) {
    const SimulationResult result = simulate(router, scale.demand, scale.plan, options);
    if (result.failure) {
      state.SkipWithError(result.failure->c_str());
      return;
    }
    deliveries += result.deliveries;
    state.counters["makespan_s"] = result.makespan.seconds();
    state.counters["step_us"] = result.sharing_step.seconds() * 1e6;
    state.SetLabel(result.sharing == Sharing::MaxMin ? "own solver" : "SimGrid");
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const double before = cpu_of_children;
  cpu_of_children = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  state.counters["cpu_us_per_delivery"] =
      (cpu_of_children - before) * 1e6 / static_cast<double>(deliveries);
  state.counters["deliveries"] =
      static_cast<double>(deliveries) / static_cast<double>(state.iterations());
  state.counters["s_per_delivery"] = benchmark::Counter(
      static_cast<double>(deliveries), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["peak_mib_so_far"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

// Arguments: GPUs, blocks of an eighth of the model.
void simulate_two_tree(benchmark::State& state, Sharing sharing) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const auto blocks = static_cast<std::uint32_t>(state.range(1));
  simulate_case(state, testing::make_scale_case(gpus / testing::kScaleGpus, blocks), sharing);
}

// The same arguments; pods of 32 hosts.
void simulate_coupled(benchmark::State& state, Sharing sharing, std::optional<Time> step) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const auto blocks = static_cast<std::uint32_t>(state.range(1));
  constexpr std::uint32_t kPodHosts = 32;
  simulate_case(state, testing::make_coupled_case(gpus / testing::kScaleGpus, blocks, kPodHosts, 1),
                sharing, step);
}

// The work happens in a child process: real time counts.
BENCHMARK_CAPTURE(simulate_two_tree, simgrid, Sharing::SimGrid)
    ->Args({128, 256})
    ->Args({1024, 256})
    ->Args({4096, 64})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(simulate_two_tree, own, Sharing::MaxMin)
    ->Args({1024, 256})
    ->Args({4096, 64})
    ->Args({4096, 256})
    ->Args({16'384, 64})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(simulate_coupled, simgrid, Sharing::SimGrid, std::nullopt)
    ->Args({512, 16})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(simulate_coupled, exact, Sharing::MaxMin, Time(0))
    ->Args({512, 16})
    ->Args({2048, 16})
    ->Args({4096, 8})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(simulate_coupled, by_the_rule, Sharing::Auto, std::nullopt)
    ->Args({4096, 8})
    ->Args({4096, 64})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace holdfast::sim

BENCHMARK_MAIN();
