// Retention at the size of a large cluster: 2,048 hosts of 8 GPUs and a host memory each, in racks
// of 4 and pods of 128 hosts and two datacenters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "core/catalog/holder_choice.hpp"
#include "tests/bench/large_cluster.hpp"

namespace holdfast {
namespace {

using bench::kGpus;

struct Cluster {
  explicit Cluster(std::uint32_t hosts) : domains(bench::make_topology(hosts)) {
    const Topology topology = bench::make_topology(hosts);
    for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
      const NodeKind kind = topology.nodes()[n].kind;
      if (!is_endpoint(kind)) continue;
      RetentionWorker worker;
      worker.worker = WorkerId(workers.size());
      worker.node = NodeId(n);
      worker.host_memory = kind == NodeKind::HostMemory;
      if (worker.host_memory) worker.free = Bytes(1'000'000'000'000);
      workers.push_back(worker);
    }
  }

  FaultDomains domains;
  std::vector<RetentionWorker> workers;
};

// Replicas of `gpus` workers on consecutive hosts, from the first host.
void hold(std::vector<ShardHolding>& holdings, std::uint32_t replicas, std::uint32_t gpus) {
  for (std::uint32_t i = 0; i < replicas * gpus; ++i) {
    holdings.push_back({i % gpus, WorkerId(i / kGpus * (kGpus + 1) + i % kGpus)});
  }
}

// One version of 1.4 TB that `replicas` hold, each of `shards` workers; k = 3 racks.
struct Version {
  Version(const Cluster& cluster, std::uint32_t replicas, std::uint32_t shards_of_replica)
      : shards(shards_of_replica, {Bytes(1'400'000'000'000 / shards_of_replica)}) {
    hold(holdings, replicas, shards_of_replica);
    view = {cluster.workers, shards, holdings, 3, Level::Rack};
  }
  std::vector<RetainedShard> shards;
  std::vector<ShardHolding> holdings;
  Retained view;
};

std::uint32_t hosts_of(const benchmark::State& state) {
  return static_cast<std::uint32_t>(state.range(0)) / kGpus;
}
std::uint32_t shards_of(const benchmark::State& state) {
  return static_cast<std::uint32_t>(state.range(1));
}

// The trainer holds it alone: two more racks for each shard.
void offload_all(benchmark::State& state) {
  const Cluster cluster(hosts_of(state));
  const Version version(cluster, 1, shards_of(state));
  for (auto _ : state) {
    HolderChoice choice = choose_holders(cluster.domains, version.view);
    if (choice.shortfall) state.SkipWithError("not everything was placed");
    benchmark::DoNotOptimize(choice);
  }
}

// Everybody holds it: nothing to do.
void nothing_to_do(benchmark::State& state) {
  const Cluster cluster(hosts_of(state));
  const Version version(cluster, hosts_of(state) * kGpus / shards_of(state), shards_of(state));
  for (auto _ : state) {
    HolderChoice choice = choose_holders(cluster.domains, version.view);
    if (!choice.offloads.empty()) state.SkipWithError("something was to do");
    benchmark::DoNotOptimize(choice);
  }
}

// Less memory than is needed: copies make way for others, and some find no place.
void too_little_memory(benchmark::State& state) {
  Cluster cluster(hosts_of(state));
  const std::uint32_t shards = shards_of(state);
  const Bytes size(1'400'000'000'000 / shards);
  // As many places as copies, but some of them in the holders' own racks.
  std::uint32_t places = 2 * shards;
  for (RetentionWorker& worker : cluster.workers) {
    if (!worker.host_memory) continue;
    const std::uint32_t here = std::min(places, 1 + worker.worker.value() % 3);
    places -= here;
    worker.free = size * here;
  }
  const Version version(cluster, 1, shards);
  for (auto _ : state) benchmark::DoNotOptimize(choose_holders(cluster.domains, version.view));
}

// One of two replicas is overwritten: its shards go to other hosts first.
void leave(benchmark::State& state) {
  const Cluster cluster(hosts_of(state));
  Version version(cluster, 2, shards_of(state));
  version.view.level = Level::Host;
  std::vector<WorkerId> first;
  for (std::uint32_t i = 0; i < shards_of(state); ++i) {
    first.push_back(version.holdings[i].worker);
  }
  for (auto _ : state) {
    LeaveAnswer answer = may_leave(cluster.domains, version.view, first);
    if (answer.start.size() != first.size()) state.SkipWithError("not everything was placed");
    benchmark::DoNotOptimize(answer);
  }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t gpus : {1024, 4096, 16'384}) {
    for (const std::int64_t shards : {8, 128}) benchmark->Args({gpus, shards});
  }
  benchmark->ArgNames({"gpus", "shards"})->Unit(benchmark::kMillisecond);
}

BENCHMARK(offload_all)->Apply(sizes);
BENCHMARK(nothing_to_do)->Apply(sizes);
BENCHMARK(too_little_memory)->Apply(sizes);
BENCHMARK(leave)->Apply(sizes);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
