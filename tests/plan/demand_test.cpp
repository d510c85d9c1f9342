#include "core/plan/demand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/plan/plan_fixtures.hpp"

namespace holdfast {
namespace {

using fixtures::below;
using fixtures::worker_on;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

BlockSpan span(std::uint32_t first, std::uint32_t count) {
  return {BlockId(first), count};
}
WorkerId worker(std::uint32_t id) {
  return WorkerId(id);
}

DemandBuilder builder_of(std::uint32_t blocks, std::uint32_t workers) {
  DemandBuilder builder("model", {1, 2}, Bytes(100), std::vector<Bytes>(blocks, Bytes(100)));
  for (std::uint32_t w = 0; w < workers; ++w) builder.add_worker(worker_on(NodeId(w)));
  return builder;
}

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::BadValue, "none");
}

TEST(DemandBuilder, GroupsBlocksWithTheSameHoldersAndReceivers) {
  // block   0 1 2 3 4 5 6 7
  // 0       h h h h h h h h
  // 1       w w w . w w w .      blocks 0-1 and 4-5: class 0, 2 and 6: class 1
  // 2       . . h . . . h .
  DemandBuilder builder = builder_of(8, 3);
  builder.holds(worker(0), span(0, 8));
  builder.wants(worker(1), span(0, 3));
  builder.wants(worker(1), span(4, 3));
  builder.holds(worker(2), span(2, 1));
  builder.holds(worker(2), span(6, 1));
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 2U);
  EXPECT_THAT(demand.classes[0].blocks, ElementsAre(span(0, 2), span(4, 2)));
  EXPECT_THAT(demand.classes[0].holders, ElementsAre(worker(0)));
  EXPECT_THAT(demand.classes[0].receivers, ElementsAre(worker(1)));
  EXPECT_THAT(demand.classes[1].blocks, ElementsAre(span(2, 1), span(6, 1)));
  EXPECT_THAT(demand.classes[1].holders, ElementsAre(worker(0), worker(2)));
  EXPECT_EQ(block_count(demand.classes[0]), 4U);
  EXPECT_EQ(bytes_of(demand, demand.classes[1]), Bytes(200));
  EXPECT_THAT(blocks_of(demand.classes[0]),
              ElementsAre(BlockId(0U), BlockId(1U), BlockId(4U), BlockId(5U)));
  EXPECT_THAT(missing_bytes(demand), ElementsAre(Bytes(0), Bytes(600), Bytes(0)));
}

TEST(DemandBuilder, AReceiverHoldsWhatItAlreadyHas) {
  DemandBuilder builder = builder_of(4, 2);
  builder.holds(worker(0), span(0, 4));
  builder.holds(worker(1), span(1, 2));
  builder.wants(worker(1), span(0, 4));
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 1U);
  EXPECT_THAT(demand.classes[0].blocks, ElementsAre(span(0, 1), span(3, 1)));
}

TEST(DemandBuilder, WhoHoldsAndMayNotServeIsInNeitherList) {
  DemandBuilder builder = builder_of(2, 2);
  builder.holds(worker(0), span(0, 2));
  builder.wants(worker(1), span(0, 2));
  const WorkerId silent = builder.add_worker(worker_on(NodeId(9U), 0, false));
  builder.holds(silent, span(0, 1));
  builder.wants(silent, span(0, 2));
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 2U);
  EXPECT_THAT(demand.classes[0].holders, ElementsAre(worker(0)));
  EXPECT_THAT(demand.classes[0].receivers, ElementsAre(worker(1)));
  EXPECT_THAT(demand.classes[1].receivers, ElementsAre(worker(1), silent));
}

TEST(DemandBuilder, RefusesABlockThatNobodyServes) {
  DemandBuilder builder = builder_of(8, 2);
  builder.holds(worker(0), span(0, 5));
  builder.wants(worker(1), span(2, 6));
  const WorkerId silent = builder.add_worker(worker_on(NodeId(9U), 0, false));
  builder.holds(silent, span(0, 8));
  const Error error = error_of([&] { (void)std::move(builder).build(); });
  EXPECT_EQ(error.code(), ErrorCode::BadValue);
  EXPECT_THAT(error.message(), HasSubstr("block 5 is wanted by worker 1"));
}

