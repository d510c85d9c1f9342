#include "core/io/run_figures.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/io/results_samples.hpp"

namespace holdfast {
namespace {

// The update of results_samples.hpp: replica 0 holds; 1 and 2 receive on two GPUs each.
//
//   completed: h1.gpu0 3 s, h1.gpu1 5 s; h2.gpu0 4 s, h2.gpu1 (missed nothing) 0 s
//   a replica waits until its last worker has all: 2 GPUs x 5 s + 2 GPUs x 4 s = 18 GPU-seconds
//   bound: 2 x 2 s + 2 x 2.5 s = 9 GPU-seconds; a share of one half
TEST(RunFigures, EveryGpuWaitsForItsWholeReplica) {
  const samples::Results results;
  const auto completed = results.run().completed;
  const Stall stall = stall_of(results.context(), completed);
  EXPECT_DOUBLE_EQ(stall.rollout.seconds(), 18.0);
  EXPECT_DOUBLE_EQ(stall.bound.seconds(), 9.0);
  ASSERT_TRUE(stall.fraction());
  EXPECT_DOUBLE_EQ(*stall.fraction(), 0.5);
}

TEST(RunFigures, NobodyWaitsForAShadow) {
  samples::Results results;
  results.scenario.update.destination = Destination::Shadow;
  const Stall stall = stall_of(results.context(), results.run().completed);
  EXPECT_EQ(stall.rollout.seconds(), 0);
  EXPECT_EQ(stall.bound.seconds(), 0);
  EXPECT_FALSE(stall.fraction());
}

TEST(RunFigures, TrainersAndHostMemoryDoNotStall) {
  samples::Results results;
  results.task.replicas[2].role = Role::Trainer;
  EXPECT_DOUBLE_EQ(stall_of(results.context(), results.run().completed).rollout.seconds(), 10.0);
  results.task.demand.workers[2].node = results.topology.find_node("h1.mem");
  EXPECT_DOUBLE_EQ(stall_of(results.context(), results.run().completed).rollout.seconds(), 5.0);
}

// 16,384 GPUs that wait for 3 hours: more picoseconds than 64 bits hold.
TEST(RunFigures, SumsDoNotOverflow) {
  GpuTime sum;
  for (int i = 0; i < 16'384; ++i) {
    sum.picoseconds += static_cast<GpuTime::Wide>(seconds(10'800).picoseconds());
  }
  EXPECT_DOUBLE_EQ(sum.seconds(), 16'384.0 * 10'800.0);
}

// Domain by domain and block by block.
Bytes minimum_by_hand(const Topology& topology, const Demand& demand, Level level) {
  Bytes total;
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    if (topology.domains()[d].level != level) {
      continue;
    }
    const auto inside = [&](WorkerId worker) {
      return topology.around(demand.workers[worker.index()].node, level) == DomainId(d);
    };
    for (const BlockClass& block_class : demand.classes) {
      bool held = false;
      bool missed = false;
      for (const WorkerId worker : block_class.holders) {
        held = held || (inside(worker) && demand.workers[worker.index()].may_serve);
      }
      for (const WorkerId worker : block_class.receivers) {
        missed = missed || inside(worker);
      }
      for (const BlockId block : blocks_of(block_class)) {
        total += missed && !held ? demand.block_bytes[block.index()] : Bytes();
      }
    }
  }
  return total;
}

TEST(RunFigures, MinimumCountsEachByteOnceADomain) {
  const Topology topology = samples::machine(4, 4);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Bytes> blocks;
    for (int b = 0; b < 12; ++b) {
      blocks.emplace_back(1 + random() % 100);
    }
    DemandBuilder builder("m", {1, 1}, Bytes(100), blocks);
    const auto source = builder.add_worker(
        {topology.find_node("h" + std::to_string(random() % 4) + ".mem"), 0, Bytes(1 << 20), true});
    builder.holds(source, {BlockId(0U), 12});
    for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
      if (topology.node(NodeId(n)).kind != NodeKind::Gpu || random() % 2 == 0) {
        continue;
      }
      const bool serve = random() % 4 != 0;
      const auto worker = builder.add_worker({NodeId(n), 1 + n, Bytes(1 << 20), serve});
      const auto first = static_cast<std::uint32_t>(random() % 6);
      builder.wants(worker, {BlockId(first), 6});
      if (random() % 2 == 0) {
        builder.holds(worker, {BlockId(first), static_cast<std::uint32_t>(1 + random() % 5)});
      }
    }
    Demand demand;
    try {
      demand = std::move(builder).build();
    } catch (const Error&) {
      continue;  // nobody wants anything
    }
    // Who may not serve is no holder, even where a class lists it.
    for (DemandWorker& worker : demand.workers) {
      worker.may_serve = worker.may_serve && random() % 4 != 0;
    }
    const PayloadBytes minimum = minimum_bytes(topology, demand);
    EXPECT_EQ(minimum.nic, minimum_by_hand(topology, demand, Level::Host));
    EXPECT_EQ(minimum.wan, minimum_by_hand(topology, demand, Level::Datacenter));
    Bytes gpu;
    for (const BlockClass& block_class : demand.classes) {
      gpu += bytes_of(demand, block_class) * block_class.receivers.size();
    }
    EXPECT_EQ(minimum.gpu, gpu);
  }
}

}  // namespace
}  // namespace holdfast
