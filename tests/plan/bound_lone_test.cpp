// Bounds of workers that have a class to themselves in their host, against numbers worked out by
// hand, and what refute() says of them.
#include "core/plan/bound_lone.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/plan/bound.hpp"
#include "core/plan/bound_walk.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::changed;
using testing_support::make_cluster;
using testing_support::make_demand;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kBlocks = 100;  // of a shard
constexpr Rate kSlow(5'000'000'000);
// From a GPU over PCIe (2 x 200 ns), one switch (2 x 1 us) and PCIe to another host's GPU.
constexpr Time kOneWay = picoseconds(2'800'000);
constexpr Time kDigest = picoseconds(524'288);  // 1 MiB at 2 TB/s
// 100 MiB at 5 GB/s, and request, data and the digest of the last block.
constexpr Time kShard = picoseconds(20'971'520'000) + kOneWay * 2 + kDigest;

const std::string kHost = "d0.r0.h1.";

// Three hosts of eight GPUs with a NIC each on one switch; one GPU's PCIe link is slow.
Topology slow_pcie(const std::string& gpu) {
  return changed(
      make_cluster({.hosts = 3}), [](Node&) {},
      [&](Link& link) {
        if (link.kind == LinkKind::Pcie && link.name.starts_with(gpu + "-")) link.capacity = kSlow;
      });
}

class LoneBound : public ::testing::TestWithParam<BoundMode> {
 protected:
  static Bound bound(const Topology& topology, const Demand& demand) {
    Bound found = lower_bound(topology, demand, GetParam());
    EXPECT_EQ(refute(found.cut, topology, demand).value_or(""), "");
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, LoneBound,
                         ::testing::Values(BoundMode::Exact, BoundMode::Structured),
                         [](const auto& param) {
                           return param.param == BoundMode::Exact ? "Exact" : "Structured";
                         });

// GPU i of every host has shard i: shard 3 reaches GPU 3 of host 1 over its PCIe link alone, since
// nobody who could send it over NVLink wants it.
TEST_P(LoneBound, AShardComesOverTheReceiversOwnPcie) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  const Demand demand = make_demand(topology, {.blocks = kBlocks});
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.kind, CutKind::Receiver);
  EXPECT_EQ(found.cut.sink, kHost + "gpu3");
  EXPECT_EQ(found.cut.bytes, Bytes(kBlocks * kMiB));
  EXPECT_EQ(found.cut.capacity, kSlow);
  ASSERT_EQ(found.cut.channels.size(), 1U);
  EXPECT_EQ(topology.node(topology.head(found.cut.channels[0])).name, kHost + "gpu3");
  EXPECT_EQ(found.cut.latency, kOneWay * 2 + kDigest);
  EXPECT_EQ(found.time(), kShard);
  EXPECT_EQ(found.by_group[1], kShard);
  EXPECT_LT(found.by_group[2], milliseconds(5));  // the other host
}

// The same link on the way out. GPU 4 of the holder's host passes another class on, which flows
// that merge classes take for a way out for everything.
TEST_P(LoneBound, AShardLeavesOverTheHoldersOwnPcie) {
  const Topology topology = slow_pcie("d0.r0.h0.gpu3");
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(2 * kBlocks, Bytes(kMiB)));
  const auto add = [&](const std::string& gpu, std::uint32_t group) {
    return builder.add_worker({topology.find_node(gpu), group, Bytes(1ULL << 40), true});
  };
  const BlockSpan first{BlockId(0U), kBlocks};
  const BlockSpan second{BlockId(kBlocks), kBlocks};
  builder.holds(add("d0.r0.h0.gpu3", 0), first);
  builder.wants(add("d0.r0.h0.gpu4", 1), second);
  builder.holds(add("d0.r0.h1.gpu0", 2), second);
  builder.wants(add("d0.r0.h1.gpu3", 3), first);
  builder.wants(add("d0.r0.h2.gpu3", 4), {BlockId(0U), 2 * kBlocks});
  const Demand demand = std::move(builder).build();
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.kind, CutKind::Domain);
  EXPECT_EQ(found.cut.sink, "all receivers");
  EXPECT_EQ(found.cut.bytes, Bytes(kBlocks * kMiB));
  EXPECT_EQ(found.cut.receivers.size(), 2U);
  ASSERT_EQ(found.cut.channels.size(), 1U);
  EXPECT_EQ(topology.node(topology.tail(found.cut.channels[0])).name, "d0.r0.h0.gpu3");
  EXPECT_EQ(found.time(), kShard);
}

