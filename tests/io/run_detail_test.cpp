#include "core/io/run_detail.hpp"

#include <gtest/gtest.h>

#include <random>

#include <nlohmann/json.hpp>

#include "core/io/results_detail.hpp"
#include "tests/io/results_samples.hpp"

namespace holdfast {
namespace {

// Block by block and domain by domain.
MinimumCrossings by_hand(const Topology& topology, const Demand& demand) {
  MinimumCrossings minimum{std::vector<Bytes>(topology.domains().size()),
                           std::vector<Bytes>(topology.domains().size())};
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    const auto inside = [&](WorkerId worker) {
      const NodeId node = demand.workers[worker.index()].node;
      return topology.around(node, topology.domains()[d].level) == DomainId(d);
    };
    for (const BlockClass& block_class : demand.classes) {
      const auto any = [&](const std::vector<WorkerId>& workers, bool within) {
        return std::any_of(workers.begin(), workers.end(),
                           [&](WorkerId worker) { return inside(worker) == within; });
      };
      for (const BlockId block : blocks_of(block_class)) {
        const Bytes bytes = demand.block_bytes[block.index()];
        if (any(block_class.receivers, true) && !any(block_class.holders, true)) {
          minimum.in[d] += bytes;
        }
        if (any(block_class.receivers, false) && !any(block_class.holders, false)) {
          minimum.out[d] += bytes;
        }
      }
    }
  }
  return minimum;
}

TEST(RunDetail, MinimaAreThoseOfSingleBlocks) {
  const Topology topology = samples::machine(5, 3);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Bytes> blocks;
    for (int b = 0; b < 12; ++b) blocks.emplace_back(1 + random() % 1'000);
    DemandBuilder builder("model", {1, 1}, Bytes(1'000), blocks);
    for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
      if (topology.nodes()[i].kind != NodeKind::Gpu || random() % 3 == 0) continue;
      const WorkerId worker =
          builder.add_worker({NodeId(i), 0, Bytes(1U << 20U), random() % 8 != 0});
      for (std::uint32_t b = 0; b < blocks.size(); ++b) {
        const std::uint64_t what = random() % 6;
        if (what == 0) builder.holds(worker, {BlockId(b), 1});
        if (what > 3) builder.wants(worker, {BlockId(b), 1});
      }
    }
    Demand demand;
    try {
      demand = std::move(builder).build();
    } catch (const Error&) {
      continue;  // nobody holds something
    }
    const MinimumCrossings expected = by_hand(topology, demand);
    const MinimumCrossings minimum = minimum_crossings(topology, demand);
    EXPECT_EQ(minimum.in, expected.in);
    EXPECT_EQ(minimum.out, expected.out);
  }
}

// h0 (dc0) holds four blocks of 1,000; h1 (dc0) misses all, h2 (dc1) the first two. The run sends
// all of them over h0's uplink, 4,000 into h1 and 3,000 into h2 (a block too many).
class DetailTest : public ::testing::Test {
 protected:
  RunRecord run() {
    RunRecord run = results.run();
    run.links.clear();
    use(run, "h0.nic.link", 7'000, true);  // its first end is the bus
    use(run, "h0.uplink", 7'000, true);
    use(run, "h1.uplink", 4'000, false);
    use(run, "h2.uplink", 3'000, false);
    run.shape.depth = 1;
    run.shape.streams.assign(results.topology.channels(), 3);
    run.shape.largest.assign(results.topology.channels(), Bytes(2'500));
    return run;
  }
  void use(RunRecord& run, const char* link, std::uint64_t bytes, bool forwards) {
    const LinkId id = results.topology.find_link(link);
    run.links.push_back({ChannelId(id, !forwards), {Bytes(bytes / 2), Bytes(bytes - bytes / 2)}});
  }
  RunDetail detail() {
    return detail_of(results.context(), minimum_crossings(results.topology, results.task.demand),
                     run());
  }

  samples::Results results;
};

TEST_F(DetailTest, CountsWhatCrossesTheBordersOfDomains) {
  const RunDetail d = detail();
  EXPECT_EQ(d.depth, 1U);
  ASSERT_EQ(d.crossings.size(), 4U);  // hosts and datacenters, in and out; no racks, no pods
  const LevelCrossing& into_hosts = d.crossings[0];
  EXPECT_EQ(into_hosts.level, Level::Host);
  EXPECT_EQ(into_hosts.direction, Direction::In);
  EXPECT_EQ(into_hosts.domains, 2U);
  EXPECT_EQ(into_hosts.bytes, Bytes(7'000));
  EXPECT_EQ(into_hosts.minimum, Bytes(6'000));
  EXPECT_EQ(into_hosts.most.domain, "h1");
  EXPECT_EQ(into_hosts.most.who, "rollout[0]");
  EXPECT_EQ(into_hosts.most.bytes, Bytes(4'000));
  EXPECT_EQ(into_hosts.most.minimum, Bytes(4'000));
  EXPECT_EQ(into_hosts.most.capacity, Rate(1'000'000'000));
  const LevelCrossing& out_of_hosts = d.crossings[1];
  EXPECT_EQ(out_of_hosts.direction, Direction::Out);
  EXPECT_EQ(out_of_hosts.domains, 1U);
  EXPECT_EQ(out_of_hosts.most.domain, "h0");
  EXPECT_EQ(out_of_hosts.most.who, "trainer[0]");
  EXPECT_EQ(out_of_hosts.most.minimum, Bytes(2'000));  // h2 holds the other two blocks
  EXPECT_EQ(out_of_hosts.minimum, Bytes(6'000));       // all that enters hosts has left others
  // The switch lies in no datacenter: what leaves dc0 enters it again, for h1.
  const LevelCrossing& into_datacenters = d.crossings[2];
  EXPECT_EQ(into_datacenters.level, Level::Datacenter);
  EXPECT_EQ(into_datacenters.bytes, Bytes(7'000));
  EXPECT_EQ(into_datacenters.minimum, Bytes(2'000));
}

TEST_F(DetailTest, ListsTheBusiestLinks) {
  results.task.demand.verify = false;
  const RunDetail d = detail();
  ASSERT_EQ(d.busiest.size(), 4U);
  EXPECT_EQ(d.busiest[0].link, "h0.nic.link >");  // of equals the one that comes first
  EXPECT_EQ(d.busiest[0].kind, "pcie");
  EXPECT_FALSE(d.busiest[0].leaves);
  const BusyLink& uplink = d.busiest[1];
  EXPECT_EQ(uplink.link, "h0.uplink >");
  EXPECT_EQ(uplink.kind, "nic");
  EXPECT_EQ(uplink.bytes, Bytes(7'000));
  EXPECT_EQ(uplink.streams, 3U);
  EXPECT_EQ(uplink.busy(), microseconds(7));
  ASSERT_TRUE(uplink.leaves);
  EXPECT_EQ(uplink.leaves->domain, "dc0");  // the outermost
  EXPECT_FALSE(uplink.enters);              // the switch is in no domain
  EXPECT_EQ(d.busiest[3].link, "h2.uplink <");
  ASSERT_TRUE(d.busiest[3].enters);
  EXPECT_EQ(d.busiest[3].enters->domain, "dc1");
  EXPECT_EQ(d.busiest[3].enters->who, "rollout[1]");
  EXPECT_FALSE(d.digest);
}

TEST_F(DetailTest, NamesTheLongestDigest) {
  const RunDetail d = detail();
  ASSERT_TRUE(d.digest);
  EXPECT_EQ(d.digest->worker, "h1.gpu0");
  EXPECT_EQ(d.digest->bytes, Bytes(2'000));
  EXPECT_EQ(d.digest->busy(), microseconds(2));
}

TEST_F(DetailTest, AStreamCapCountsForTheLargestStream) {
  BusyLink link;
  link.bytes = Bytes(10'000);
  link.capacity = Rate(1'000'000);
  EXPECT_EQ(link.busy(), milliseconds(10));
  link.streams = 3;
  link.largest_stream = Bytes(5'000);
  link.stream_cap = Rate(500'000);  // 10 ms as well
  EXPECT_FALSE(link.limited_by_stream());
  link.stream_cap = Rate(250'000);
  EXPECT_TRUE(link.limited_by_stream());
  EXPECT_EQ(link.busy(), milliseconds(20));
}

// run_figures_test.cpp adds the same update up: 18 GPU-seconds where 9 must be.
TEST(GroupWaits, OfReplicasOfOneGroup) {
  samples::Results results;
  auto run = results.run();
  auto waits = waits_of(results.context(), run.completed);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].group, "rollout");
  EXPECT_EQ(waits[0].role, "rollout");
  EXPECT_EQ(waits[0].replicas, 2U);
  EXPECT_EQ(waits[0].gpus, 4U);
  EXPECT_EQ(waits[0].fastest, seconds(4));
  EXPECT_EQ(waits[0].slowest, seconds(5));
  EXPECT_EQ(waits[0].least_bound, seconds(2));
  EXPECT_EQ(waits[0].most_bound, milliseconds(2'500));
  EXPECT_DOUBLE_EQ(waits[0].excess_gpu_s, 9);
  // Faster than the bound, by jitter, takes nothing off the others' excess.
  run.completed[1] = run.completed[2] = seconds(1);
  EXPECT_DOUBLE_EQ(waits_of(results.context(), run.completed)[0].excess_gpu_s, 3);
  results.task.replicas[1].name = "near[0]";
  waits = waits_of(results.context(), run.completed);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].group, "near");
  EXPECT_DOUBLE_EQ(waits[1].excess_gpu_s, 3);
  results.scenario.update.destination = Destination::Shadow;
  EXPECT_TRUE(waits_of(results.context(), run.completed).empty());
}

TEST_F(DetailTest, ReadsWhatWasWritten) {
  RunDetail before = detail();
  before.busiest[2].stream_cap = Rate(5);
  before.waits = {{"near", "rollout", 2, 16, seconds(1), seconds(2), milliseconds(300),
                   milliseconds(400), 2.5}};
  nlohmann::ordered_json written;
  add_detail(written, before);
  const std::string text = written.dump();
  const JsonDocument document = JsonDocument::parse(text, "s.json");
  nlohmann::ordered_json again;
  add_detail(again, read_detail(document.root()));
  EXPECT_EQ(again.dump(), text);
}

}  // namespace
}  // namespace holdfast
