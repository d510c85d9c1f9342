// Random demands and trees over a network that loses, doubles, delays and reorders: whatever
// happens is either exactly the holder's bytes, fetched once, or an error with a name.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/engine/random_updates.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

struct Story {
  std::vector<VirtualRecord> records;
  std::vector<Verified> verified;
  std::vector<Time> completed;
};

Story play(std::uint64_t seed) {
  Random random(seed);
  const Demand demand = random_demand(random, 60);
  const Plan plan = random_plan(random, demand);
  Cluster cluster(demand, plan, random_options(random));
  EXPECT_TRUE(cluster.run()) << (cluster.failure() ? to_string(*cluster.failure()) : "stuck");
  EXPECT_EQ(cluster.wrong_bytes(), "");
  const std::vector<Bytes> missing = missing_bytes(demand);
  for (std::size_t w = 0; w < missing.size(); ++w) {
    EXPECT_EQ(cluster.network().traffic(WorkerId(w)).in, missing[w]) << "worker " << w;
    EXPECT_EQ(cluster.loop(WorkerId(w)).stats().bytes_read, missing[w]);
    EXPECT_EQ(cluster.engine(WorkerId(w)).ignored_messages(), 0U);
  }
  // Each wanted block is counted once, at the planned parent, after the parent had it.
  std::map<std::pair<WorkerId, BlockId>, std::pair<Time, WorkerId>> when;
  for (const Verified& v : cluster.verified()) {
    EXPECT_TRUE(when.emplace(std::pair{v.worker, v.block}, std::pair{v.at, v.source}).second);
  }
  std::size_t deliveries = 0;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      for (const BlockId block : blocks_of(demand, stripe)) {
        ++deliveries;
        const auto here = when.find({edge.child, block});
        if (here == when.end()) continue;
        EXPECT_EQ(here->second.second, edge.parent);
        const auto before = when.find({edge.parent, block});
        if (before == when.end()) continue;
        EXPECT_LT(before->second.first, here->second.first);
      }
    }
  }
  EXPECT_EQ(when.size(), deliveries);
  return {cluster.network().records(), cluster.verified(), cluster.completed()};
}

constexpr std::uint64_t kSeeds = 300;

TEST(EngineProperty, EveryoneEndsWithTheHoldersBytesFetchedOnce) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    play(seed);
    if (HasFailure()) return;
  }
}

TEST(EngineProperty, SameSeedSameStory) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Story first = play(seed);
    const Story second = play(seed);
    ASSERT_FALSE(first.records.empty());
    ASSERT_TRUE(first.records == second.records);
    ASSERT_TRUE(first.verified == second.verified);
    ASSERT_EQ(first.completed, second.completed);
  }
}

// Engines start with nothing; edges come in parts, in any order, at random times.
TEST(EngineProperty, AssignmentsMayComeWhileItRuns) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 40);
    const Plan plan = random_plan(random, demand);
    ClusterOptions options = random_options(random);
    options.without_plan = true;
    Cluster cluster(demand, plan, options);
    std::size_t open = 0;  // assignments that are still to come
    for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
      for (const Edge& edge : plan.stripes[s].edges) {
        const std::uint32_t blocks = plan.stripes[s].blocks.count();
        const std::uint32_t middle = below(random, blocks + 1);
        const bool holder = cluster.tables().holds(edge.parent, StripeId(s));
        for (const auto& [from, to] : {std::pair{0U, middle}, std::pair{middle, blocks}}) {
          ++open;
          const Assignment assignment{StripeId(s), edge.parent, from, to,
                                      edge.window, holder,      {},   {}};
          cluster.network().at(microseconds(below(random, 300)), [&, assignment, edge] {
            --open;
            cluster.engine(edge.child).assign(assignment);
            cluster.driver().wake(edge.child);
          });
        }
        cluster.network().at(microseconds(below(random, 300)), [&, s, edge] {
          cluster.engine(edge.parent).add_child({StripeId(s), edge.child, edge.path, {}});
          cluster.driver().wake(edge.parent);
        });
      }
    }
    const auto done = [&] {
      for (std::size_t w = 0; w < demand.workers.size(); ++w) {
        if (!cluster.engine(WorkerId(w)).complete()) return false;
      }
      return open == 0;
    };
    ASSERT_TRUE(cluster.driver().run(done));
    ASSERT_EQ(cluster.wrong_bytes(), "");
    const std::vector<Bytes> missing = missing_bytes(demand);
    for (std::size_t w = 0; w < missing.size(); ++w) {
      ASSERT_EQ(cluster.network().traffic(WorkerId(w)).in, missing[w]);
    }
  }
}

// One wrong byte anywhere: the error names the block, and nobody counted it or got it from there.
TEST(EngineProperty, CorruptionIsCaught) {
  std::size_t caught = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    Demand demand = random_demand(random, 40);
    const Plan plan = random_plan(random, demand);
    const ClusterOptions options = random_options(random);
    const WorkerId source(below(random, demand.workers.size()));
    const std::uint32_t skip = below(random, 30);
    bool caught_now = false;
    for (const bool verify : {true, false}) {
      demand.verify = verify;
      Cluster cluster(demand, plan, options);
      cluster.network().corrupt(source, skip);
      const bool fine = cluster.run();
      if (!verify) {
        // The same byte is wrong, and nobody notices: it is the digests that catch it.
        EXPECT_TRUE(fine);
        EXPECT_TRUE(!caught_now || !cluster.wrong_bytes().empty());
        continue;
      }
      for (const Verified& v : cluster.verified()) {
        ASSERT_TRUE(cluster.has_bytes(v.worker, v.block)) << "counted although it is wrong";
      }
      if (fine) {
        EXPECT_EQ(cluster.wrong_bytes(), "");
        continue;
      }
      ++caught;
      caught_now = true;
      ASSERT_TRUE(cluster.failure());
      EXPECT_EQ(cluster.failure()->kind, FailureKind::DigestMismatch);
      EXPECT_EQ(cluster.failure()->source, source);
      EXPECT_FALSE(cluster.has_bytes(cluster.failure()->worker, cluster.failure()->block));
    }
  }
  EXPECT_GT(caught, kSeeds / 10) << "the test hardly ever corrupts anything";
}

