// The whole protocol in simulation: what a user sees of it, with and without faults.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "tests/sim/service_world.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr Version kFirst{1, 1};
constexpr GroupId kTrainer(0U);
constexpr Time kSoon = seconds(60);

testing_support::ClusterShape small(std::uint32_t racks = 2, std::uint32_t hosts = 4) {
  testing_support::ClusterShape shape;
  shape.racks = racks;
  shape.hosts = hosts;
  shape.gpus = 2;
  shape.nics = 2;
  return shape;
}

class Fixture {
 public:
  explicit Fixture(const testing_support::ClusterShape& shape, Time detection = milliseconds(100),
                   std::uint32_t blocks = 64, Bytes block = Bytes(16 << 20), Bytes memory = {})
      : world(shape, blocks, block, memory) {
    options = world.options(detection);
    options.check_invariants = true;
  }

  ProtocolService& make() {
    service.emplace(world.router, world.setup, options);
    seen.emplace(*service);
    return *service;
  }

  // Everybody starts; the trainer publishes; whoever `who` says fetches it as soon as that is done.
  void publish_and_fetch(const std::vector<std::uint32_t>& who) {
    for (std::uint32_t g = 0; g < world.groups(); ++g) service->start(GroupId(g));
    const GroupCall publish = service->call(kTrainer, PublishCall{kFirst}, kSoon);
    seen->on_end = [this, publish, who](GroupId, GroupCall call, const CallResult& result) {
      if (call == publish) {
        EXPECT_EQ(result.status, CallStatus::Ok) << to_string(result);
        published = service->now();
        for (const std::uint32_t g : who) fetch(GroupId(g));
      } else if (fetches.count(call) != 0) {
        last = service->now();
        if (++fetched == fetches.size() && stop_at_end) service->stop();
      }
    };
  }
  void fetch(GroupId group, Time deadline = kSoon) {
    fetches[service->call(group, FetchCall{}, deadline)] = group;
  }
  std::vector<std::uint32_t> everyone() const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t g = 1; g < world.groups(); ++g) result.push_back(g);
    return result;
  }
  void expect_all_ok() const {
    for (const auto& [call, group] : fetches) {
      const Recorder::End* end = seen->end(call);
      ASSERT_NE(end, nullptr) << "group " << group.value() << " never ended";
      EXPECT_EQ(end->result.status, CallStatus::Ok)
          << "group " << group.value() << ": " << to_string(end->result);
      EXPECT_EQ(end->result.version, kFirst);
    }
  }
  void expect_sound() const {
    for (const std::string& what : service->broken()) ADD_FAILURE() << what;
    for (const std::string& what : seen->problems) ADD_FAILURE() << what;
  }

  ServiceWorld world;
  ProtocolOptions options;
  std::optional<ProtocolService> service;
  std::optional<Recorder> seen;
  std::map<GroupCall, GroupId> fetches;
  std::size_t fetched = 0;
  bool stop_at_end = true;
  Time published;
  Time last;
};