TEST(DemandBuilder, RefusesADemandForNothing) {
  DemandBuilder nobody = builder_of(1, 1);
  nobody.holds(worker(0), span(0, 1));
  EXPECT_THAT(error_of([&] { (void)std::move(nobody).build(); }).message(),
              HasSubstr("nobody wants"));
  DemandBuilder satisfied = builder_of(1, 1);
  satisfied.holds(worker(0), span(0, 1));
  satisfied.wants(worker(0), span(0, 1));
  EXPECT_THAT(error_of([&] { (void)std::move(satisfied).build(); }).message(),
              HasSubstr("already holds"));
}

TEST(DemandBuilder, RefusesSpansAndWorkersThatAreNotThere) {
  DemandBuilder beyond = builder_of(4, 2);
  beyond.wants(worker(1), span(1, 4));
  EXPECT_EQ(error_of([&] { (void)std::move(beyond).build(); }).code(), ErrorCode::BadValue);
  DemandBuilder wrapping = builder_of(4, 2);
  wrapping.wants(worker(1), span(2, 0xffffffffU));
  EXPECT_EQ(error_of([&] { (void)std::move(wrapping).build(); }).code(), ErrorCode::BadValue);
  DemandBuilder stranger = builder_of(4, 2);
  stranger.holds(worker(2), span(0, 1));
  EXPECT_EQ(error_of([&] { (void)std::move(stranger).build(); }).code(), ErrorCode::BadValue);
}

// Block by block, with sets: what the sweep must find.
std::vector<BlockClass> classes_by_hand(const std::vector<std::set<std::uint32_t>>& held,
                                        const std::vector<std::set<std::uint32_t>>& wanted,
                                        const std::vector<bool>& serves, std::uint32_t blocks) {
  std::map<std::pair<std::vector<WorkerId>, std::vector<WorkerId>>, std::set<std::uint32_t>> groups;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    std::vector<WorkerId> holders;
    std::vector<WorkerId> receivers;
    for (std::uint32_t w = 0; w < held.size(); ++w) {
      if (held[w].count(b) != 0) {
        if (serves[w]) holders.emplace_back(w);
      } else if (wanted[w].count(b) != 0) {
        receivers.emplace_back(w);
      }
    }
    if (!receivers.empty()) groups[{holders, receivers}].insert(b);
  }
  std::vector<BlockClass> classes;
  for (const auto& [sets, members] : groups) {
    BlockClass c{{}, sets.first, sets.second};
    for (const std::uint32_t b : members) {
      if (!c.blocks.empty() && c.blocks.back().first.value() + c.blocks.back().count == b) {
        ++c.blocks.back().count;
      } else {
        c.blocks.push_back(span(b, 1));
      }
    }
    classes.push_back(std::move(c));
  }
  std::sort(classes.begin(), classes.end(), [](const BlockClass& a, const BlockClass& b) {
    return a.blocks.front() < b.blocks.front();
  });
  return classes;
}

TEST(DemandBuilderProperty, ClassesAreThoseOfABlockByBlockGrouping) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    fixtures::Random random(seed);
    const std::uint32_t blocks = 1 + below(random, 40);
    const std::uint32_t workers = 2 + below(random, 6);
    DemandBuilder builder("model", {}, Bytes(1), std::vector<Bytes>(blocks, Bytes(1)));
    std::vector<std::set<std::uint32_t>> held(workers);
    std::vector<std::set<std::uint32_t>> wanted(workers);
    std::vector<bool> serves(workers);
    for (std::uint32_t w = 0; w < workers; ++w) {
      serves[w] = w == 0 || below(random, 4) != 0;
      builder.add_worker(worker_on(NodeId(w), 0, serves[w]));
      const auto add = [&](std::vector<std::set<std::uint32_t>>& sets, bool wants) {
        const std::uint32_t first = below(random, blocks);
        const std::uint32_t count = below(random, blocks - first + 1);
        for (std::uint32_t b = first; b < first + count; ++b) sets[w].insert(b);
        wants ? builder.wants(worker(w), span(first, count))
              : builder.holds(worker(w), span(first, count));
      };
      for (std::uint32_t k = below(random, 4); k > 0; --k) add(held, false);
      for (std::uint32_t k = below(random, 4); k > 0; --k) add(wanted, true);
      if (w == 0) {
        builder.holds(worker(0), span(0, blocks));
        for (std::uint32_t b = 0; b < blocks; ++b) held[0].insert(b);
      }
    }
    const auto expected = classes_by_hand(held, wanted, serves, blocks);
    if (expected.empty()) {
      EXPECT_THROW((void)std::move(builder).build(), Error);
      continue;
    }
    const Demand demand = std::move(builder).build();
    EXPECT_EQ(demand.classes, expected);
  }
}

