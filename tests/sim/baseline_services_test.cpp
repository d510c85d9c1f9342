// The baselines as services: what they deliver, what a failure costs them, and that they are not
// better than what they stand for can be.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/greedy_service.hpp"
#include "sim/nccl_service.hpp"
#include "sim/store_service.hpp"
#include "tests/sim/service_world.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr GroupId kTrainer(0U);
constexpr Time kSoon = seconds(60);
constexpr Time kDetection = milliseconds(500);
constexpr Time kInit = seconds(5);

testing_support::ClusterShape small() {
  testing_support::ClusterShape shape;
  shape.racks = 2;
  shape.hosts = 4;
  shape.gpus = 2;
  shape.nics = 2;
  return shape;
}

enum class Kind { Greedy, GreedyCapped, NcclRing, NcclTree, Ucx, Store };

std::string kind_name(const ::testing::TestParamInfo<Kind>& kind) {
  constexpr std::array kNames{"greedy", "greedy_capped", "nccl_ring", "nccl_tree", "ucx", "store"};
  return kNames[static_cast<std::size_t>(kind.param)];
}

class Baselines : public ::testing::TestWithParam<Kind> {
 protected:
  Baselines() : world_(small(), 256, Bytes(4 << 20)) { make(); }

  void make() {
    DirectOptions direct;
    direct.network.driver = FlowDriver::MaxMin;
    direct.network.detection = kDetection;
    const Kind kind = GetParam();
    if (kind == Kind::Greedy || kind == Kind::GreedyCapped) {
      GreedyOptions options{direct, {}, {}};
      if (kind == Kind::GreedyCapped) options.reader_cap = 2;
      service_ = std::make_unique<GreedyService>(world_.router, world_.setup, options);
    } else if (kind == Kind::Ucx) {
      service_ = make_ucx_service(world_.router, world_.setup, world_.options(kDetection),
                                  milliseconds(10));
    } else if (kind == Kind::Store) {
      StoreOptions options;
      options.protocol = world_.options(kDetection);
      options.hosts = {world_.topology.find_node("d0.r0.h0.mem"),
                       world_.topology.find_node("d0.r0.h1.mem")};
      service_ = make_store_service(world_.router, world_.setup, options);
    } else {
      NcclOptions options{direct, kInit,
                          kind == Kind::NcclRing ? BroadcastShape::Ring : BroadcastShape::Tree};
      service_ = std::make_unique<NcclService>(world_.router, world_.setup, options);
    }
    seen_.emplace(*service_);
  }
  [[nodiscard]] bool is_nccl() const {
    return GetParam() == Kind::NcclRing || GetParam() == Kind::NcclTree;
  }
  // With the one in the store.
  [[nodiscard]] std::uint64_t copies() const {
    return world_.groups() - (GetParam() == Kind::Store ? 0 : 1);
  }
  void start_all() {
    for (std::uint32_t g = 0; g < world_.groups(); ++g) service_->start(GroupId(g));
  }
  void fetch(std::uint32_t group) {
    calls_[service_->call(GroupId(group), FetchCall{}, service_->now() + kSoon)] = group;
  }
  // Publishes, and calls `then` when that is done.
  void publish(const Version& version, std::function<void()> then) {
    const GroupCall call = service_->call(kTrainer, PublishCall{version}, service_->now() + kSoon);
    watch_[call] = [this, call, then = std::move(then)] {
      EXPECT_EQ(seen_->end(call)->result.status, CallStatus::Ok)
          << to_string(seen_->end(call)->result);
      published_ = service_->now();
      then();
    };
  }
  void play(const std::function<void()>& begin, Time length = kSoon) {
    seen_->on_end = [this](GroupId, GroupCall call, const CallResult&) {
      const auto at = watch_.find(call);
      if (at != watch_.end()) at->second();
    };
    service_->call_at(length, [this] { service_->stop(); });
    service_->run(*seen_, begin);
  }
  void at_share(double share, std::function<void()> what) {
    const double total = 512.0 * (world_.groups() - 1);
    seen_->on_delivery = [this, share, total, what = std::move(what), done = false]() mutable {
      if (done || static_cast<double>(seen_->delivered) < share * total) return;
      done = true;
      what();
    };
  }
  // When the last of them ended; each Ok unless its group is `but`.
  Time expect_ok(const Version& version, std::optional<std::uint32_t> but = {}) {
    Time last;
    for (const auto& [call, group] : calls_) {
      const Recorder::End* end = seen_->end(call);
      EXPECT_NE(end, nullptr) << "group " << group;
      if (end == nullptr || but == group) continue;
      EXPECT_EQ(end->result.status, CallStatus::Ok)
          << "group " << group << ": " << to_string(end->result);
      EXPECT_EQ(end->result.version, version);
      last = std::max(last, end->at);
    }
    return last;
  }