TEST(ProtocolService, EveryGroupGetsWhatIsPublished) {
  Fixture f(small());
  ProtocolService& service = f.make();
  service.call_at(seconds(30), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_all_ok();
  f.expect_sound();
  EXPECT_EQ(f.fetches.size(), f.world.groups() - 1);
  for (const auto& [call, group] : f.fetches) EXPECT_EQ(f.seen->runs[group].version, kFirst);
  // Each receiver gets each of its blocks once, and no byte moves twice.
  for (std::uint32_t g = 1; g < f.world.groups(); ++g) {
    for (std::uint32_t r = 0; r < f.world.ranks(); ++r) {
      EXPECT_EQ(f.seen->deliveries[f.world.worker(g, r)], 64U);
    }
  }
  EXPECT_EQ(service.moved().gpu, f.world.model() * (f.world.groups() - 1));
  EXPECT_EQ(f.seen->plans, 1U);
  // Receivers pass on what they have.
  EXPECT_TRUE(std::any_of(f.seen->from.begin(), f.seen->from.end(), [&](const auto& entry) {
    return entry.first.second.value() >= f.world.ranks();
  }));
}

// Without a fault each byte crosses the WAN once for each datacenter that lacks it.
TEST(ProtocolService, EachDatacenterIsEnteredOncePerByte) {
  testing_support::ClusterShape shape = small(1, 3);
  shape.datacenters = 3;
  Fixture f(shape);
  ProtocolService& service = f.make();
  service.call_at(seconds(60), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_all_ok();
  f.expect_sound();
  EXPECT_EQ(service.moved().wan, f.world.model() * 2);
}

// Calls `what` once when that part of all blocks has been delivered.
void at_share(Fixture& f, double share, const std::function<void()>& what) {
  const auto blocks = static_cast<double>(f.world.model().count() / (16U << 20));
  const auto total = blocks * (f.world.groups() - 1);
  auto done = std::make_shared<bool>(false);
  f.seen->on_delivery = [&f, share, total, what, done] {
    if (*done || static_cast<double>(f.seen->delivered) < share * total) return;
    *done = true;
    what();
  };
}

// A replica that brings blocks over the WAN dies. What crosses it beside one copy is what only that
// replica had there, and what was under way to it: both are recomputed from the deliveries.
TEST(ProtocolService, ADeadSeedCostsTheWanWhatOnlyItHadThere) {
  testing_support::ClusterShape shape = small(1, 4);
  shape.datacenters = 2;
  bool any_extra = false;
  for (std::uint32_t victim = 4; victim < 8; ++victim) {
    for (const double share : {0.5, 0.6, 0.7, 0.8}) {
      SCOPED_TRACE(fmt::format("victim {} at {}", victim, share));
      Fixture f(shape);
      ProtocolService& service = f.make();
      const auto far = [&](WorkerId worker) { return worker.value() >= 4 * f.world.ranks(); };
      const auto dies = [&](WorkerId worker) { return worker.value() / f.world.ranks() == victim; };
      std::map<BlockId, std::vector<WorkerId>> there;  // of each block, who verified it beyond
      f.seen->on_block = [&](WorkerId receiver, BlockId block) {
        if (far(receiver)) there[block].push_back(receiver);
      };
      Bytes allowed = f.world.model();
      at_share(f, share, [&] {
        const Bytes block(16 << 20);
        for (const auto& [id, workers] : there) {
          if (std::all_of(workers.begin(), workers.end(), dies)) allowed += block;
        }
        for (const Plan& plan : f.seen->made) {
          for (const Stripe& stripe : plan.stripes) {
            for (const Edge& edge : stripe.edges) {
              if (!far(edge.parent) && dies(edge.child)) allowed += block * edge.window;
            }
          }
        }
        service.kill(GroupId(victim));
        f.stop_at_end = false;
      });
      service.call_at(seconds(60), [&] { service.stop(); });
      service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
      f.expect_sound();
      for (const auto& [call, group] : f.fetches) {
        if (group == GroupId(victim)) continue;
        ASSERT_NE(f.seen->end(call), nullptr) << group.value();
        EXPECT_EQ(f.seen->end(call)->result.status, CallStatus::Ok) << group.value();
      }
      EXPECT_GE(service.moved().wan, f.world.model());
      EXPECT_LE(service.moved().wan, allowed);
      any_extra = any_extra || service.moved().wan > f.world.model();
    }
  }
  EXPECT_TRUE(any_extra) << "nobody who died had brought anything";
}

// One that dies before it has begun to read leaves its children to somebody else: of them one reads
// over the WAN, the others from it. What was under way to each when it got another parent is lost.
TEST(ProtocolService, ChildrenOfADeadSeedCrossTheWanOnce) {
  testing_support::ClusterShape shape = small(1, 4);
  shape.datacenters = 2;
  for (std::uint32_t victim = 4; victim < 8; ++victim) {
    SCOPED_TRACE(fmt::format("victim {}", victim));
    Fixture f(shape);
    ProtocolService& service = f.make();
    at_share(f, 0.3, [&] {
      service.kill(GroupId(victim));
      f.stop_at_end = false;
    });
    service.call_at(seconds(60), [&] { service.stop(); });
    service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
    f.expect_sound();
    std::map<WorkerId, std::uint32_t> under_way;  // blocks
    for (const Plan& plan : f.seen->made) {
      for (const Stripe& stripe : plan.stripes) {
        for (const Edge& edge : stripe.edges) {
          const bool enters = edge.child.value() >= 4 * f.world.ranks() &&
                              edge.parent.value() < 4 * f.world.ranks();
          if (!enters) continue;
          under_way[edge.child] = std::max(under_way[edge.child], edge.window);
        }
      }
    }
    Bytes allowed = f.world.model();
    for (const auto& [worker, blocks] : under_way) allowed += Bytes(16 << 20) * blocks;
    EXPECT_LE(service.moved().wan, allowed);
  }
}

// The makespan of the same update without a fault.
Time quiet_makespan(const testing_support::ClusterShape& shape) {
  Fixture f(shape);
  ProtocolService& service = f.make();
  service.call_at(seconds(60), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  return f.last - f.published;
}

// A replica that others read from dies half-way: it alone is not served, the others end in time,
// and nobody reads twice what it has.
TEST(ProtocolService, ADeadSourceCostsItsDetectionAtMost) {
  for (std::uint32_t victim = 1; victim < 8; ++victim) {
    SCOPED_TRACE(fmt::format("victim {}", victim));
    Fixture f(small());
    ProtocolService& service = f.make();
    at_share(f, 0.5, [&] {
      service.kill(GroupId(victim));
      f.stop_at_end = false;
    });
    Time last_survivor;
    service.call_at(seconds(20), [&] { service.stop(); });
    service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
    f.expect_sound();
    for (const auto& [call, group] : f.fetches) {
      const Recorder::End* end = f.seen->end(call);
      ASSERT_NE(end, nullptr) << group.value();
      if (group == GroupId(victim)) {
        EXPECT_EQ(end->result.status, CallStatus::Stopped);
        continue;
      }
      EXPECT_EQ(end->result.status, CallStatus::Ok) << to_string(end->result);
      last_survivor = std::max(last_survivor, end->at);
      for (std::uint32_t r = 0; r < f.world.ranks(); ++r) {
        EXPECT_EQ(f.seen->deliveries[f.world.worker(group.value(), r)], 64U);
      }
    }
    EXPECT_LE((last_survivor - f.published).seconds(),
              quiet_makespan(small()).seconds() * 1.5 + 0.1 + 0.1);
  }
}

// The trainer dies when half of the bytes have arrived; all of its blocks are elsewhere or it was
// the only one: with every block out at least once, everybody completes.
TEST(ProtocolService, ADeadRackCostsItsOwnGroupsOnly) {
  Fixture f(small(3, 4));
  ProtocolService& service = f.make();
  at_share(f, 0.5, [&] {
    f.stop_at_end = false;
    service.apply(f.world.domain_dies("d0.r1"));
  });
  service.call_at(seconds(20), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_sound();
  for (const auto& [call, group] : f.fetches) {
    const Recorder::End* end = f.seen->end(call);
    ASSERT_NE(end, nullptr) << group.value();
    const bool dead = group.value() >= 4 && group.value() < 8;
    EXPECT_EQ(end->result.status, dead ? CallStatus::Stopped : CallStatus::Ok)
        << group.value() << ": " << to_string(end->result);
  }
}

// A coordinator that is away for 5 s delays no byte of what runs, and the fetches end when it is
// back and has heard of everybody.
TEST(ProtocolService, RunningTransfersNeedNoCoordinator) {
  Fixture f(small());
  ProtocolService& service = f.make();
  Time last_block;
  at_share(f, 0.3, [&] {
    service.stop_coordinator();
    service.call_at(service.now() + seconds(5), [&] { service.start_coordinator(); });
  });
  const auto counting = f.seen->on_delivery;
  f.seen->on_delivery = [&] {
    last_block = service.now();
    counting();
  };
  service.call_at(seconds(60), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_all_ok();
  f.expect_sound();
  EXPECT_LE(last_block - f.published, quiet_makespan(small()));
  EXPECT_EQ(service.moved().gpu, f.world.model() * (f.world.groups() - 1));
}

// One who asks when half is done gets everything too, and no byte moves twice.
TEST(ProtocolService, ALateJoinerIsServed) {
  Fixture f(small());
  ProtocolService& service = f.make();
  at_share(f, 0.5, [&] { f.fetch(GroupId(7U)); });
  service.call_at(seconds(60), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch({1, 2, 3, 4, 5, 6}); });
  f.expect_all_ok();
  f.expect_sound();
  EXPECT_EQ(f.fetches.size(), 7U);
  EXPECT_EQ(service.moved().gpu, f.world.model() * 7);
}

// A spot replica that is told of its end leaves: the others go on, and when it is gone nobody reads
// from it.
TEST(ProtocolService, ASpotNoticeIsALeave) {
  Fixture f(small());
  for (std::uint32_t g = 4; g < 8; ++g) f.world.setup.groups[g].reliable = false;
  ProtocolService& service = f.make();
  GroupCall leave = 0;
  at_share(f, 0.5,
           [&] { leave = service.call(GroupId(5U), LeaveCall{}, service.now() + seconds(30)); });
  f.stop_at_end = false;
  service.call_at(seconds(20), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_sound();
  ASSERT_NE(f.seen->end(leave), nullptr);
  EXPECT_EQ(f.seen->end(leave)->result.status, CallStatus::Ok)
      << to_string(f.seen->end(leave)->result);
  EXPECT_FALSE(service.running(GroupId(5U)));
  EXPECT_TRUE(f.seen->losses.empty());
  for (const auto& [call, group] : f.fetches) {
    if (group == GroupId(5U)) continue;
    EXPECT_EQ(f.seen->end(call)->result.status, CallStatus::Ok) << group.value();
  }
}

// A group that is killed and started again is another: it fetches anew.
TEST(ProtocolService, ARestartedGroupFetchesAnew) {
  Fixture f(small());
  ProtocolService& service = f.make();
  f.stop_at_end = false;
  GroupCall again = 0;
  service.call_at(seconds(5), [&] {
    service.kill(GroupId(3U));
    EXPECT_FALSE(service.running(GroupId(3U)));
    service.start(GroupId(3U));
    EXPECT_TRUE(service.running(GroupId(3U)));
    again = service.call(GroupId(3U), FetchCall{}, kSoon);
  });
  service.call_at(seconds(15), [&] { service.stop(); });
  service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
  f.expect_all_ok();
  f.expect_sound();
  ASSERT_NE(f.seen->end(again), nullptr);
  EXPECT_EQ(f.seen->end(again)->result.status, CallStatus::Ok)
      << to_string(f.seen->end(again)->result);
  EXPECT_EQ(f.seen->runs[GroupId(3U)].version, kFirst);
}

// The same calls give the same run.
TEST(ProtocolService, RunsAreDeterministic) {
  const auto play = [] {
    Fixture f(small());
    ProtocolService& service = f.make();
    at_share(f, 0.4, [&] { service.kill(GroupId(2U)); });
    service.call_at(seconds(8), [&] { service.stop(); });
    f.stop_at_end = false;
    service.run(*f.seen, [&] { f.publish_and_fetch(f.everyone()); });
    return std::tuple(f.last, service.traffic().to_coordinator, service.traffic().to_workers,
                      f.seen->from, service.moved().gpu);
  };
  EXPECT_EQ(play(), play());
}

}  // namespace
}  // namespace holdfast::sim::testing
