// Faults of SimNetwork against closed forms, and its two ways to share bandwidth against each
// other.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "sim/child_process.hpp"
#include "sim/sim_network.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr Time kDetection = milliseconds(100);

// What a worker heard, and when.
struct Heard {
  Time at;
  std::uint32_t worker = 0;
  std::uint32_t what = 0;  // 0: read, 1: message, 2: peer lost
  std::uint64_t id = 0;    // of the read; the sender; the lost worker
  std::uint32_t status = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Heard&, const Heard&) = default;
};

// A star of workers with open reads and messages, driven by a script of calls.
class Stage {
 public:
  Stage(std::uint32_t workers, FlowDriver driver)
      : topology_(make_star({.hosts = workers})), router_(topology_) {
    std::vector<NodeId> nodes;
    for (std::uint32_t i = 0; i < workers; ++i) nodes.push_back(node("gpu", i));
    NetworkOptions options;
    options.driver = driver;
    options.links = PlatformLinks::All;
    options.detection = kDetection;
    network_.emplace(router_, nodes, std::span<const DataPath>{}, Meters{}, options);
    regions_.resize(workers);
    access_.resize(workers);
    for (std::uint32_t i = 0; i < workers; ++i) settle_in(i);
  }

  [[nodiscard]] SimNetwork& network() { return *network_; }
  [[nodiscard]] LinkId nic_link(std::uint32_t worker) const {
    for (const Neighbour& n : topology_.neighbours(node("nic", worker))) {
      if (topology_.link(n.link).kind == LinkKind::Fabric) return n.link;
    }
    return {};
  }
  void limit(std::uint32_t worker, std::uint32_t share) {
    network_->limit(std::vector<LinkShare>{{nic_link(worker), share}});
  }
  // Registers memory and lets everybody read it.
  void settle_in(std::uint32_t worker) {
    Transport& transport = network_->transport(WorkerId(worker));
    regions_[worker] = transport.add_region({}, Bytes(std::uint64_t{1} << 40));
    access_[worker].clear();
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      access_[worker].push_back(transport.allow(WorkerId(i), {1, 1}, regions_[worker]));
    }
  }
  [[nodiscard]] PeerId open(std::uint32_t reader, std::uint32_t source) {
    return network_->transport(WorkerId(reader))
        .open({WorkerId(source), {node("nic", source), node("nic", reader), 0}, {}}, 0);
  }
  void read(std::uint32_t reader, std::uint32_t source, PeerId peer, OpId id, Bytes bytes,
            Time deadline = Time::never()) {
    const Piece piece{0, 0, bytes.count()};
    ReadRequest request;
    request.id = id;
    request.peer = peer;
    request.access = access_[source][reader];
    request.region = regions_[reader];
    request.pieces = std::span(&piece, 1);
    request.deadline = deadline;
    ASSERT_EQ(network_->transport(WorkerId(reader)).read(request), Posted::Posted);
  }
  void send(std::uint32_t from, PeerId peer) {
    const std::array<std::byte, 1> payload{};
    EXPECT_TRUE(network_->transport(WorkerId(from)).send(peer, payload));
  }
  std::vector<Heard> run(const std::function<void()>& begin) {
    network_->call_at(Time(0), begin);
    network_->run([this](WorkerId worker) { listen(worker); }, [this] { network_->stop(); });
    return heard_;
  }

 private:
  [[nodiscard]] NodeId node(const char* kind, std::uint32_t worker) const {
    return topology_.find_node(kind + std::to_string(worker));
  }
  void listen(WorkerId worker) {
    std::array<TransportEvent, 8> events;
    for (;;) {
      const std::size_t count = network_->transport(worker).poll(events);
      if (count == 0) return;
      for (std::size_t i = 0; i < count; ++i) note(worker, events[i]);
    }
  }
  void note(WorkerId worker, const TransportEvent& event) {
    Heard heard;
    heard.at = network_->now();
    heard.worker = worker.value();
    if (const auto* done = std::get_if<ReadDone>(&event)) {
      heard.id = done->id;
      heard.status = static_cast<std::uint32_t>(done->status);
      heard.bytes = done->bytes.count();
    } else if (const auto* message = std::get_if<MessageReceived>(&event)) {
      heard.what = 1;
      heard.id = message->from.value();
    } else if (const auto* lost = std::get_if<PeerLost>(&event)) {
      heard.what = 2;
      heard.id = lost->worker.value();
    }
    heard_.push_back(heard);
  }

  Topology topology_;
  Router router_;
  std::optional<SimNetwork> network_;
  std::vector<RegionId> regions_;
  std::vector<std::vector<Access>> access_;  // by source, then reader
  std::vector<Heard> heard_;
};