TEST(DemandBuilder, IsNearLinearInWorkersAndBlocks) {
  // 2,048 replicas of 8 shards over 65,536 blocks, the first of which holds everything and half of
  // which have every other group of 64 blocks: a quadratic sweep would not end in reasonable time.
  constexpr std::uint32_t kReplicas = 2'048;
  constexpr std::uint32_t kShards = 8;
  constexpr std::uint32_t kShardBlocks = 8'192;
  DemandBuilder builder("model", {1, 2}, Bytes(100),
                        std::vector<Bytes>(kShards * kShardBlocks, Bytes(100)));
  for (std::uint32_t r = 0; r < kReplicas; ++r) {
    for (std::uint32_t s = 0; s < kShards; ++s) {
      const WorkerId w = builder.add_worker(worker_on(NodeId(r * kShards + s), r));
      if (r == 0) {
        builder.holds(w, span(s * kShardBlocks, kShardBlocks));
        continue;
      }
      builder.wants(w, span(s * kShardBlocks, kShardBlocks));
      if (r % 2 == 0) continue;
      for (std::uint32_t b = 0; b < kShardBlocks; b += 1'024) {
        builder.holds(w, span(s * kShardBlocks + b, 64));
      }
    }
  }
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 2 * kShards);
  EXPECT_EQ(demand.classes[0].blocks.size(), 8U);
  EXPECT_EQ(demand.classes[0].holders.size(), 1U + kReplicas / 2);
  EXPECT_EQ(demand.classes[0].receivers.size(), kReplicas / 2 - 1);
  EXPECT_EQ(demand.classes[1].receivers.size(), kReplicas - 1);
}

// One change each, and a part of the message and the pointer that must name it.
struct Damage {
  std::string name;
  std::function<void(Demand&)> apply;
  std::string pointer;
  std::string message;
};