  ServiceWorld world_;
  std::unique_ptr<WeightService> service_;
  std::optional<Recorder> seen_;
  std::map<GroupCall, std::uint32_t> calls_;
  std::map<GroupCall, std::function<void()>> watch_;
  Time published_;
};

INSTANTIATE_TEST_SUITE_P(All, Baselines,
                         ::testing::Values(Kind::Greedy, Kind::GreedyCapped, Kind::NcclRing,
                                           Kind::NcclTree, Kind::Ucx, Kind::Store),
                         kind_name);

TEST_P(Baselines, EveryGroupGetsWhatIsPublished) {
  play([&] {
    start_all();
    publish({1, 1}, [&] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
    });
  });
  const Time took = expect_ok({1, 1}) - published_;
  EXPECT_EQ(service_->moved().gpu, world_.model() * copies());
  // A NIC's time for a shard is what no policy can beat; a trainer that feeds seven replicas from
  // its own NICs takes seven times that.
  const double shard = static_cast<double>(world_.model().count()) / 2 / 50e9;
  EXPECT_GE(took.seconds(), shard);
  if (is_nccl()) {
    EXPECT_GE(took, kInit);
    EXPECT_LE(took.seconds(), kInit.seconds() + shard * 1.3);
    for (const auto& [call, group] : calls_) EXPECT_EQ(seen_->end(call)->at - published_, took);
  }
  if (GetParam() == Kind::Ucx) {
    EXPECT_GE(took.seconds(), shard * 7);
    for (const auto& [pair, blocks] : seen_->from) EXPECT_LT(pair.second.value(), 2U);
  }
  if (GetParam() == Kind::Store) {
    // Each of its two hosts sends half of the model seven times, over what joins memory and NICs.
    EXPECT_GE(took.seconds(), shard * 7 * 50 / 55 / 2);
    for (const auto& [pair, blocks] : seen_->from) EXPECT_FALSE(pair.second.valid());
  }
}

// One after the other, so that whatever keeps old versions must give them up.
TEST_P(Baselines, FiveVersionsInTurn) {
  std::uint64_t number = 0;
  std::function<void()> next = [&] {
    calls_.clear();
    publish({1, ++number}, [&] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
    });
    if (number == 5) return;
    service_->call_at(service_->now() + seconds(12), [&] {
      expect_ok({1, number});
      const GroupCall back =
          service_->call(kTrainer, UnpublishCall{{1, number}}, service_->now() + kSoon);
      watch_[back] = next;
    });
  };
  play(
      [&] {
        start_all();
        next();
      },
      seconds(90));
  EXPECT_EQ(number, 5U);
  ASSERT_EQ(calls_.size(), world_.groups() - 1);
  expect_ok({1, 5});
}