// Two hosts hold the shards: the slow GPU need not send at all.
TEST_P(LoneBound, ASecondHolderSendsInstead) {
  const Topology topology = slow_pcie("d0.r0.h0.gpu3");
  const Demand demand = make_demand(topology, {.replicas = 2, .blocks = kBlocks});
  EXPECT_LT(bound(topology, demand).time(), milliseconds(5));
}

// GPU 4 of the host wants shard 3 as well or holds it; whether it may pass it on decides.
enum class Other { Receives, ReceivesOnly, Holds, HoldsOnly };
Demand with_other(const Topology& topology, Other other, bool slow_one_serves = true) {
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(kBlocks, Bytes(kMiB)));
  const auto add = [&](const std::string& gpu, std::uint32_t group, bool serves) {
    return builder.add_worker({topology.find_node(gpu), group, Bytes(1ULL << 40), serves});
  };
  const bool serves = other == Other::Receives || other == Other::Holds;
  const BlockSpan all{BlockId(0U), kBlocks};
  builder.holds(add("d0.r0.h0.gpu3", 0, true), all);
  builder.wants(add(kHost + "gpu3", 1, slow_one_serves), all);
  const WorkerId w = add(kHost + "gpu4", 2, serves);
  if (other == Other::Holds || other == Other::HoldsOnly) {
    builder.holds(w, all);
  } else {
    builder.wants(w, all);
  }
  builder.wants(add("d0.r0.h2.gpu3", 3, true), all);
  return std::move(builder).build();
}

TEST_P(LoneBound, AMemberThatPassesItOnMakesItUseless) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  for (const Other other : {Other::Receives, Other::Holds}) {
    for (const bool slow_one_serves : {true, false}) {
      const Bound found = bound(topology, with_other(topology, other, slow_one_serves));
      EXPECT_LT(found.by_group[1], milliseconds(5));
    }
  }
}

TEST_P(LoneBound, AMemberThatMayNotServeDoesNot) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  for (const Other other : {Other::ReceivesOnly, Other::HoldsOnly}) {
    for (const bool slow_one_serves : {true, false}) {
      const Bound found = bound(topology, with_other(topology, other, slow_one_serves));
      EXPECT_EQ(found.by_group[1], kShard);
      EXPECT_EQ(found.time(), kShard);
    }
  }
  // The other one, whose links are fast, may read over NVLink from the slow one if that may serve;
  // neither way is it the one that is late.
  const Bound found = bound(topology, with_other(topology, Other::ReceivesOnly, false));
  EXPECT_LT(found.by_group[2], milliseconds(5));
}

// Several classes of its own add up, one that others share does not count: 100 and 60 of 200 MiB.
TEST_P(LoneBound, OnlyClassesOfItsOwnCount) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(200, Bytes(kMiB)));
  const auto add = [&](const std::string& gpu, std::uint32_t group) {
    return builder.add_worker({topology.find_node(gpu), group, Bytes(1ULL << 40), true});
  };
  const WorkerId holder = add("d0.r0.h0.gpu3", 0);
  const WorkerId other_holder = add("d0.r0.h0.gpu4", 0);
  builder.holds(holder, {BlockId(0U), 100});
  builder.holds(other_holder, {BlockId(100U), 100});
  builder.wants(add(kHost + "gpu3", 1), {BlockId(0U), 200});
  builder.wants(add(kHost + "gpu4", 2), {BlockId(160U), 40});
  const Demand demand = std::move(builder).build();
  const Bound found = bound(topology, demand);
  EXPECT_EQ(found.cut.bytes, Bytes(160 * kMiB));
  EXPECT_EQ(found.cut.classes.size(), 2U);
  EXPECT_EQ(found.time(), transfer_time(Bytes(160 * kMiB), kSlow) + kOneWay * 2 + kDigest);
}

