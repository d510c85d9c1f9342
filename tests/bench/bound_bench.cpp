// How the bound's time grows with the cluster: rail-optimised, 8 GPUs and 8 NICs a host, pods of 32
// hosts with a leaf for each rail, two spines a rail; TP=8 and TP=1, one holder replica.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/bound.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kGpus = 8;
constexpr std::uint32_t kHostsOfPod = 32;
constexpr std::uint64_t kGiga = 1'000'000'000;

class Cluster {
 public:
  explicit Cluster(std::uint32_t hosts) : builder_("rails") {
    const DomainId datacenter = builder_.add_domain("dc", Level::Datacenter);
    std::vector<NodeId> spines;
    for (std::uint32_t s = 0; s < 2 * kGpus; ++s) {
      spines.push_back(node(fmt::format("spine{}", s), NodeKind::Spine, datacenter));
    }
    for (std::uint32_t p = 0; p * kHostsOfPod < hosts; ++p) {
      const DomainId pod = builder_.add_domain(fmt::format("pod{}", p), Level::Pod, datacenter);
      std::vector<NodeId> leaves;
      for (std::uint32_t r = 0; r < kGpus; ++r) {
        leaves.push_back(node(fmt::format("pod{}.leaf{}", p, r), NodeKind::Switch, pod));
        for (std::uint32_t k = 0; k < 2; ++k) {
          link(leaves[r], spines[2 * r + k], LinkKind::Fabric, 400, microseconds(1));
        }
      }
      for (std::uint32_t h = 0; h < kHostsOfPod; ++h) {
        add_host(builder_.add_domain(fmt::format("pod{}.host{}", p, h), Level::Host, pod), leaves);
      }
    }
  }

  Topology build() { return builder_.build(); }
  [[nodiscard]] const std::vector<NodeId>& gpus() const { return gpus_; }

 private:
  NodeId node(std::string name, NodeKind kind, DomainId domain) {
    Node n;
    n.name = std::move(name);
    n.kind = kind;
    n.domain = domain;
    if (is_endpoint(kind)) {
      n.memory = Bytes(80 * kGiga);
      n.digest_rate = Rate(2'000 * kGiga);
    }
    return builder_.add_node(std::move(n));
  }

  void link(NodeId a, NodeId b, LinkKind kind, std::uint64_t gigabytes, Time latency) {
    Link l;
    l.name = fmt::format("link{}", links_++);
    l.a = a;
    l.b = b;
    l.kind = kind;
    l.capacity = Rate(gigabytes * kGiga);
    l.latency = latency;
    builder_.add_link(std::move(l));
  }

  void add_host(DomainId host, const std::vector<NodeId>& leaves) {
    const std::string prefix = builder_.so_far().domain(host).name;
    const NodeId root = node(prefix + ".root", NodeKind::PcieSwitch, host);
    const NodeId memory = node(prefix + ".memory", NodeKind::HostMemory, host);
    const NodeId nvswitch = node(prefix + ".nvswitch", NodeKind::NvSwitch, host);
    link(memory, root, LinkKind::Memory, 250, nanoseconds(100));
    for (std::uint32_t g = 0; g < kGpus; ++g) {
      const NodeId pcie = node(fmt::format("{}.pcie{}", prefix, g), NodeKind::PcieSwitch, host);
      const NodeId gpu = node(fmt::format("{}.gpu{}", prefix, g), NodeKind::Gpu, host);
      const NodeId nic = node(fmt::format("{}.nic{}", prefix, g), NodeKind::Nic, host);
      link(pcie, root, LinkKind::Pcie, 55, nanoseconds(250));
      link(gpu, pcie, LinkKind::Pcie, 55, nanoseconds(250));
      link(nic, pcie, LinkKind::Pcie, 55, nanoseconds(250));
      link(gpu, nvswitch, LinkKind::NvLink, 450, nanoseconds(500));
      link(nic, leaves[g], LinkKind::Fabric, 25, microseconds(1));
      gpus_.push_back(gpu);
    }
  }

  TopologyBuilder builder_;
  std::vector<NodeId> gpus_;
  std::uint32_t links_ = 0;
};

Demand make_demand(const std::vector<NodeId>& gpus, bool sharded) {
  constexpr std::uint32_t kBlocks = 1'024;  // of an eighth of the model
  const Bytes block(17'600'000'000U / kBlocks);
  DemandBuilder builder("70b", {0, 1}, block, std::vector<Bytes>(kBlocks * kGpus, block));
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    const std::uint32_t group = sharded ? i / kGpus : i;
    const WorkerId w = builder.add_worker({gpus[i], group, Bytes(80 * kGiga), true});
    const BlockSpan shard = sharded ? BlockSpan{BlockId(i % kGpus * kBlocks), kBlocks}
                                    : BlockSpan{BlockId(0U), kBlocks * kGpus};
    if (group == 0) {
      builder.holds(w, shard);
    } else {
      builder.wants(w, shard);
    }
  }
  return std::move(builder).build();
}

void bound_of_cluster(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  Cluster cluster(gpus / kGpus);
  const Topology topology = cluster.build();
  const Demand demand = make_demand(cluster.gpus(), state.range(1) == 8);
  Time time;
  for (auto _ : state) {
    time = lower_bound(topology, demand).time();
    benchmark::DoNotOptimize(time);
  }
  state.counters["bound_s"] = time.seconds();
  state.SetComplexityN(state.range(0));
}
BENCHMARK(bound_of_cluster)
    ->ArgNames({"gpus", "tp"})
    ->ArgsProduct({{1024, 2048, 4096, 8192, 16384}, {8, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

// What checking the certificate costs.
void refute_of_cluster(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  Cluster cluster(gpus / kGpus);
  const Topology topology = cluster.build();
  const Demand demand = make_demand(cluster.gpus(), true);
  const Bound bound = lower_bound(topology, demand);
  for (auto _ : state) {
    if (refute(bound.cut, topology, demand)) state.SkipWithError("the certificate is refuted");
  }
}
BENCHMARK(refute_of_cluster)->ArgName("gpus")->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
