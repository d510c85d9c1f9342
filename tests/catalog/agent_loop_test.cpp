// Whole fetches: agents' loops, engines, the coordinator and real bytes over
// the virtual network.
#include <map>
#include <random>
#include <set>

#include "tests/catalog/agent_world.hpp"

namespace holdfast::testing_support {
namespace {

constexpr Version kOne{0, 1};
constexpr Version kTwo{0, 2};

void expect_all(AgentWorld& world, const std::vector<CallId>& ids, CallStatus status) {
  for (const CallId id : ids) {
    ASSERT_TRUE(world.ended(id));
    EXPECT_EQ(world.result(id).status, status) << to_string(world.result(id));
  }
}

std::vector<CallId> operator+(std::vector<CallId> a, const std::vector<CallId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(AgentLoop, AFetchBringsThePublishedBytes) {
  WorldOptions options;
  options.hosts = 8;
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto ids = world.fetch(1) + world.fetch(2) + world.fetch(3);
  ASSERT_TRUE(world.run_until_ended(ids));
  expect_all(world, ids, CallStatus::Ok);
  for (std::uint32_t group = 1; group < 4; ++group) {
    for (const WorkerId worker : world.members(group)) EXPECT_EQ(world.agent(worker).runs(), kOne);
  }
  EXPECT_EQ(world.blocks_moved(), 3 * options.blocks);
  world.run_for(seconds(1));
  world.expect_quiet();
  const auto again = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(again));
  expect_all(world, again, CallStatus::NothingNewer);
}

TEST(AgentLoop, TheNextVersionGoesInPlace) {
  AgentWorld world({});
  world.publish(0, kOne);
  const auto first = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(first));
  std::vector<CallId> unpublish;
  for (const WorkerId worker : world.members(0)) {
    unpublish.push_back(world.call(worker, UnpublishCall{kOne}));
  }
  ASSERT_TRUE(world.run_until_ended(unpublish));
  expect_all(world, unpublish, CallStatus::Ok);
  world.publish(0, kTwo);
  const auto second = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(second));
  expect_all(world, second, CallStatus::Ok);
  for (const WorkerId worker : world.members(1)) EXPECT_EQ(world.agent(worker).runs(), kTwo);
  world.run_for(seconds(1));
  world.expect_quiet();
}

TEST(AgentLoop, OrInTheShadow) {
  WorldOptions options;
  options.slots = 2;
  AgentWorld world(options);
  const FetchCall shadow{std::nullopt, Destination::Shadow, OnNewer::Finish};
  for (std::uint64_t number = 1; number <= 4; ++number) {
    if (number > 2) {
      std::vector<CallId> unpublish;
      for (const WorkerId worker : world.members(0)) {
        unpublish.push_back(world.call(worker, UnpublishCall{{0, number - 2}}));
      }
      ASSERT_TRUE(world.run_until_ended(unpublish));
    }
    world.publish(0, {0, number});
    const auto ids = world.fetch(1, shadow);
    ASSERT_TRUE(world.run_until_ended(ids));
    expect_all(world, ids, CallStatus::Ok);
    for (const WorkerId worker : world.members(1)) {
      EXPECT_EQ(world.agent(worker).runs(), (Version{0, number}));
    }
  }
}

// The reader is stalled; what it is reading from must not change under it.
TEST(AgentLoop, UnpublishRevokesASlowReader) {
  WorldOptions options;
  options.network.rate = Rate(1'000'000);  // 3 ms a block
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto ids = world.fetch(1, {}, seconds(4));
  world.run_for(milliseconds(20));
  const WorkerId source = world.members(0)[0];
  const CallId unpublish =
      world.call(source, UnpublishCall{kOne, OnDeadline::Revoke}, milliseconds(150));
  ASSERT_TRUE(world.run_until_ended({unpublish}));
  EXPECT_EQ(world.result(unpublish).status, CallStatus::Ok);
  EXPECT_TRUE(world.agent(source).grants().empty());
  const VirtualTraffic before = world.network().traffic(source);
  ASSERT_TRUE(world.run_until_ended(ids));
  EXPECT_EQ(world.network().traffic(source).out, before.out);
}

