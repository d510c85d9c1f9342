// Parents that die, lie, slow down and are changed, over the virtual network: survivors end with
// exactly the right bytes, and nothing that was verified is read again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/engine/random_updates.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

constexpr std::uint64_t kSeeds = 300;

ClusterOptions options_for(Random& random) {
  ClusterOptions options = random_options(random);
  options.engine.await_parent = true;
  options.engine.no_progress = seconds(5);
  return options;
}

// The smallest of coordinators: whoever wants a parent gets worker 0, which holds everything, after
// a while; as an assignment or as an alternate.
void mend_with_holder(Cluster& cluster, Random& random) {
  cluster.set_mend([&](WorkerId worker, const NeedParent& wanted) {
    const bool assigned = random() % 2 == 0;
    cluster.network().at(
        cluster.network().now() + microseconds(below(random, 300)), [&, worker, wanted, assigned] {
          WorkerEngine& engine = cluster.engine(worker);
          const auto blocks =
              static_cast<std::uint32_t>(cluster.tables().blocks(wanted.stripe).size());
          if (assigned) {
            engine.assign({wanted.stripe, WorkerId(0U), wanted.first, blocks, 3, true, {}, {}, {}});
          } else {
            engine.add_alternate(wanted.stripe, WorkerId(0U), {}, true);
          }
          cluster.driver().wake(worker);
        });
  });
}

void expect_survivors_right(Cluster& cluster, const Demand& demand, const std::set<WorkerId>& dead,
                            bool exact) {
  EXPECT_EQ(cluster.broken_rules(), "");
  std::set<std::pair<WorkerId, BlockId>> seen;
  for (const Verified& v : cluster.verified()) {
    EXPECT_TRUE(seen.emplace(v.worker, v.block).second) << "counted twice";
    EXPECT_TRUE(cluster.has_bytes(v.worker, v.block));
  }
  for (const BlockClass& c : demand.classes) {
    for (const WorkerId w : c.receivers) {
      if (dead.contains(w)) continue;
      for (const BlockId block : blocks_of(c)) {
        EXPECT_TRUE(seen.contains({w, block})) << "worker " << w.value();
      }
    }
  }
  const std::vector<Bytes> missing = missing_bytes(demand);
  for (std::size_t w = 0; w < missing.size(); ++w) {
    if (dead.contains(WorkerId(w))) continue;
    const Bytes in = cluster.network().traffic(WorkerId(w)).in;
    EXPECT_GE(in, missing[w]);
    if (exact) {
      EXPECT_EQ(in, missing[w]);
    }
    EXPECT_EQ(cluster.engine(WorkerId(w)).open_work(), 0U);
  }
}

bool run_survivors(Cluster& cluster, const Demand& demand, const std::set<WorkerId>& dead,
                   const std::function<bool()>& over) {
  const auto done = [&] {
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      const WorkerEngine& engine = cluster.engine(WorkerId(w));
      if (dead.contains(WorkerId(w))) continue;
      if (!engine.complete() || engine.fresh() || engine.open_work() != 0) return false;
    }
    return over();
  };
  return cluster.driver().run(done, seconds(60));
}

// Any number of workers die at any time, worker 0 excepted.
TEST(EngineFaults, SurvivorsOfCrashesComplete) {
  std::size_t turned = 0;
  std::size_t wanted = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 60);
    const Plan plan = random_plan(random, demand, true);
    ClusterOptions options = options_for(random);
    const bool whole_blocks = options.network.limits.bytes_per_read >= Bytes(3000);
    options.network.detection = microseconds(below(random, 400));
    Cluster cluster(demand, plan, options);
    mend_with_holder(cluster, random);
    std::set<WorkerId> dead;
    std::size_t to_die = below(random, demand.workers.size());
    for (; to_die > 0; --to_die) {
      const WorkerId victim(1 + below(random, demand.workers.size() - 1));
      if (!dead.insert(victim).second) continue;
      cluster.network().at(microseconds(below(random, 250)),
                           [&cluster, victim] { cluster.network().crash(victim); });
    }
    ASSERT_TRUE(run_survivors(cluster, demand, dead, [] { return true; }));
    EXPECT_FALSE(cluster.failure());
    expect_survivors_right(cluster, demand, dead, whole_blocks);
    turned += cluster.reparentings().size();
    wanted += cluster.wanted();
  }
  EXPECT_GT(turned, kSeeds / 2);
  EXPECT_GT(wanted, kSeeds / 4);
}