// --- The certificate -----------------------------------------------------------------------------

TEST(LoneCertificate, TamperedOnesAreRefused) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  const Demand demand = make_demand(topology, {.blocks = kBlocks});
  const Cut cut = lower_bound(topology, demand).cut;
  ASSERT_EQ(cut.classes.size(), 1U);
  const auto retimed = [&](Cut c) {
    c.capacity = Rate(0);
    for (const ChannelId channel : c.channels) {
      c.capacity += topology.link(channel.link()).capacity;
    }
    c.bytes = Bytes(c.classes.size() * kBlocks * kMiB);
    const auto picoseconds_of =
        static_cast<std::int64_t>(static_cast<double>(c.bytes.count()) * 1e12 /
                                  static_cast<double>(c.capacity.bytes_per_second()));
    c.time = Time(picoseconds_of) + c.latency;
    return c;
  };
  ASSERT_EQ(refute(retimed(cut), topology, demand).value_or(""), "");

  Cut more = cut;  // shard 4 is not wanted by GPU 3
  more.classes.push_back(ClassId(cut.classes[0].index() + 1));
  EXPECT_TRUE(refute(retimed(more), topology, demand));

  Cut other = cut;  // another GPU's link cuts nothing off
  other.channels = {
      ChannelId(topology.find_link(kHost + "gpu4-" + kHost + "pcie4"), cut.channels[0].from_b())};
  EXPECT_TRUE(refute(retimed(other), topology, demand));

  Cut outward = cut;  // the link's other direction
  outward.channels = {ChannelId(cut.channels[0].link(), !cut.channels[0].from_b())};
  EXPECT_TRUE(refute(retimed(outward), topology, demand));

  Cut renamed = cut;
  renamed.sink = kHost + "gpu4";
  EXPECT_TRUE(refute(renamed, topology, demand));

  // GPU 4 comes to want shard 3 as well: it can bring it over NVLink.
  Demand shared = demand;
  auto& receivers = shared.classes[cut.classes[0].index()].receivers;
  const WorkerId next(cut.receivers[0].index() + 1);
  receivers.insert(std::upper_bound(receivers.begin(), receivers.end(), next), next);
  EXPECT_TRUE(refute(cut, topology, shared));
  shared.workers[next.index()].may_serve = false;  // unless it may not
  EXPECT_FALSE(refute(cut, topology, shared));
}

// Relays of the walk are receivers of the classes that count, and no others.
TEST(LoneCertificate, TheWalkRelaysOverReceiversOfCountedClasses) {
  const Topology topology = slow_pcie(kHost + "gpu3");
  const Demand demand = make_demand(topology, {.blocks = kBlocks});
  const NodeId target = topology.find_node(kHost + "gpu3");
  const NodeId holder = topology.find_node("d0.r0.h0.gpu3");
  std::vector<bool> gone(topology.channels());
  const std::vector<bool> nothing(topology.channels());
  for (const Neighbour& next : topology.neighbours(target)) {
    const Link& link = topology.link(next.link);
    if (link.kind == LinkKind::Pcie) gone[ChannelId(next.link, link.b != target).index()] = true;
  }
  ClassId own;
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    for (const WorkerId w : demand.classes[c].receivers) {
      if (demand.workers[w.index()].node == target) own = ClassId(c);
    }
  }
  const ClassId other(own.index() == 0 ? 1U : 0U);
  const bound::Walk alone(topology, demand, {own});
  EXPECT_EQ(alone.from({holder}, gone)[target.index()], Time::never());
  EXPECT_EQ(alone.from({holder}, nothing)[target.index()], kOneWay);
  const bound::Walk both(topology, demand, {std::min(own, other), std::max(own, other)});
  // To the other class's GPU, then over NVLink (2 x 500 ns).
  EXPECT_EQ(both.from({holder}, gone)[target.index()], kOneWay + microseconds(1));
}

}  // namespace
}  // namespace holdfast