TEST(AgentLoop, ACorruptBlockIsReadAgainElsewhere) {
  WorldOptions options;
  options.hosts = 6;
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto first = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(first));
  world.network().corrupt(world.members(0)[0], 2);
  const auto ids = world.fetch(2);
  ASSERT_TRUE(world.run_until_ended(ids));
  expect_all(world, ids, CallStatus::Ok);
  for (const WorkerId worker : world.members(2)) EXPECT_EQ(world.agent(worker).runs(), kOne);
}

TEST(AgentLoop, ADeathInTheMiddleBreaksItsGroupAlone) {
  WorldOptions options;
  options.hosts = 8;
  options.network.rate = Rate(300'000);  // 10 ms a block
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto one = world.fetch(1);
  const auto two = world.fetch(2);
  const auto three = world.fetch(3);
  world.run_for(milliseconds(60));
  world.crash(world.members(2)[0]);
  ASSERT_TRUE(world.run_until_ended(one + three + std::vector<CallId>{two[1]}));
  expect_all(world, one, CallStatus::Ok);
  expect_all(world, three, CallStatus::Ok);
  EXPECT_EQ(world.result(two[1]).status, CallStatus::GroupBroken);
  EXPECT_EQ(world.result(two[1]).who, std::vector{world.members(2)[0]});
  // It comes back; its group fetches in the next generation, and the survivor
  // what it misses.
  world.restart(world.members(2)[0]);
  world.run_for(seconds(1));
  const auto again = world.fetch(2);
  ASSERT_TRUE(world.run_until_ended(again));
  expect_all(world, again, CallStatus::Ok);
  world.run_for(seconds(1));
  world.expect_quiet();
}

TEST(AgentLoop, ACoordinatorThatComesBackDisturbsNothing) {
  WorldOptions options;
  options.hosts = 6;
  options.network.rate = Rate(30'000);  // 100 ms a block
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto ids = world.fetch(1) + world.fetch(2);
  world.run_for(milliseconds(300));
  world.stop_coordinator();
  world.run_for(seconds(1));
  world.restart_coordinator();
  ASSERT_TRUE(world.run_until_ended(ids));
  expect_all(world, ids, CallStatus::Ok);
  EXPECT_EQ(world.blocks_moved(), 2 * options.blocks);
  world.run_for(seconds(1));
  world.expect_quiet();
}

// Cut off from the coordinator, it is declared dead; its old self ends before
// the new one comes.
TEST(AgentLoop, WhoIsFencedComesBack) {
  WorldOptions options;
  AgentWorld world(options);
  world.publish(0, kOne);
  const auto first = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(first));
  const WorkerId worker = world.members(1)[0];
  world.cut_control(worker, true);
  world.run_for(seconds(5));
  EXPECT_FALSE(world.coordinator->alive(worker));
  world.cut_control(worker, false);
  world.run_for(seconds(2));
  EXPECT_TRUE(world.coordinator->alive(worker));
  EXPECT_EQ(world.agent(worker).incarnation(), 2U);
  EXPECT_FALSE(world.agent(worker).runs());
  const std::size_t before = world.blocks_moved();
  const auto again = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(again));
  expect_all(world, again, CallStatus::Ok);
  EXPECT_EQ(world.blocks_moved(), before);  // everything was there
  EXPECT_EQ(world.agent(worker).runs(), kOne);
}

TEST(AgentLoop, RetainedItIsCopiedToHostMemory) {
  WorldOptions options;
  options.hosts = 6;
  AgentWorld world(options);
  world.publish(0, kOne);
  const CallId retain =
      world.call(world.members(0)[0], RetainCall{kOne, 2, Level::Host}, seconds(20));
  ASSERT_TRUE(world.run_until_ended({retain}, seconds(30)));
  EXPECT_EQ(world.result(retain).status, CallStatus::Ok) << to_string(world.result(retain));
  world.run_for(seconds(1));
  world.expect_quiet();
}

