// The coordinator at 16,384 workers and 16 versions: events a second on one core, the slowest
// thousandth, and the end of 2,000 workers at once. Times are those of its own steps; the
// `expiry` benchmark gives the longest single step.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>

#include "tests/bench/catalog_load.hpp"

namespace holdfast {
namespace {

void mixed_events(benchmark::State& state) {
  bench::CatalogLoad load(static_cast<std::uint32_t>(state.range(0)) / bench::kGpus);
  std::vector<double> times;
  for (auto _ : state) {
    for (int i = 0; i < 20'000; ++i) load.mixed_event();
    const std::vector<double> some = load.take_times();
    state.SetIterationTime(std::accumulate(some.begin(), some.end(), 0.0));
    times.insert(times.end(), some.begin(), some.end());
  }
  state.counters["events_per_s"] =
      static_cast<double>(times.size()) / std::accumulate(times.begin(), times.end(), 0.0);
  state.counters["fetches"] = static_cast<double>(load.ended()) / bench::kGpus;
  std::sort(times.begin(), times.end());
  state.counters["p50_us"] = 1e6 * times[times.size() / 2];
  state.counters["p999_us"] = 1e6 * times[times.size() - 1 - times.size() / 1000];
  state.counters["longest_us"] = 1e6 * times.back();
}

void expiry(benchmark::State& state) {
  for (auto _ : state) {
    bench::CatalogLoad load(16'384 / bench::kGpus);
    load.silence(static_cast<std::uint32_t>(state.range(0)) / bench::kGpus);
    const std::vector<double> times = load.take_times();
    state.SetIterationTime(*std::max_element(times.begin(), times.end()));
  }
}

BENCHMARK(mixed_events)
    ->Arg(1024)
    ->Arg(16'384)
    ->ArgName("workers")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(expiry)->Arg(2'000)->ArgName("workers")->UseManualTime()->Iterations(1)->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