// Nobody mends anything: where each child of the one who dies has an alternate that lives, the
// engines do it alone.
TEST(EngineFaults, AlternatesNeedNoCoordinator) {
  std::size_t turned = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 40);
    Plan plan = random_plan(random, demand, true);
    const WorkerId victim(1 + below(random, demand.workers.size() - 1));
    for (Stripe& stripe : plan.stripes) {
      for (Edge& edge : stripe.edges) {
        if (edge.parent == victim) edge.alternate = WorkerId(0U);
        if (edge.alternate == victim) edge.alternate = {};
      }
    }
    Cluster cluster(demand, plan, options_for(random));
    cluster.network().at(microseconds(below(random, 150)),
                         [&] { cluster.network().crash(victim); });
    ASSERT_TRUE(run_survivors(cluster, demand, {victim}, [] { return true; }));
    EXPECT_EQ(cluster.wanted(), 0U);
    for (const auto& said : cluster.reparentings()) {
      EXPECT_EQ(said.what.from, victim);
      EXPECT_EQ(said.what.to, WorkerId(0U));
    }
    expect_survivors_right(cluster, demand, {victim}, false);
    turned += cluster.reparentings().size();
  }
  EXPECT_GT(turned, kSeeds / 4);
}

// One wrong byte: the block comes again from somebody else, and the bad source is named.
TEST(EngineFaults, WrongBytesAreReadElsewhere) {
  std::size_t caught = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 40);
    const Plan plan = random_plan(random, demand, true);
    Cluster cluster(demand, plan, options_for(random));
    mend_with_holder(cluster, random);
    const WorkerId source(below(random, demand.workers.size()));
    cluster.network().corrupt(source, below(random, 30));
    ASSERT_TRUE(run_survivors(cluster, demand, {}, [] { return true; }));
    EXPECT_EQ(cluster.wrong_bytes(), "");
    expect_survivors_right(cluster, demand, {}, false);
    for (const auto& said : cluster.bad_digests()) {
      ++caught;
      EXPECT_EQ(said.what.source, source);
      EXPECT_NE(said.what.expected, said.what.found);
    }
    EXPECT_LE(cluster.bad_digests().size(), 1U);
  }
  EXPECT_GT(caught, kSeeds / 10);
}

// Stripes are dropped and given again, to others, at any time, several times over; workers die
// meanwhile.
TEST(EngineFaults, DropsAndAssignmentsAtAnyTime) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 60);
    const Plan plan = random_plan(random, demand, true);
    Cluster cluster(demand, plan, options_for(random));
    mend_with_holder(cluster, random);
    std::set<WorkerId> dead;
    if (random() % 2 == 0) {
      const WorkerId victim(1 + below(random, demand.workers.size() - 1));
      dead.insert(victim);
      cluster.network().at(microseconds(below(random, 200)),
                           [&, victim] { cluster.network().crash(victim); });
    }
    std::size_t open = 0;
    for (std::uint32_t k = below(random, 40); k-- > 0;) {
      const std::uint32_t s = below(random, plan.stripes.size());
      const Stripe& stripe = plan.stripes[s];
      const WorkerId child = stripe.edges[below(random, stripe.edges.size())].child;
      const std::uint32_t blocks = stripe.blocks.count();
      const bool dropped = random() % 3 != 0;
      const bool split = random() % 3 == 0;
      const Time at = microseconds(below(random, 200));
      const Time again = at + microseconds(dropped ? below(random, 30) : 0);
      const std::uint32_t window = 1 + below(random, 4);
      ++open;
      if (dropped) {
        cluster.network().at(at, [&, child, s] {
          cluster.engine(child).drop(StripeId(s));
          cluster.driver().wake(child);
        });
      }
      cluster.network().at(again, [&, child, s, blocks, window, split] {
        --open;
        WorkerEngine& engine = cluster.engine(child);
        const std::uint32_t first = engine.first_missing(StripeId(s));
        // In one piece or in two: the later one of an overlapping pair must not cut the other off.
        const std::uint32_t middle = split ? first + (blocks - first) / 2 : blocks;
        engine.assign({StripeId(s), WorkerId(0U), first, middle, window, true, {}, {}, {}});
        engine.assign({StripeId(s), WorkerId(0U), middle, blocks, window, true, {}, {}, {}});
        cluster.driver().wake(child);
      });
    }
    ASSERT_TRUE(run_survivors(cluster, demand, dead, [&] { return open == 0; }));
    EXPECT_FALSE(cluster.failure());
    expect_survivors_right(cluster, demand, dead, false);
  }
}

