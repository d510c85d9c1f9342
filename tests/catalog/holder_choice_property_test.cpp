// Random small clusters against exhaustive search, and failures of what the guarantee names.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "tests/catalog/retention_world.hpp"

namespace holdfast {
namespace {

using testing_support::RetentionWorld;

WorkerId gpu(std::uint32_t host) {
  return RetentionWorld::gpu(host);
}

// --- The contract, said once more -------------------------------------------------------------

DomainId domain_of(const RetentionWorld& world, WorkerId id) {
  const NodeId node = world.workers[id.index()].node;
  // The clusters have no pods.
  return world.topology.around(node, world.level == Level::Pod ? Level::Datacenter : world.level);
}

using Workers = std::set<WorkerId>;

bool lasts(const RetentionWorld& world, WorkerId id, const Workers& leaving) {
  const RetentionWorker& worker = world.workers[id.index()];
  return worker.live && worker.reliable && !worker.leaving && leaving.count(id) == 0;
}

std::set<DomainId> domains_with(const RetentionWorld& world, std::uint32_t shard, bool running,
                                const Workers& leaving) {
  std::set<DomainId> found;
  for (const ShardHolding& holding : world.holdings) {
    if (holding.shard != shard || !lasts(world, holding.worker, leaving)) continue;
    if (holding.state == CopyState::Complete ||
        (running && holding.state == CopyState::Offloading)) {
      found.insert(domain_of(world, holding.worker));
    }
  }
  return found;
}

std::set<std::uint32_t> layouts_of(const RetentionWorld& world) {
  std::set<std::uint32_t> found;
  for (const RetainedShard& shard : world.shards) found.insert(shard.layout);
  return found;
}

std::uint32_t safety_of(const RetentionWorld& world, std::uint32_t layout, bool running,
                        const Workers& leaving = {}) {
  std::size_t least = 1000;
  for (std::uint32_t s = 0; s < world.shards.size(); ++s) {
    if (world.shards[s].layout != layout) continue;
    least = std::min(least, domains_with(world, s, running, leaving).size());
  }
  return static_cast<std::uint32_t>(least);
}

std::uint32_t best_safety(const RetentionWorld& world, const Workers& leaving = {}) {
  std::uint32_t best = 0;
  for (const std::uint32_t layout : layouts_of(world)) {
    best = std::max(best, safety_of(world, layout, false, leaving));
  }
  return best;
}

// The fewest offloads that bring each shard into as many fault domains as `goal` says (by shard;
// running offloads count), trying all sets of memories for each shard; nothing if none do.
std::optional<std::size_t> fewest_offloads(const RetentionWorld& world,
                                           const std::map<std::uint32_t, std::size_t>& goal,
                                           const Workers& leaving) {
  std::vector<WorkerId> memories;
  for (const RetentionWorker& worker : world.workers) {
    if (worker.host_memory && lasts(world, worker.worker, leaving)) {
      memories.push_back(worker.worker);
    }
  }
  std::vector<std::pair<std::uint32_t, std::size_t>> shards(goal.begin(), goal.end());
  std::map<WorkerId, std::uint64_t> free;
  for (const WorkerId m : memories) free[m] = world.workers[m.index()].free.count();
  std::optional<std::size_t> best;
  const std::function<void(std::size_t, std::size_t)> from = [&](std::size_t i, std::size_t used) {
    if (best && used >= *best) return;
    if (i == shards.size()) {
      best = used;
      return;
    }
    const auto [shard, wanted] = shards[i];
    const std::uint64_t bytes = world.shards[shard].bytes.count();
    const std::set<DomainId> before = domains_with(world, shard, true, leaving);
    for (std::uint32_t set = 0; set < 1U << memories.size(); ++set) {
      std::set<DomainId> with = before;
      bool fits = true;
      std::size_t count = 0;
      for (std::size_t m = 0; m < memories.size(); ++m) {
        if ((set >> m & 1U) == 0) continue;
        fits = fits && free[memories[m]] >= bytes;
        with.insert(domain_of(world, memories[m]));
        ++count;
      }
      if (!fits || with.size() < wanted) continue;
      for (std::size_t m = 0; m < memories.size(); ++m) {
        if ((set >> m & 1U) != 0) free[memories[m]] -= bytes;
      }
      from(i + 1, used + count);
      for (std::size_t m = 0; m < memories.size(); ++m) {
        if ((set >> m & 1U) != 0) free[memories[m]] += bytes;
      }
    }
  };
  from(0, 0);
  return best;
}

std::map<std::uint32_t, std::size_t> goal_of(const RetentionWorld& world, std::uint32_t layout,
                                             std::size_t domains) {
  std::map<std::uint32_t, std::size_t> goal;
  for (std::uint32_t s = 0; s < world.shards.size(); ++s) {
    if (world.shards[s].layout == layout) goal[s] = domains;
  }
  return goal;
}

// --- Random worlds ----------------------------------------------------------------------------

struct Dice {
  std::mt19937_64 random;
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
};

RetentionWorld random_world(Dice& dice, bool equal_sizes, std::uint32_t layouts) {
  const std::uint32_t datacenters = 1 + dice.below(2);
  const std::uint32_t racks = 1 + dice.below(datacenters == 1 ? 3 : 2);
  const std::uint32_t hosts = racks * datacenters < 3 ? 1 + dice.below(2) : 1;
  RetentionWorld world(datacenters, racks, hosts);
  world.k = dice.below(4);
  world.level = static_cast<Level>(dice.below(4));
  for (std::uint32_t layout = 0; layout < layouts; ++layout) {
    const std::uint32_t count = 1 + dice.below(layouts == 1 ? 4 : 2);
    for (std::uint32_t s = 0; s < count; ++s) {
      world.shards.push_back({Bytes(equal_sizes ? 4 : dice.below(6)), layout});
    }
  }
  for (RetentionWorker& worker : world.workers) {
    worker.free = Bytes(worker.host_memory ? dice.below(14) : 0);
    worker.reliable = !dice.chance(20);
    worker.live = !dice.chance(10);
    worker.leaving = dice.chance(10);
  }
  const std::uint32_t density = dice.below(60);
  for (std::uint32_t s = 0; s < world.shards.size(); ++s) {
    for (const RetentionWorker& worker : world.workers) {
      if (!dice.chance(density)) continue;
      const CopyState state =
          dice.chance(60) ? CopyState::Complete : static_cast<CopyState>(dice.below(4));
      world.holds(s, worker.worker, state);
    }
  }
  return world;
}

// Offloads go where they may, at most one a fault domain and shard, within the memory.
void expect_sound(const RetentionWorld& world, const std::vector<Offload>& offloads,
                  const Workers& leaving) {
  std::map<WorkerId, std::uint64_t> taken;
  std::map<std::uint32_t, std::set<DomainId>> used;
  for (const Offload& offload : offloads) {
    ASSERT_TRUE(lasts(world, offload.to, leaving));
    const RetentionWorker& to = world.workers[offload.to.index()];
    ASSERT_TRUE(to.host_memory);
    taken[offload.to] += world.shards[offload.shard].bytes.count();
    ASSERT_LE(taken[offload.to], to.free.count());
    const DomainId domain = domain_of(world, offload.to);
    ASSERT_EQ(domains_with(world, offload.shard, true, leaving).count(domain), 0U);
    ASSERT_TRUE(used[offload.shard].insert(domain).second);
  }
  ASSERT_TRUE(std::is_sorted(offloads.begin(), offloads.end()));
}

// Whatever k - 1 fault domains fail, with all spot workers and those that leave: each shard of the
// layout is complete somewhere.
void expect_survival(const RetentionWorld& world, std::uint32_t layout, std::uint32_t k,
                     const Workers& gone) {
  std::set<DomainId> all;
  for (const RetentionWorker& worker : world.workers) all.insert(domain_of(world, worker.worker));
  const std::vector<DomainId> domains(all.begin(), all.end());
  for (std::uint32_t set = 0; set < 1U << domains.size(); ++set) {
    std::set<DomainId> failed;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      if ((set >> d & 1U) != 0) failed.insert(domains[d]);
    }
    if (failed.size() + 1 > k) continue;
    for (std::uint32_t s = 0; s < world.shards.size(); ++s) {
      if (world.shards[s].layout != layout) continue;
      const auto survives = [&](const ShardHolding& holding) {
        return holding.shard == s && holding.state == CopyState::Complete &&
               lasts(world, holding.worker, gone) &&
               failed.count(domain_of(world, holding.worker)) == 0;
      };
      ASSERT_TRUE(std::any_of(world.holdings.begin(), world.holdings.end(), survives))
          << "shard " << s;
    }
  }
}

void check_choice(RetentionWorld world, bool equal_sizes) {
  const HolderChoice choice = world.choose();
  expect_sound(world, choice.offloads, {});
  ASSERT_EQ(world.safe().domains, best_safety(world));

  // The fewest bytes among the layouts that can be completed.
  std::optional<std::uint64_t> least;
  std::uint32_t furthest = 0;
  for (const std::uint32_t layout : layouts_of(world)) {
    const auto count = fewest_offloads(world, goal_of(world, layout, world.k), {});
    for (std::uint32_t j = 1; j <= world.k; ++j) {
      if (fewest_offloads(world, goal_of(world, layout, j), {})) furthest = std::max(furthest, j);
    }
    if (!count) continue;
    std::uint64_t bytes = 0;
    std::size_t copies = 0;
    for (const auto& [s, wanted] : goal_of(world, layout, world.k)) {
      const std::size_t present = domains_with(world, s, true, {}).size();
      if (present >= wanted) continue;
      copies += wanted - present;
      bytes += world.shards[s].bytes.count() * (wanted - present);
    }
    ASSERT_EQ(copies, *count);
    least = std::min(least.value_or(bytes), bytes);
    if (layout == choice.layout && !choice.shortfall) {
      ASSERT_EQ(choice.offloads.size(), *count);
    }
  }
  ASSERT_EQ(!choice.shortfall, least.has_value());
  if (least) {
    std::uint64_t bytes = 0;
    for (const Offload& o : choice.offloads) bytes += world.shards[o.shard].bytes.count();
    ASSERT_EQ(bytes, *least);
    ASSERT_EQ(choice.reached, world.k);
  } else {
    ASSERT_EQ(choice.reached, choice.shortfall->reached);
    ASSERT_LT(choice.reached, world.k);
    if (equal_sizes) {
      ASSERT_EQ(choice.reached, furthest);
    }
    ASSERT_EQ(choice.shortfall->wanted, world.k);
    if (choice.shortfall->kind == ShortfallKind::NoMemory && equal_sizes) {
      ASSERT_LT(choice.shortfall->free, choice.shortfall->needed);
    }
  }

  for (const Offload& offload : choice.offloads) world.order(offload);
  ASSERT_TRUE(world.choose().offloads.empty() || world.choose().layout != choice.layout);
  world.complete_offloads();
  ASSERT_EQ(std::min(world.k, safety_of(world, choice.layout, false)), choice.reached);
  ASSERT_GE(world.safe().domains, choice.reached);
  if (choice.reached > 0) expect_survival(world, choice.layout, choice.reached, {});
}

// Whether the contract allows that they go: per shard of a layout that is as safe as the version.
bool allowed(const RetentionWorld& world, const Workers& leaving) {
  const std::uint32_t kept = std::min(world.k, best_safety(world));
  bool any = false;
  bool all = true;
  for (const std::uint32_t layout : layouts_of(world)) {
    if (safety_of(world, layout, false) < kept) continue;
    bool fine = true;
    for (const auto& [s, unused] : goal_of(world, layout, 0)) {
      const std::size_t present = domains_with(world, s, false, {}).size();
      const std::size_t left = domains_with(world, s, false, leaving).size();
      fine = fine && left >= std::min<std::size_t>(world.k, present);
    }
    any = any || fine;
    all = all && fine;
  }
  return kept == 0 ? all : any;
}

// Whether offloads, running ones included, could make it so; only for one layout.
bool can_be_allowed(const RetentionWorld& world, const Workers& leaving) {
  std::map<std::uint32_t, std::size_t> goal;
  for (std::uint32_t s = 0; s < world.shards.size(); ++s) {
    goal[s] = std::min<std::size_t>(world.k, domains_with(world, s, false, {}).size());
  }
  return fewest_offloads(world, goal, leaving).has_value();
}

void check_leave(RetentionWorld world, Dice& dice, std::uint32_t layouts) {
  Workers leaving;
  const std::uint32_t count = 1 + dice.below(3);
  for (std::uint32_t i = 0; i < count; ++i) {
    leaving.insert(WorkerId(dice.below(static_cast<std::uint32_t>(world.workers.size()))));
  }
  const std::vector<WorkerId> listed(leaving.begin(), leaving.end());
  LeaveAnswer answer = world.leave(listed);
  ASSERT_EQ(answer.now(), allowed(world, leaving));
  // The order of holdings means nothing.
  RetentionWorld shuffled = world;
  std::shuffle(shuffled.holdings.begin(), shuffled.holdings.end(), dice.random);
  const LeaveAnswer same = shuffled.leave(listed);
  ASSERT_EQ(same.start, answer.start);
  ASSERT_EQ(same.await, answer.await);
  ASSERT_EQ(shuffled.choose().offloads, world.choose().offloads);
  const std::uint32_t kept = std::min(world.k, best_safety(world));
  expect_sound(world, answer.start, leaving);
  for (const Offload& offload : answer.await) {
    const auto runs = [&](const ShardHolding& h) {
      return h.shard == offload.shard && h.worker == offload.to && h.state == CopyState::Offloading;
    };
    ASSERT_TRUE(std::any_of(world.holdings.begin(), world.holdings.end(), runs));
    ASSERT_TRUE(lasts(world, offload.to, leaving));
  }
  if (layouts == 1) {
    ASSERT_EQ(!answer.shortfall, can_be_allowed(world, leaving));
  }
  if (answer.shortfall) return;

  // Once these are complete, and no others that run, they may go, and nothing is lost.
  for (const Offload& offload : answer.start) world.order(offload);
  for (ShardHolding& holding : world.holdings) {
    const Offload offload{holding.shard, holding.worker};
    for (const auto* list : {&answer.start, &answer.await}) {
      if (std::count(list->begin(), list->end(), offload) > 0) {
        holding.state = CopyState::Complete;
      }
    }
  }
  std::erase_if(world.holdings,
                [](const ShardHolding& holding) { return holding.state == CopyState::Offloading; });
  ASSERT_GE(best_safety(world, leaving), kept);
  const auto safest = [&](std::uint32_t layout) {
    return safety_of(world, layout, false, leaving) >= kept;
  };
  for (const std::uint32_t layout : layouts_of(world)) {
    if (kept > 0 && safest(layout)) expect_survival(world, layout, kept, leaving);
  }
  ASSERT_TRUE(world.leave(listed, answer.floor).now());
}

constexpr std::uint64_t kSeeds = 3000;

class HolderChoiceProperty : public ::testing::TestWithParam<std::pair<bool, std::uint32_t>> {};

TEST_P(HolderChoiceProperty, ChoosesAsWellAsExhaustiveSearch) {
  const auto [equal_sizes, layouts] = GetParam();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice{std::mt19937_64(seed)};
    check_choice(random_world(dice, equal_sizes, layouts), equal_sizes);
    if (HasFatalFailure()) return;
  }
}