TEST_P(Baselines, ALaterVersionTakesTheFirstOnesPlace) {
  play([&] {
    start_all();
    publish({1, 1}, [&] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
    });
    service_->call_at(seconds(10), [&] {
      const GroupCall back = service_->call(kTrainer, UnpublishCall{{1, 1}}, kSoon);
      watch_[back] = [&] {
        expect_ok({1, 1});
        calls_.clear();
        publish({1, 2}, [&] {
          for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
        });
      };
    });
  });
  ASSERT_EQ(calls_.size(), world_.groups() - 1);
  expect_ok({1, 2});
  for (std::uint32_t g = 1; g < world_.groups(); ++g) {
    EXPECT_EQ(seen_->runs[GroupId(g)].version, (Version{1, 2}));
  }
}

// A replica dies half-way: the others get everything. With nccl nothing that had arrived counts,
// and everybody waits for the detection and a new communicator.
TEST_P(Baselines, ADeadReplicaCostsTheOthersWhatIsAssumed) {
  at_share(0.5, [&] { service_->kill(GroupId(3U)); });
  play([&] {
    start_all();
    publish({1, 1}, [&] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
    });
  });
  const Time took = expect_ok({1, 1}, 3U) - published_;
  if (is_nccl()) {
    EXPECT_GE(took, kInit * 2 + kDetection);
    EXPECT_GE(service_->moved().gpu.count(), world_.model().count() * 9);
    EXPECT_EQ(dynamic_cast<const NcclService&>(*service_).rebuilds(), 2U);
  } else {
    EXPECT_LE(took, seconds(2));
  }
  EXPECT_FALSE(service_->running(GroupId(3U)));
}

// Whoever dies, and whoever was reading from it: all others end with everything, each block once.
TEST_P(Baselines, AnyReplicaMayDieHalfWay) {
  std::size_t losses = 0;
  for (std::uint32_t victim = 1; victim < world_.groups(); ++victim) {
    SCOPED_TRACE(victim);
    calls_.clear();
    watch_.clear();
    make();
    at_share(0.4, [&] { service_->kill(GroupId(victim)); });
    play([&] {
      start_all();
      publish({1, 1}, [&] {
        for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
      });
    });
    expect_ok({1, 1}, victim);
    losses += seen_->losses.size();
    if (is_nccl()) continue;  // begins from the start
    for (std::uint32_t w = 2; w < world_.groups() * 2; ++w) {
      if (w / 2 != victim) {
        EXPECT_EQ(seen_->deliveries[WorkerId(w)], 256U) << w;
      }
    }
  }
  EXPECT_GT(losses, 0U);
}

// One more replica comes when the others run the version.
TEST_P(Baselines, ANewcomerIsServed) {
  play([&] {
    for (std::uint32_t g = 0; g + 1 < world_.groups(); ++g) service_->start(GroupId(g));
    publish({1, 1}, [&] {
      for (std::uint32_t g = 1; g + 1 < world_.groups(); ++g) fetch(g);
    });
    service_->call_at(seconds(20), [&] {
      service_->start(GroupId(7U));
      fetch(7);
    });
  });
  expect_ok({1, 1});
  EXPECT_EQ(service_->moved().gpu, world_.model() * copies());
  for (std::uint32_t g = 1; g < world_.groups(); ++g) {
    EXPECT_EQ(seen_->runs[GroupId(g)].version, (Version{1, 1}));
    // With nccl everybody stops for it.
    EXPECT_EQ(seen_->runs[GroupId(g)].at >= seconds(20), is_nccl() || g == 7) << g;
  }
}

TEST_P(Baselines, ALeaveWaitsForReadersAndEnds) {
  GroupCall leave = 0;
  play([&] {
    start_all();
    publish({1, 1}, [&] {
      for (std::uint32_t g = 1; g < world_.groups(); ++g) fetch(g);
    });
    service_->call_at(seconds(15),
                      [&] { leave = service_->call(GroupId(2U), LeaveCall{}, kSoon); });
  });
  expect_ok({1, 1});
  ASSERT_NE(seen_->end(leave), nullptr);
  EXPECT_EQ(seen_->end(leave)->result.status, CallStatus::Ok);
  EXPECT_FALSE(service_->running(GroupId(2U)));
}

}  // namespace
}  // namespace holdfast::sim::testing