using Script = std::function<void(Stage&)>;

std::vector<Heard> play_here(std::uint32_t workers, FlowDriver driver, const Script& script) {
  Stage stage(workers, driver);
  return stage.run([&] { script(stage); });
}

// SimGrid lives once in a process.
std::vector<Heard> play(std::uint32_t workers, FlowDriver driver, const Script& script) {
  if (driver == FlowDriver::MaxMin) return play_here(workers, driver, script);
  ChildProcess child([&](ChildProcess::Channel& out) {
    const std::vector<Heard> heard = play_here(workers, driver, script);
    out.send(1, std::as_bytes(std::span(heard)));
  });
  const auto frame = child.next(60'000);
  EXPECT_TRUE(frame) << child.how_it_ended();
  std::vector<Heard> heard(frame ? frame->payload.size() / sizeof(Heard) : 0);
  if (frame) std::memcpy(heard.data(), frame->payload.data(), frame->payload.size());
  return heard;
}

class NetworkFaults : public ::testing::TestWithParam<FlowDriver> {
 protected:
  [[nodiscard]] std::vector<Heard> play(std::uint32_t workers, const Script& script) const {
    return testing::play(workers, GetParam(), script);
  }
};

std::string driver_name(const ::testing::TestParamInfo<FlowDriver>& driver) {
  switch (driver.param) {
    case FlowDriver::KernelAction:
      return "kernel_action";
    case FlowDriver::DirectComm:
      return "direct_comm";
    case FlowDriver::MaxMin:
      return "max_min";
  }
  return {};
}

INSTANTIATE_TEST_SUITE_P(Drivers, NetworkFaults,
                         ::testing::Values(FlowDriver::MaxMin, FlowDriver::KernelAction,
                                           FlowDriver::DirectComm),
                         driver_name);

// 10 MB at 1 GB/s take 10 ms. Half the rate between 2 and 6 ms: 2 MB + 2 MB + 6 MB: 12 ms.
TEST_P(NetworkFaults, HalfTheRateForAWhileIsExact) {
  const auto heard = play(2, [](Stage& stage) {
    stage.read(1, 0, stage.open(1, 0), 7, Bytes(10'000'000));
    stage.network().call_at(kLatency + milliseconds(2), [&] { stage.limit(0, 500'000); });
    stage.network().call_at(kLatency + milliseconds(6), [&] { stage.limit(0, 1'000'000); });
  });
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0], (Heard{kLatency * 2 + milliseconds(12), 1, 0, 7,
                             static_cast<std::uint32_t>(ReadStatus::Ok), 10'000'000}));
}

// Down between 2 and 52 ms, which is less than the detection time: everything is 50 ms later.
TEST_P(NetworkFaults, AShortOutageIsAPause) {
  const auto heard = play(2, [](Stage& stage) {
    stage.read(1, 0, stage.open(1, 0), 7, Bytes(10'000'000));
    stage.network().call_at(kLatency + milliseconds(2), [&] { stage.limit(1, 0); });
    stage.network().call_at(kLatency + milliseconds(52), [&] { stage.limit(1, 1'000'000); });
  });
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0], (Heard{kLatency * 2 + milliseconds(60), 1, 0, 7, 0, 10'000'000}));
}

// Reads over a link that stays down end with the connection, or before, by their deadline.
TEST_P(NetworkFaults, ALongOutageLosesTheConnection) {
  const auto heard = play(2, [](Stage& stage) {
    const PeerId peer = stage.open(1, 0);
    stage.read(1, 0, peer, 7, Bytes(10'000'000));
    stage.read(1, 0, peer, 8, Bytes(10'000'000), milliseconds(30));
    stage.network().call_at(kLatency + milliseconds(2), [&] { stage.limit(1, 0); });
    stage.network().call_at(seconds(1), [&] { stage.limit(1, 1'000'000); });
  });
  const Time lost = kLatency + milliseconds(2) + kDetection;
  const auto gone = static_cast<std::uint32_t>(ReadStatus::PeerGone);
  const auto late = static_cast<std::uint32_t>(ReadStatus::DeadlineExceeded);
  EXPECT_EQ(heard, (std::vector<Heard>{{milliseconds(30), 1, 0, 8, late, 0},
                                       {lost, 1, 0, 7, gone, 2'000'000},
                                       {lost, 1, 2, 0, 0, 0}}));
}