TEST(AgentLoop, LeavesWhenNothingIsReadFromIt) {
  AgentWorld world({});
  world.publish(0, kOne);
  const auto first = world.fetch(1);
  ASSERT_TRUE(world.run_until_ended(first));
  std::vector<CallId> leave;
  for (const WorkerId worker : world.members(0)) leave.push_back(world.call(worker, LeaveCall{}));
  ASSERT_TRUE(world.run_until_ended(leave));
  expect_all(world, leave, CallStatus::Ok);
  for (const WorkerId worker : world.members(0)) {
    EXPECT_TRUE(world.agent(worker).left());
    EXPECT_TRUE(world.loop(worker).idle());
  }
}

// Everything that control messages can suffer; what is asked for still ends,
// and is right.
TEST(AgentLoopProperty, BadControlNetworks) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldOptions options;
    options.seed = seed;
    options.hosts = 6;
    options.network.seed = seed;
    options.network.lost_per_mille = 100;
    options.network.doubled_per_mille = 100;
    options.network.message_jitter = milliseconds(2);
    AgentWorld world(options);
    world.set_control(150, 150, milliseconds(30));
    world.run_for(seconds(3));
    world.publish(0, kOne);
    if (::testing::Test::HasFatalFailure()) return;
    const auto ids = world.fetch(1) + world.fetch(2);
    ASSERT_TRUE(world.run_until_ended(ids));
    expect_all(world, ids, CallStatus::Ok);
    world.run_for(seconds(5));
    world.expect_quiet();
    if (::testing::Test::HasFailure()) return;
  }
}

// Deaths, cuts, coordinators that come and go, calls at any time: every call
// ends, what runs is right (AgentWorld looks), invariants hold all along, and
// once it is quiet a fetch succeeds.
TEST(AgentLoopProperty, Faults) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldOptions options;
    options.seed = seed;
    options.hosts = 8;
    options.slots = 1 + seed % 2;
    options.network.seed = seed;
    options.network.rate = Rate(1'000'000);  // 3 ms a block
    options.network.lost_per_mille = 20;
    AgentWorld world(options);
    world.once = false;
    world.set_control(20, 20, milliseconds(5));
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    std::vector<CallId> calls;
    std::set<WorkerId> dead;
    bool up = true;
    world.publish(0, kOne);
    for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) {
      const auto group = static_cast<std::uint32_t>(1 + pick(3));
      const WorkerId victim = world.members(group)[pick(2)];
      const Time span = milliseconds(static_cast<std::int64_t>(50 + pick(4'000)));
      switch (pick(8)) {
        case 0:
          if (dead.insert(victim).second) world.crash(victim);
          break;
        case 1:
          for (const WorkerId worker : dead) world.restart(worker);
          dead.clear();
          break;
        case 2:
          if (up) world.stop_coordinator();
          if (!up) world.restart_coordinator();
          up = !up;
          break;
        case 3:
          world.cut_control(victim, pick(2) == 0);
          break;
        default:
          for (const WorkerId worker : world.members(group)) {
            if (!dead.contains(worker)) calls.push_back(world.call(worker, FetchCall{}, span));
          }
      }
      world.run_for(milliseconds(static_cast<std::int64_t>(pick(600))));
    }
    if (!up) world.restart_coordinator();
    for (const WorkerId worker : dead) world.restart(worker);
    for (std::uint32_t group = 1; group < 4; ++group) {
      for (const WorkerId worker : world.members(group)) world.cut_control(worker, false);
    }
    world.run_for(seconds(20));
    world.expect_quiet();
    if (::testing::Test::HasFailure()) return;
    // A worker that came back counts from 1 and is told how earlier fetches of
    // the generation ended: each calls again until its own ends well.
    const Time end = world.now() + seconds(60);
    bool ok = false;
    std::map<WorkerId, CallId> last;
    while (!ok && world.now() < end && !::testing::Test::HasFailure()) {
      ok = true;
      for (const WorkerId worker : world.members(1)) {
        const bool done = last.contains(worker) && world.ended(last[worker]);
        if (done && world.result(last[worker]).status == CallStatus::Ok) continue;
        ok = false;
        if (last.contains(worker) && !done) continue;
        last[worker] =
            world.call(worker, FetchCall{kOne, Destination::InPlace, OnNewer::Finish}, seconds(3));
      }
      world.run_for(milliseconds(20));
    }
    EXPECT_TRUE(ok);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast::testing_support