// 64 readers of one source: each is as fast as the others, and no read takes too long.
TEST(EngineFaults, ManyReadersShareOneSource) {
  constexpr std::uint32_t kReaders = 64;
  Demand demand = simple_demand(kReaders, 60, Bytes(100'000));
  ClusterOptions options;
  options.real_bytes = false;
  options.network.rate = Rate(1'000'000'000);
  options.engine.read_deadline = milliseconds(100);
  Cluster cluster(demand, tree_plan(demand, std::vector<std::uint32_t>(kReaders, 0), 4), options);
  const Time whole = transfer_time(Bytes(100'000) * 60 * kReaders, options.network.rate);
  cluster.driver().run([] { return false; }, whole / 2);
  std::uint64_t least = ~0ULL;
  std::uint64_t most = 0;
  for (std::uint32_t w = 1; w <= kReaders; ++w) {
    const std::uint64_t got = 60 - cluster.engine(WorkerId(w)).missing();
    least = std::min(least, got);
    most = std::max(most, got);
  }
  EXPECT_GE(least * 10, most * 9);
  EXPECT_TRUE(cluster.run());
  EXPECT_FALSE(cluster.failure());
  EXPECT_TRUE(cluster.reparentings().empty());
  EXPECT_EQ(cluster.wanted(), 0U);
}

// A source that stands still is called slow, once; it is not given up, and is called slow again
// only after it had recovered.
TEST(EngineFaults, SlowIsNotDead) {
  const Demand demand = simple_demand(1, 400, Bytes(1'000'000));
  Plan plan = tree_plan(demand, {0}, 3);
  ClusterOptions options;
  options.real_bytes = false;
  options.without_plan = true;
  options.network.rate = Rate(1'000'000'000);  // 1 ms a block
  options.engine.least_slow_time = milliseconds(1);
  Cluster cluster(demand, plan, options);
  cluster.engine(WorkerId(1U))
      .assign({StripeId(0U), WorkerId(0U), 0, 400, 3, true, {}, {}, milliseconds(1)});
  const auto slow_from = [&](std::int64_t ms, std::int64_t end) {
    cluster.network().at(milliseconds(ms),
                         [&, end] { cluster.network().stall(WorkerId(0U), milliseconds(end)); });
  };
  slow_from(50, 53);    // short: no word
  slow_from(100, 130);  // one word
  slow_from(131, 150);  // not recovered in between: no further word
  slow_from(250, 280);  // recovered: another word
  ASSERT_TRUE(cluster.run());
  ASSERT_EQ(cluster.slow_sources().size(), 2U);
  EXPECT_EQ(cluster.slow_sources()[0].what.parent, WorkerId(0U));
  EXPECT_GE(cluster.slow_sources()[0].at, milliseconds(104));
  EXPECT_LE(cluster.slow_sources()[0].at, milliseconds(106));
  EXPECT_GE(cluster.slow_sources()[1].at, milliseconds(254));
  EXPECT_LE(cluster.slow_sources()[1].at, milliseconds(256));
  EXPECT_TRUE(cluster.reparentings().empty());
}

// At a fifth of the planned rate a source is slow, at a third it is not.
TEST(EngineFaults, AQuarterIsTheLimit) {
  for (const std::uint64_t part : {3U, 5U}) {
    SCOPED_TRACE(part);
    const Demand demand = simple_demand(1, 100, Bytes(1'000'000));
    ClusterOptions options;
    options.real_bytes = false;
    options.without_plan = true;
    options.network.rate = Rate(1'000'000'000 / part);
    options.engine.least_slow_time = milliseconds(1);
    Cluster cluster(demand, tree_plan(demand, {0}, 3), options);
    cluster.engine(WorkerId(1U))
        .assign({StripeId(0U), WorkerId(0U), 0, 100, 3, true, {}, {}, milliseconds(1)});
    ASSERT_TRUE(cluster.run());
    EXPECT_EQ(cluster.slow_sources().size(), part == 5 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace holdfast::testing
