// Planner and checker time over growing clusters: rail-like racks of 32 hosts with 8 GPUs.
#include <benchmark/benchmark.h>

#include "core/plan/checker.hpp"
#include "core/plan/planner.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

struct Task {
  Topology topology;
  Demand demand;
};

Task task_of(std::int64_t gpus, bool sharded) {
  testing_support::ClusterShape shape;
  shape.racks = static_cast<std::uint32_t>(gpus / 256);
  shape.hosts = 32;
  shape.spines = 8;
  shape.nic_rate = Rate(25'000'000'000);
  shape.uplink_rate = Rate(800'000'000'000);
  Topology topology = testing_support::make_cluster(shape);
  testing_support::DemandShape demand;
  demand.sharded = sharded;
  demand.blocks = 256;
  demand.block_size = Bytes(32'000'000);
  Demand made = testing_support::make_demand(topology, demand);
  return {std::move(topology), std::move(made)};
}

void plan(benchmark::State& state, Policy policy, bool sharded) {
  const Task task = task_of(state.range(0), sharded);
  for (auto _ : state) {
    const Router router(task.topology);
    benchmark::DoNotOptimize(make_plan(policy, router, task.demand));
  }
  state.counters["us_per_gpu"] = benchmark::Counter(
      static_cast<double>(state.range(0)) * 1e-6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void check_plan(benchmark::State& state) {
  const Task task = task_of(state.range(0), false);
  const Router router(task.topology);
  const Plan plan = make_plan(Policy::Hierarchical, router, task.demand).plan;
  CheckOptions options;
  options.execute_below = 0;
  for (auto _ : state) benchmark::DoNotOptimize(check(plan, task.demand, router, options));
}

constexpr std::int64_t kLeast = 1024;
constexpr std::int64_t kMost = 16'384;

BENCHMARK_CAPTURE(plan, auto_tp8, Policy::Auto, true)
    ->RangeMultiplier(2)
    ->Range(kLeast, kMost)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, auto_tp1, Policy::Auto, false)
    ->RangeMultiplier(2)
    ->Range(kLeast, kMost)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, two_tree_tp8, Policy::TwoTree, true)
    ->RangeMultiplier(2)
    ->Range(kLeast, kMost)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(check_plan)->RangeMultiplier(2)->Range(kLeast, kMost)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
