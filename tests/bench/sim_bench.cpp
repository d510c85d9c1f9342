// Wall time of simulations by size: microseconds a block delivered, engines and notifications
// included, on two trees a shard. Compare within one run only: it depends on the machine.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "sim/simulation.hpp"
#include "tests/sim/scale_fixture.hpp"

namespace holdfast::sim {
namespace {

double cpu_of_children = 0;  // seconds, all that ended so far

// Arguments: GPUs, blocks of an eighth of the model.
void simulate_two_tree(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const auto blocks = static_cast<std::uint32_t>(state.range(1));
  const testing::ScaleCase scale = testing::make_scale_case(gpus / testing::kScaleGpus, blocks);
  const Router router(scale.topology);
  std::uint64_t deliveries = 0;
  for (auto _ : state) {
    const SimulationResult result = simulate(router, scale.demand, scale.plan);
    if (result.failure) {
      state.SkipWithError(result.failure->c_str());
      return;
    }
    deliveries += result.deliveries;
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

// The work happens in a child process: real time counts.
BENCHMARK(simulate_two_tree)
    ->Args({128, 256})
    ->Args({1024, 256})
    ->Args({4096, 64})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace holdfast::sim

BENCHMARK_MAIN();