TEST_P(HolderChoiceProperty, LetsGoExactlyWhomTheContractLetsGo) {
  const auto [equal_sizes, layouts] = GetParam();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice{std::mt19937_64(seed + 1'000'000)};
    const RetentionWorld world = random_world(dice, equal_sizes, layouts);
    check_leave(world, dice, layouts);
    if (HasFatalFailure()) return;
  }
}

// More copies than the exhaustive search takes on: what can be placed if all were as large as the
// largest can be placed as they are.
TEST(HolderChoiceLarge, SmallerShardsNeverFitWorse) {
  std::uint32_t fits = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice{std::mt19937_64(seed)};
    RetentionWorld world(1, 1 + dice.below(6), 3);
    world.k = 1 + dice.below(3);
    const std::uint32_t hosts = static_cast<std::uint32_t>(world.workers.size()) / 2;
    const std::uint32_t smallest = 1 + dice.below(10);
    for (std::uint32_t s = 0; s < 60 + dice.below(60); ++s) {
      world.shards.push_back({Bytes(dice.chance(50) ? smallest : 10)});
      for (std::uint32_t h = 0; h < hosts; ++h) {
        if (dice.chance(10)) world.holds(s, gpu(h));
      }
    }
    world.shards.push_back({Bytes(10)});
    const std::uint32_t places =
        static_cast<std::uint32_t>(world.shards.size()) * world.k / hosts + 1;
    for (RetentionWorker& worker : world.workers) {
      if (worker.host_memory) worker.free = Bytes(10 * dice.below(2 * places) + dice.below(10));
    }
    RetentionWorld rounded = world;
    for (RetainedShard& shard : rounded.shards) shard.bytes = Bytes(10);
    expect_sound(world, world.choose().offloads, {});
    if (HasFatalFailure()) return;
    if (rounded.choose().shortfall) continue;
    ++fits;
    ASSERT_FALSE(world.choose().shortfall);
  }
  EXPECT_GT(fits, 30U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, HolderChoiceProperty,
                         ::testing::Values(std::pair(true, 1U), std::pair(false, 1U),
                                           std::pair(true, 2U), std::pair(false, 2U)));

}  // namespace
}  // namespace holdfast