// A worker dies: everyone else ends, with the right bytes or with an error that names its source.
TEST(EngineProperty, CrashesEndInSuccessOrANamedError) {
  std::set<FailureKind> kinds;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const Demand demand = random_demand(random, 40);
    const Plan plan = random_plan(random, demand);
    ClusterOptions options = random_options(random);
    options.engine.no_progress = milliseconds(100);
    Cluster cluster(demand, plan, options);
    cluster.set_stop_at_failure(false);
    const WorkerId victim(below(random, demand.workers.size()));
    cluster.network().at(microseconds(below(random, 200)),
                         [&] { cluster.network().crash(victim); });
    const auto ended = [&](WorkerId w) {
      return w == victim || cluster.engine(w).complete() || cluster.engine(w).failed();
    };
    const auto done = [&] {
      for (std::size_t w = 0; w < demand.workers.size(); ++w) {
        if (!ended(WorkerId(w))) return false;
      }
      return true;
    };
    ASSERT_TRUE(cluster.driver().run(done, seconds(10)));
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      const auto& failure = cluster.loop(WorkerId(w)).failure();
      if (!failure || WorkerId(w) == victim) continue;
      kinds.insert(failure->kind);
      EXPECT_EQ(failure->worker, WorkerId(w));
      // Its source is the dead one, or one that failed itself and says nothing any more.
      EXPECT_TRUE(failure->source == victim || cluster.engine(failure->source).failed())
          << to_string(*failure);
    }
    for (const Verified& v : cluster.verified()) {
      ASSERT_TRUE(cluster.has_bytes(v.worker, v.block));
    }
  }
  EXPECT_TRUE(kinds.contains(FailureKind::ReadFailed) || kinds.contains(FailureKind::SourceLost));
  EXPECT_TRUE(kinds.contains(FailureKind::NoProgress));
}

TEST(EngineProperty, StalledSourceExceedsTheDeadline) {
  const Demand demand = simple_demand(1, 10, Bytes(1000));
  ClusterOptions options;
  options.engine.await_parent = false;
  options.engine.read_deadline = milliseconds(2);
  Cluster cluster(demand, tree_plan(demand, {0}, 2), options);
  cluster.network().stall(WorkerId(0U), seconds(1));
  EXPECT_FALSE(cluster.run());
  ASSERT_TRUE(cluster.failure());
  EXPECT_EQ(cluster.failure()->kind, FailureKind::ReadFailed);
  EXPECT_EQ(cluster.failure()->status, ReadStatus::DeadlineExceeded);
  EXPECT_EQ(cluster.network().now(), milliseconds(2));
}

TEST(EngineProperty, NobodyHearsAnything) {
  const Demand demand = simple_demand(2, 10, Bytes(1000));
  ClusterOptions options;
  options.network.lost_per_mille = 1000;
  options.engine.no_progress = seconds(3);
  options.engine.await_parent = false;
  Cluster cluster(demand, tree_plan(demand, {0, 1}, 2), options);
  EXPECT_FALSE(cluster.run());
  ASSERT_TRUE(cluster.failure());
  EXPECT_EQ(to_string(*cluster.failure()),
            "NoProgress: worker 2 needs block 0 (stripe 0) from worker 1: nothing arrived for "
            "3.00 s");
}

// The last word is lost, and nothing follows it: asking brings it back.
TEST(EngineProperty, ALostLastWordIsAskedFor) {
  const Demand demand = simple_demand(2, 1, Bytes(1000));
  ClusterOptions options;
  options.network.lost_per_mille = 1000;
  options.engine.ask_interval = milliseconds(1);
  Cluster cluster(demand, tree_plan(demand, {0, 1}, 2), options);
  cluster.network().at(microseconds(500),
                       [&] { cluster.network().set_message_faults(0, 0, Time{}); });
  EXPECT_TRUE(cluster.run());
  EXPECT_EQ(cluster.wrong_bytes(), "");
  // Asked one interval after the start: ask and answer, then request and data.
  const Time read = transfer_time(Bytes(1000), options.network.rate);
  EXPECT_EQ(cluster.completed()[2], milliseconds(1) + options.network.latency * 4 + read);
}

// A lost word is made up by the next one, long before anybody asks.
TEST(EngineProperty, TheNextWordMakesUpForALostOne) {
  const Demand demand = simple_demand(2, 100, Bytes(1'000'000));
  ClusterOptions options;
  options.real_bytes = false;
  options.network.rate = Rate(1'000'000'000);
  options.network.lost_per_mille = 300;
  options.engine.ask_interval = seconds(500);
  Cluster cluster(demand, tree_plan(demand, {0, 1}, 8), options);
  cluster.network().at(milliseconds(95),
                       [&] { cluster.network().set_message_faults(0, 0, Time{}); });
  EXPECT_TRUE(cluster.run(seconds(100)));
}

}  // namespace
}  // namespace holdfast::testing
