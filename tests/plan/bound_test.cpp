// The bound against closed forms. The system and the expected cut stand above each case.
#include "core/plan/bound.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::changed;
using testing_support::ClusterShape;
using testing_support::DemandShape;
using testing_support::make_cluster;
using testing_support::make_demand;

constexpr std::uint64_t kMiB = 1 << 20;

std::string refuted(const Cut& cut, const Topology& topology, const Demand& demand) {
  return refute(cut, topology, demand).value_or("");
}

DemandWorker worker(const Topology& topology, const std::string& name, std::uint32_t group) {
  return {topology.find_node(name), group, Bytes(), true};
}

Topology without_nics(const Topology& topology) {
  return changed(
      topology, [](Node& node) { node.up = node.kind != NodeKind::Nic; }, [](Link&) {});
}

// Both ways to look for cuts, since these topologies are structured.
class BoundTest : public ::testing::TestWithParam<BoundMode> {
 protected:
  static Bound bound(const Topology& topology, const Demand& demand) {
    Bound found = lower_bound(topology, demand, GetParam());
    EXPECT_EQ(refuted(found.cut, topology, demand), "");
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, BoundTest,
                         ::testing::Values(BoundMode::Exact, BoundMode::Structured),
                         [](const auto& param) {
                           return param.param == BoundMode::Exact ? "Exact" : "Structured";
                         });

// From GPU i over PCIe (2 x 200 ns), one switch (2 x 1 us) and PCIe to another host's GPU.
constexpr Time kOneWay = picoseconds(2'800'000);

// 16 hosts on one switch, GPU i of each wants shard i of host 0: 8 shards through 8 NICs.
TEST_P(BoundTest, ShardsEnterAHostThroughItsNics) {
  const Topology topology = make_cluster({.hosts = 16});
  const Demand demand = make_demand(topology, {.blocks = 1000});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.bytes, Bytes(8'000 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(400'000'000'000));
  EXPECT_EQ(found.cut.channels.size(), 8U);
  EXPECT_EQ(found.cut.classes.size(), 8U);
  EXPECT_EQ(found.cut.receivers.size(), 8U);
  // 1 MiB is digested at 2 TB/s in 524,288 ps.
  EXPECT_EQ(found.cut.latency, kOneWay * 2 + picoseconds(524'288));
  // 8,388,608,000 bytes at 400 GB/s.
  EXPECT_EQ(found.time(), picoseconds(20'971'520'000) + found.cut.latency);
  ASSERT_EQ(found.by_group.size(), 16U);
  EXPECT_EQ(found.by_group[0], Time());
  for (std::size_t g = 1; g < 16; ++g) EXPECT_EQ(found.by_group[g], found.time()) << g;
}

// Every GPU wants all from GPU 0 of host 0. Another host, and so each of its GPUs: 8 NICs of 50. A
// GPU of the holder's host: NVLink 450 and PCIe 55, which several NICs can fill.
TEST_P(BoundTest, OneCopyEntersAHostThroughAllItsNics) {
  const Topology topology = make_cluster({.hosts = 4});
  const Demand demand = make_demand(topology, {.sharded = false, .blocks = 1000});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.kind, CutKind::Receiver);
  EXPECT_EQ(found.cut.sink, "d0.r0.h1.gpu0");
  EXPECT_EQ(found.cut.channels.size(), 8U);
  EXPECT_EQ(found.cut.bytes, Bytes(8'000 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(400'000'000'000));
  EXPECT_EQ(found.time(), picoseconds(20'971'520'000) + found.cut.latency);
  // Over NVLink: two ports.
  EXPECT_EQ(found.by_group[1], transfer_time(found.cut.bytes, Rate(505'000'000'000)) -
                                   picoseconds(1) + microseconds(2) + picoseconds(524'288));
}

// One host, every GPU wants all from GPU 0: 450 GB/s of NVLink. PCIe is not for GPUs that NVLink
// joins; through the switch outside, PCIe carries 55 more while the NICs are up.
TEST_P(BoundTest, NvLinkLimitsOneHost) {
  const Topology with_nics = make_cluster({.hosts = 1});
  const Demand demand = make_demand(with_nics, {.sharded = false, .blocks = 1000});
  const Bound wide = bound(with_nics, demand);
  EXPECT_EQ(wide.cut.capacity, Rate(505'000'000'000));
  EXPECT_EQ(wide.cut.bytes, Bytes(8'000 * kMiB));
  const Bound found = bound(without_nics(with_nics), demand);
  EXPECT_EQ(found.cut.capacity, Rate(450'000'000'000));
  EXPECT_EQ(found.cut.bytes, Bytes(8'000 * kMiB));
  EXPECT_EQ(found.cut.latency, microseconds(1) * 2 + picoseconds(524'288));
}

// Without NVLink GPUs do read each other over PCIe.
TEST_P(BoundTest, PcieJoinsGpusWithoutNvLink) {
  const Topology topology = without_nics(make_cluster({.hosts = 1, .nvlink = false}));
  const Demand demand = make_demand(topology, {.sharded = false, .blocks = 10});
  EXPECT_EQ(bound(topology, demand).cut.capacity, Rate(55'000'000'000));
}

// Eight shards from host memory: each GPU has one PCIe port of 55, the host's memory sends 400.
// Memory is the narrower: 8 x 55 = 440.
TEST_P(BoundTest, HostMemoryFeedsTheGpusOverPcie) {
  for (const auto& rates : {std::pair(400U, 400U), std::pair(500U, 440U)}) {
    const std::uint32_t memory_rate = rates.first;
    const std::uint32_t limit = rates.second;
    const Topology topology = changed(
        make_cluster({.hosts = 1}), [](Node&) {},
        [&](Link& link) {
          if (link.kind == LinkKind::Memory) {
            link.capacity = Rate(std::uint64_t{memory_rate} * 1'000'000'000);
          }
        });
    DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(800, Bytes(kMiB)));
    builder.holds(builder.add_worker(worker(topology, "d0.r0.h0.mem", 0)), {BlockId(0U), 800});
    for (std::uint32_t g = 0; g < 8; ++g) {
      const std::string gpu = "d0.r0.h0.gpu" + std::to_string(g);
      builder.wants(builder.add_worker(worker(topology, gpu, 1)), {BlockId(g * 100), 100});
    }
    const Demand demand = std::move(builder).build();
    const Bound found = bound(topology, demand);
    // Host memory also reaches the NICs, but these lead back through the GPUs' PCIe ports.
    EXPECT_EQ(found.cut.bytes, Bytes(800 * kMiB));
    EXPECT_EQ(found.cut.capacity, Rate(std::uint64_t{limit} * 1'000'000'000));
    EXPECT_EQ(found.by_group[1], found.time());
  }
}

// The memory of one host holds all; its way to NICs and to GPUs is the same eight channels to the
// PCIe switches, here of 30: less than its 8 NICs of 50, though twice that is more.
Topology with_narrow_roots(const Topology& topology) {
  return changed(
      topology, [](Node&) {},
      [](Link& link) {
        if (link.name.find(".root") != std::string::npos && link.kind == LinkKind::Pcie) {
          link.capacity = Rate(30'000'000'000);
        }
      });
}

// `holders` beside that memory hold all; the GPUs of the hosts want a shard each, group by host.
Demand from_memory(const Topology& topology, const std::string& memory,
                   const std::vector<std::string>& holders, const std::vector<std::string>& hosts) {
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(800, Bytes(kMiB)));
  builder.holds(builder.add_worker(worker(topology, memory, 90)), {BlockId(0U), 800});
  for (const std::string& name : holders) {
    builder.holds(builder.add_worker(worker(topology, name, 91)), {BlockId(0U), 800});
  }
  for (std::uint32_t h = 0; h < hosts.size(); ++h) {
    for (std::uint32_t g = 0; g < 8; ++g) {
      const std::string gpu = hosts[h] + ".gpu" + std::to_string(g);
      builder.wants(builder.add_worker(worker(topology, gpu, h)), {BlockId(g * 100), 100});
    }
  }
  return std::move(builder).build();
}

TEST_P(BoundTest, HostMemoryFeedsNicsAndGpusThroughTheSameSwitches) {
  const Topology topology = with_narrow_roots(make_cluster({.hosts = 3}));
  const Demand demand =
      from_memory(topology, "d0.r0.h0.mem", {}, {"d0.r0.h0", "d0.r0.h1", "d0.r0.h2"});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.bytes, Bytes(800 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(240'000'000'000));
  EXPECT_EQ(found.cut.channels.size(), 8U);
  const Time crossing = transfer_time(Bytes(800 * kMiB), Rate(240'000'000'000));
  for (std::size_t g = 0; g < 3; ++g) {
    EXPECT_GE(found.by_group[g], crossing) << g;
    EXPECT_LE(found.by_group[g], found.time()) << g;
  }
}

// Memory in the far datacenter and GPUs in the near one hold all: what enters the far datacenter,
// 12.5, and what its memory sends there, 240, bring everything; neither limits alone.
TEST_P(BoundTest, HoldersNearAndFarLimitTogether) {
  const Topology topology = with_narrow_roots(make_cluster({.datacenters = 2, .hosts = 3}));
  const Demand demand = from_memory(topology, "d1.r0.h0.mem", {"d0.r0.h0.gpu0", "d0.r0.h1.gpu0"},
                                    {"d1.r0.h0", "d1.r0.h1", "d1.r0.h2"});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.bytes, Bytes(800 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(252'500'000'000));
  EXPECT_EQ(found.cut.channels.size(), 9U);
  const Time crossing = transfer_time(Bytes(800 * kMiB), Rate(252'500'000'000));
  for (std::size_t g = 0; g < 3; ++g) {
    EXPECT_GE(found.by_group[g], crossing) << g;
    EXPECT_LE(found.by_group[g], found.time()) << g;
  }
}

// Two datacenters joined by 12.5 GB/s, 15 ms one way.
TEST_P(BoundTest, TheWanLimitsTheFarDatacenter) {
  const Topology topology = make_cluster({.datacenters = 2, .hosts = 4});
  const Demand demand = make_demand(topology, {.blocks = 100});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.bytes, Bytes(800 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(12'500'000'000));
  ASSERT_EQ(found.cut.channels.size(), 1U);
  EXPECT_EQ(topology.link(found.cut.channels[0].link()).kind, LinkKind::Wan);
  // Leaf to gateway twice more than within a datacenter.
  const Time way = kOneWay + milliseconds(15) + microseconds(2);
  EXPECT_EQ(found.cut.latency, way * 2 + picoseconds(524'288));
  EXPECT_EQ(found.time(),
            found.cut.latency + transfer_time(Bytes(800 * kMiB), Rate(12'500'000'000)));
  EXPECT_LT(found.by_group[1], milliseconds(30));
  for (std::size_t g = 4; g < 8; ++g) EXPECT_EQ(found.by_group[g], found.time()) << g;
}

// The holder's NICs are slower than everyone else's: it is the source that limits.
TEST_P(BoundTest, ASlowHolderLimits) {
  const Topology topology = changed(
      make_cluster({.hosts = 4}), [](Node&) {},
      [](Link& link) {
        if (link.kind == LinkKind::Fabric && link.name.starts_with("d0.r0.h0.")) {
          link.capacity = Rate(20'000'000'000);
        }
      });
  const Bound found = bound(topology, make_demand(topology, {.blocks = 100}));
  EXPECT_EQ(found.cut.capacity, Rate(160'000'000'000));
  EXPECT_EQ(found.cut.bytes, Bytes(800 * kMiB));
  for (std::size_t g = 1; g < 4; ++g) EXPECT_GE(found.by_group[g], found.time()) << g;
}

// One GPU holds all and no one else in its host takes part: what leaves it over PCIe, 55 GB/s.
TEST_P(BoundTest, ALoneHolderSendsOverItsOwnPcie) {
  const Topology topology = make_cluster({.hosts = 3});
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(800, Bytes(kMiB)));
  builder.holds(builder.add_worker(worker(topology, "d0.r0.h0.gpu0", 0)), {BlockId(0U), 800});
  for (std::uint32_t g = 0; g < 8; ++g) {
    const std::string gpu = "d0.r0.h1.gpu" + std::to_string(g);
    builder.wants(builder.add_worker(worker(topology, gpu, 1)), {BlockId(0U), 800});
  }
  const Demand demand = std::move(builder).build();
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.capacity, Rate(55'000'000'000));
  EXPECT_EQ(found.by_group[1], found.time());
}

// Nobody may relay: the holder's NICs carry a copy for each of three hosts.
TEST_P(BoundTest, CopiesLimitWhereReceiversDoNotServe) {
  const Topology topology = make_cluster({.hosts = 4});
  Demand demand = make_demand(topology, {.blocks = 100});
  for (std::size_t i = 8; i < demand.workers.size(); ++i) demand.workers[i].may_serve = false;
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.kind, CutKind::Copies);
  EXPECT_EQ(found.cut.unit, Level::Host);
  EXPECT_EQ(found.cut.bytes, Bytes(3 * 800 * kMiB));
  EXPECT_EQ(found.cut.capacity, Rate(400'000'000'000));
}

TEST_P(BoundTest, DigestsLimit) {
  const Topology topology = make_cluster({.hosts = 3, .digest_rate = Rate(10'000'000'000)});
  const Demand demand = make_demand(topology, {.blocks = 100});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.kind, CutKind::Digest);
  EXPECT_EQ(found.cut.bytes, Bytes(100 * kMiB));
  EXPECT_EQ(found.cut.latency, kOneWay * 2);
  EXPECT_EQ(found.by_group[1], found.time());
  DemandShape plain{.blocks = 100};
  plain.verify = false;
  EXPECT_NE(bound(topology, make_demand(topology, plain)).cut.kind, CutKind::Digest);
}

TEST_P(BoundTest, ADigestRateOfZeroIsRefusedByName) {
  const Topology topology = changed(
      make_cluster({.hosts = 2}),
      [](Node& node) {
        if (node.name == "d0.r0.h1.gpu3") node.digest_rate = Rate(0);
      },
      [](Link&) {});
  try {
    (void)lower_bound(topology, make_demand(topology, {}), GetParam());
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadValue);
    EXPECT_NE(error.message().find("d0.r0.h1.gpu3"), std::string::npos);
  }
}

// Host 1 is cut off: its group never completes, the others do.
TEST_P(BoundTest, ACutOffHostNeverCompletes) {
  const Topology topology = changed(
      make_cluster({.hosts = 3}), [](Node&) {},
      [](Link& link) {
        if (link.kind == LinkKind::Fabric && link.name.starts_with("d0.r0.h1.")) link.up = false;
      });
  const Bound found = bound(topology, make_demand(topology, {}));
  EXPECT_EQ(found.time(), Time::never());
  EXPECT_EQ(found.by_group[1], Time::never());
  EXPECT_LT(found.by_group[2], seconds(1));
}

// A receiver that already has part of what it wants misses the rest alone.
TEST_P(BoundTest, HeldPartsDoNotCross) {
  const Topology topology = make_cluster({.hosts = 2, .gpus = 1, .nics = 1});
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(100, Bytes(kMiB)));
  builder.holds(builder.add_worker(worker(topology, "d0.r0.h0.gpu0", 0)), {BlockId(0U), 100});
  const WorkerId w = builder.add_worker(worker(topology, "d0.r0.h1.gpu0", 1));
  builder.holds(w, {BlockId(0U), 40});
  builder.wants(w, {BlockId(0U), 100});
  EXPECT_EQ(bound(topology, std::move(builder).build()).cut.bytes, Bytes(60 * kMiB));
}

// A group over two hosts is one sink: what both want crosses once.
TEST_P(BoundTest, AGroupOverTwoHostsIsOneSink) {
  const Topology topology = make_cluster({.hosts = 3, .gpus = 2, .nics = 2});
  Demand demand = make_demand(topology, {.blocks = 100});
  for (std::size_t i = 2; i < 6; ++i) demand.workers[i].group = 1;
  const Bound found = bound(topology, demand);
  // Each host alone wants two shards through its own two NICs; both together bring in the same two
  // over four. The group's bound is that of a member's host... of its members alone at least.
  EXPECT_GE(found.by_group[1], transfer_time(Bytes(200 * kMiB), Rate(200'000'000'000)));
  EXPECT_LE(found.by_group[1], found.time());
}

TEST(Bound, NothingMissingIsNoTime) {
  const Topology topology = make_cluster({.hosts = 2});
  Demand demand;
  demand.workers.push_back(worker(topology, "d0.r0.h0.gpu0", 0));
  const Bound found = lower_bound(topology, demand);
  EXPECT_EQ(found.time(), Time());
  EXPECT_EQ(found.by_group, std::vector<Time>{Time()});
  EXPECT_EQ(refuted(found.cut, topology, demand), "");
}

}  // namespace
}  // namespace holdfast