// A flow that shares the source's NIC gets what the slow one leaves: 10 MB each, worker 1's NIC at
// a fifth of 1 GB/s from the start, so 0.2 and 0.8 GB/s: 12.5 ms, then 50 ms.
TEST_P(NetworkFaults, OthersGetWhatASlowOneLeaves) {
  const auto heard = play(3, [](Stage& stage) {
    stage.limit(1, 200'000);
    stage.read(1, 0, stage.open(1, 0), 1, Bytes(10'000'000));
    stage.read(2, 0, stage.open(2, 0), 2, Bytes(10'000'000));
  });
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0], (Heard{kLatency * 2 + microseconds(12'500), 2, 0, 2, 0, 10'000'000}));
  EXPECT_EQ(heard[1], (Heard{kLatency * 2 + milliseconds(50), 1, 0, 1, 0, 10'000'000}));
}

// 0.5 GB/s each; at 4 ms worker 1's NIC falls to a fifth: 0.2 and 0.8 GB/s. Worker 2 has 8 MB left,
// 10 ms; worker 1 then has 6 MB left, 30 ms.
TEST_P(NetworkFaults, OthersGetWhatALinkLosesMeanwhile) {
  const auto heard = play(3, [](Stage& stage) {
    stage.read(1, 0, stage.open(1, 0), 1, Bytes(10'000'000));
    stage.read(2, 0, stage.open(2, 0), 2, Bytes(10'000'000));
    stage.network().call_at(kLatency + milliseconds(4), [&] { stage.limit(1, 200'000); });
  });
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0], (Heard{kLatency * 2 + milliseconds(14), 2, 0, 2, 0, 10'000'000}));
  EXPECT_EQ(heard[1], (Heard{kLatency * 2 + milliseconds(44), 1, 0, 1, 0, 10'000'000}));
}

// Both at 0.1 GB/s through the source until 10 ms, then 0.5: 1 MB, then 9 MB in 18 ms.
TEST_P(NetworkFaults, AWiderLinkIsSharedAnew) {
  const auto heard = play(3, [](Stage& stage) {
    stage.limit(0, 200'000);
    stage.read(1, 0, stage.open(1, 0), 1, Bytes(10'000'000));
    stage.read(2, 0, stage.open(2, 0), 2, Bytes(10'000'000));
    stage.network().call_at(kLatency + milliseconds(10), [&] { stage.limit(0, 1'000'000); });
  });
  ASSERT_EQ(heard.size(), 2U);
  for (const Heard& done : heard) EXPECT_EQ(done.at, kLatency * 2 + milliseconds(28));
}

// Messages from 0 to 1 are lost, those from 1 to 0 arrive; reads stand still either way.
TEST_P(NetworkFaults, ACutIsOneWayForMessages) {
  const auto heard = play(3, [](Stage& stage) {
    const PeerId there = stage.open(0, 1);
    const PeerId back = stage.open(1, 0);
    stage.read(1, 0, back, 7, Bytes(10'000'000));
    stage.read(2, 0, stage.open(2, 0), 8, Bytes(1'000'000));
    const CutId cut = stage.network().cut(std::vector{WorkerId(0U)}, std::vector{WorkerId(1U)});
    stage.send(0, there);
    stage.send(1, back);
    stage.network().call_at(milliseconds(50), [&stage, there, cut] {
      stage.network().heal(cut);
      stage.send(0, there);
    });
  });
  EXPECT_EQ(heard, (std::vector<Heard>{{kLatency, 0, 1, 1, 0, 0},
                                       {kLatency * 2 + milliseconds(1), 2, 0, 8, 0, 1'000'000},
                                       {milliseconds(50) + kLatency, 1, 1, 0, 0, 0},
                                       {milliseconds(60) + kLatency, 1, 0, 7, 0, 10'000'000}}));
}

// On its way when the link goes down: lost. Sent while it is down: lost.
TEST_P(NetworkFaults, MessagesAcrossADownLinkAreLost) {
  const auto heard = play(2, [](Stage& stage) {
    const PeerId peer = stage.open(0, 1);
    stage.send(0, peer);
    stage.network().call_at(kLatency / 2, [&] { stage.limit(1, 0); });
    stage.network().call_at(kLatency * 2, [&stage, peer] { stage.send(0, peer); });
    stage.network().call_at(kLatency * 4, [&] { stage.limit(1, 1'000'000); });
    stage.network().call_at(kLatency * 5, [&stage, peer] { stage.send(0, peer); });
  });
  EXPECT_EQ(heard, (std::vector<Heard>{{kLatency * 6, 1, 1, 0, 0, 0}}));
}

// The old connection is lost although the worker lives again, the old permission is refused, and
// what was sent to its earlier self does not arrive.
TEST_P(NetworkFaults, ARestartedWorkerIsAnother) {
  const auto heard = play(3, [](Stage& stage) {
    const PeerId old = stage.open(1, 0);
    const PeerId own = stage.open(0, 1);
    stage.read(1, 0, old, 7, Bytes(10'000'000));
    stage.read(0, 1, own, 9, Bytes(10'000'000));
    stage.network().call_at(milliseconds(2), [&stage, old] {
      stage.send(1, old);
      stage.network().kill(WorkerId(0U));
      stage.network().restart(WorkerId(0U));
      stage.read(1, 0, stage.open(1, 0), 10, Bytes(5));
      stage.settle_in(0);
      stage.read(1, 0, stage.open(1, 0), 11, Bytes(1'000'000));
      stage.send(1, old);
    });
  });
  const auto denied = static_cast<std::uint32_t>(ReadStatus::AccessDenied);
  const auto gone = static_cast<std::uint32_t>(ReadStatus::PeerGone);
  const Time killed = milliseconds(2);
  const std::uint64_t moved = 2'000'000 - 5'000;  // 2 ms less the request's latency
  EXPECT_EQ(heard,
            (std::vector<Heard>{{killed + kLatency * 2, 1, 0, 10, denied, 0},
                                {killed + milliseconds(1) + kLatency * 2, 1, 0, 11, 0, 1'000'000},
                                {killed + kDetection, 1, 0, 7, gone, moved},
                                {killed + kDetection, 1, 2, 0, 0, 0}}));
}

TEST_P(NetworkFaults, TheSixtyFifthCutIsRefused) {
  (void)play(2, [](Stage& stage) {
    const std::vector<WorkerId> one{WorkerId(0U)};
    const std::vector<WorkerId> other{WorkerId(1U)};
    std::vector<CutId> cuts;
    for (std::size_t i = 0; i < kMostCuts; ++i) cuts.push_back(stage.network().cut(one, other));
    EXPECT_THROW((void)stage.network().cut(one, other), Error);
    stage.network().heal(cuts[17]);
    EXPECT_EQ(stage.network().cut(one, other), cuts[17]);
  });
}

// --- Properties ----------------------------------------------------------------------------------

struct Change {
  Time at;
  std::uint32_t worker = 0;
  std::uint32_t share = 0;
};

// One read over a link whose share changes at random times, to nothing now and then (never for as
// long as the detection takes): the integral of the rate is the bytes.
TEST(NetworkFaultsProperty, CompletionIsWhereTheIntegralReachesTheBytes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t least, std::uint64_t most) {
      return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
    };
    std::vector<Change> changes;
    Time at;
    std::uint32_t before = 1;
    for (std::uint64_t i = pick(1, 12); i > 0; --i) {
      at += nanoseconds(static_cast<std::int64_t>(pick(1, 20'000'000)));
      const bool down = before != 0 && pick(0, 3) == 0;
      before = down ? 0 : static_cast<std::uint32_t>(pick(1, 1'000'000));
      changes.push_back({at, 0, before});
    }
    if (before == 0) changes.push_back({at + milliseconds(1), 0, 700'000});
    const std::uint64_t bytes = pick(1, 50'000'000);

    double left = static_cast<double>(bytes);
    Time from = kLatency;
    double rate = 1e-3;  // bytes a picosecond
    std::uint32_t stops = 0;
    for (const Change& change : changes) {
      const double span =
          std::max<double>(0, static_cast<double>((change.at - from).picoseconds()));
      if (left <= rate * span) break;
      left -= rate * span;
      from = std::max(from, change.at);
      rate = 1e-9 * change.share;
      if (change.share == 0) ++stops;
    }
    const Time expected =
        from + Time(static_cast<std::int64_t>(std::llround(left / rate))) + kLatency;

    const auto heard = play_here(2, FlowDriver::MaxMin, [&](Stage& stage) {
      stage.read(1, 0, stage.open(1, 0), 7, Bytes(bytes));
      for (const Change& change : changes) {
        stage.network().call_at(change.at, [&stage, change] { stage.limit(1, change.share); });
      }
    });
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].bytes, bytes);
    // A pause rounds to a byte, anything else to a picosecond.
    const double slack = 2.0 + static_cast<double>(changes.size()) + stops * 1.0 / rate;
    EXPECT_NEAR(static_cast<double>((heard[0].at - expected).picoseconds()), 0, slack);
  }
}

// Random reads between workers whose links change, go down and come back, workers that die and live
// again: SimGrid and our own solver tell the same story.
TEST(NetworkFaultsProperty, BothSolversTellTheSameStory) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    constexpr std::uint32_t kWorkers = 6;
    const Script script = [seed](Stage& stage) {
      std::mt19937_64 random(seed);
      const auto pick = [&](std::uint64_t least, std::uint64_t most) {
        return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
      };
      for (OpId id = 1; id <= 60; ++id) {
        const auto reader = static_cast<std::uint32_t>(pick(0, kWorkers - 1));
        const auto source = static_cast<std::uint32_t>((reader + pick(1, kWorkers - 1)) % kWorkers);
        const Bytes bytes(pick(100'000, 20'000'000));
        const Time at = nanoseconds(static_cast<std::int64_t>(pick(0, 300'000'000)));
        stage.network().call_at(at, [&stage, reader, source, bytes, id] {
          if (!stage.network().alive(WorkerId(reader))) return;
          stage.read(reader, source, stage.open(reader, source), id, bytes);
        });
      }
      for (int i = 0; i < 25; ++i) {
        const auto worker = static_cast<std::uint32_t>(pick(0, kWorkers - 1));
        const auto share = static_cast<std::uint32_t>(pick(0, 2) == 0 ? 0 : pick(1, 10) * 100'000);
        const Time at = nanoseconds(static_cast<std::int64_t>(pick(0, 400'000'000)));
        stage.network().call_at(at, [&stage, worker, share] { stage.limit(worker, share); });
      }
      const auto victim = static_cast<std::uint32_t>(pick(0, kWorkers - 1));
      stage.network().call_at(milliseconds(150),
                              [&stage, victim] { stage.network().kill(WorkerId(victim)); });
      stage.network().call_at(milliseconds(220), [&stage, victim] {
        stage.network().restart(WorkerId(victim));
        stage.settle_in(victim);
      });
      stage.network().call_at(milliseconds(500), [&stage] {
        for (std::uint32_t w = 0; w < kWorkers; ++w) stage.limit(w, 1'000'000);
      });
    };
    auto own = play(kWorkers, FlowDriver::MaxMin, script);
    auto simgrid = play(kWorkers, best_flow_driver(), script);
    const auto by_id = [](const Heard& a, const Heard& b) {
      return std::tie(a.worker, a.what, a.id, a.at) < std::tie(b.worker, b.what, b.id, b.at);
    };
    std::sort(own.begin(), own.end(), by_id);
    std::sort(simgrid.begin(), simgrid.end(), by_id);
    ASSERT_EQ(own.size(), simgrid.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      ASSERT_EQ(own[i].id, simgrid[i].id) << i;
      EXPECT_EQ(own[i].status, simgrid[i].status) << i;
      // A byte either way, where a pause rounds.
      EXPECT_NEAR(static_cast<double>(own[i].bytes), static_cast<double>(simgrid[i].bytes), 2.0)
          << i;
      EXPECT_NEAR(own[i].at.seconds(), simgrid[i].at.seconds(), 1e-7) << i;
    }
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