TEST(DemandValidation, NamesTheBrokenInvariant) {
  const fixtures::Cluster cluster = fixtures::cluster(2, 2);
  const Demand good = [&] {
    DemandBuilder builder("model", {1, 2}, Bytes(100), std::vector<Bytes>(8, Bytes(100)));
    for (const NodeId gpu : cluster.gpus) builder.add_worker(worker_on(gpu));
    builder.holds(worker(0), span(0, 8));
    builder.holds(worker(1), span(2, 2));
    builder.wants(worker(2), span(0, 8));
    builder.wants(worker(3), span(4, 4));
    return std::move(builder).build();
  }();
  ASSERT_NO_THROW(validate(good, cluster.topology));
  ASSERT_EQ(good.classes.size(), 3U);
  const std::vector<Damage> damages = {
      {"no bytes", [](Demand& d) { d.block_bytes[3] = Bytes(); }, "/demand/block_bytes/3",
       "no bytes"},
      {"large", [](Demand& d) { d.block_bytes[3] = Bytes(101); }, "/demand/block_bytes/3",
       "more than block_size"},
      {"overflow",
       [](Demand& d) {
         d.block_size = Bytes(~std::uint64_t{0});
         d.block_bytes.assign(8, Bytes(~std::uint64_t{0} / 3));
       },
       "/demand/block_bytes/1", "2^63"},
      {"no node", [](Demand& d) { d.workers[1].node = NodeId(999U); }, "/demand/workers/1",
       "nodes 0 to"},
      {"a switch", [&](Demand& d) { d.workers[1].node = cluster.topology.find_node("switch"); },
       "/demand/workers/1", "'switch', a switch"},
      {"two on one", [](Demand& d) { d.workers[2].node = d.workers[1].node; }, "/demand/workers/2",
       "workers 1 and 2"},
      {"no blocks", [](Demand& d) { d.classes[1].blocks.clear(); }, "/demand/classes/1/blocks",
       "at least one block"},
      {"empty span", [](Demand& d) { d.classes[1].blocks[0].count = 0; },
       "/demand/classes/1/blocks/0", "at least one block"},
      {"beyond", [](Demand& d) { d.classes[2].blocks[0].count = 0xffffffffU; },
       "/demand/classes/2/blocks/0", "8 blocks"},
      {"touching",
       [](Demand& d) {
         d.classes[0].blocks = {span(0, 1), span(1, 1)};
       },
       "/demand/classes/0/blocks/1", "do not touch"},
      {"descending",
       [](Demand& d) {
         d.classes[2].blocks = {span(6, 2), span(4, 1)};
       },
       "/demand/classes/2/blocks/1", "ascend"},
      {"in two classes", [](Demand& d) { d.classes[1].blocks[0] = span(1, 2); },
       "/demand/classes/1/blocks/0", "block 1 is in class 0 too"},
      {"no holder", [](Demand& d) { d.classes[1].holders.clear(); }, "/demand/classes/1/holders",
       "no holders"},
      {"no receiver", [](Demand& d) { d.classes[1].receivers.clear(); },
       "/demand/classes/1/receivers", "no receivers"},
      {"unknown worker", [](Demand& d) { d.classes[1].holders[1] = worker(77); },
       "/demand/classes/1/holders/1", "worker 77 is not there"},
      {"holders descend",
       [](Demand& d) { std::swap(d.classes[1].holders[0], d.classes[1].holders[1]); },
       "/demand/classes/1/holders/1", "ascend"},
      {"twice a receiver", [](Demand& d) { d.classes[2].receivers[1] = worker(2); },
       "/demand/classes/2/receivers/1", "ascend"},
      {"holds and receives", [](Demand& d) { d.classes[1].receivers[0] = worker(1); },
       "/demand/classes/1/receivers", "worker 1 holds"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    Demand demand = good;
    damage.apply(demand);
    const Error error = error_of([&] { validate(demand, cluster.topology); });
    EXPECT_EQ(error.code(), ErrorCode::BadPlan);
    EXPECT_EQ(error.place().pointer, damage.pointer);
    EXPECT_THAT(error.message(), HasSubstr(damage.message));
  }
}

TEST(DemandHash, DependsOnEveryField) {
  const fixtures::Cluster cluster = fixtures::cluster(2, 2);
  const Demand good = fixtures::broadcast_demand(cluster, 4);
  const std::vector<std::function<void(Demand&)>> changes = {
      [](Demand& d) { d.model += "x"; },
      [](Demand& d) { ++d.version.lineage; },
      [](Demand& d) { ++d.version.number; },
      [](Demand& d) { d.block_size += Bytes(1); },
      [](Demand& d) { d.verify = !d.verify; },
      [](Demand& d) { d.block_bytes[1] += Bytes(1); },
      [](Demand& d) { d.block_bytes.pop_back(); },
      [](Demand& d) { d.workers[1].node = NodeId(0U); },
      [](Demand& d) { ++d.workers[1].group; },
      [](Demand& d) { d.workers[1].memory_free += Bytes(1); },
      [](Demand& d) { d.workers[1].may_serve = false; },
      [](Demand& d) { d.workers.pop_back(); },
      [](Demand& d) { --d.classes[0].blocks[0].count; },
      [](Demand& d) { d.classes[0].blocks[0].first = BlockId(1U); },
      [](Demand& d) { d.classes[0].holders[0] = worker(3); },
      [](Demand& d) { d.classes[0].receivers.pop_back(); },
      [](Demand& d) {
        d.classes[0].holders.push_back(d.classes[0].receivers.front());
        d.classes[0].receivers.erase(d.classes[0].receivers.begin());
      },
      [](Demand& d) { d.classes.push_back(d.classes.front()); },
  };
  EXPECT_EQ(hash_of(good), hash_of(Demand(good)));
  std::set<Hash128> hashes = {hash_of(good)};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "change " << i);
    Demand demand = good;
    changes[i](demand);
    EXPECT_TRUE(hashes.insert(hash_of(demand)).second);
  }
}

}  // namespace
}  // namespace holdfast
