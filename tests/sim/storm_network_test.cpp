// SimGrid as a storm's network: its steps, its faults, the bytes it carries and what it shows.
#include "sim/storm_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sim/child_process.hpp"

namespace holdfast::sim {
namespace {

using storm::DataNetwork;

constexpr Version kVersion{0, 1};
constexpr WorkerId kSource(0U);
constexpr WorkerId kReader(1U);
constexpr WorkerId kOther(2U);
constexpr std::uint64_t kBytes = 256;

// Of a seed whose first three workers are GPUs of one rack.
storm::World world_with_three() {
  std::uint64_t seed = 0;
  for (;; ++seed) {
    storm::World world = storm::make_world(seed);
    const auto rack = [&](WorkerId worker) {
      return world.topology->around(world.cards[worker.index()].node, Level::Rack);
    };
    const auto host = [&](WorkerId worker) {
      return world.topology->around(world.cards[worker.index()].node, Level::Host);
    };
    const bool fits = world.cards.size() >= 3 && rack(kSource) == rack(kReader) &&
                      rack(kReader) == rack(kOther) && host(kSource) != host(kReader) &&
                      host(kReader) != host(kOther) && host(kSource) != host(kOther);
    if (fits) return world;
  }
}

// Worker 0 serves a region to workers 1 and 2.
class Bench {
 public:
  Bench(const storm::World& world, DataNetwork& simgrid)
      : network(simgrid),
        unit(transfer_time(Bytes(kBytes), world.times.port)),
        world_(world),
        router_(*world.topology) {
    for (std::size_t i = 0; i < kBytes; ++i) {
      memory[kSource.index()][i] = static_cast<std::byte>(i * 7 + 1);
    }
    for (const WorkerId worker : {kSource, kReader, kOther}) {
      auto& bytes = memory[worker.index()];
      region[worker.index()] = network.transport(worker).add_region(bytes, Bytes(bytes.size()));
    }
    network.watch_reads([this](const ReadSight& sight) { seen.push_back(sight.kind); });
  }

  PeerId open(WorkerId from, WorkerId to) {
    const NodeId here = world_.cards[from.index()].node;
    const NodeId there = world_.cards[to.index()].node;
    Endpoint endpoint{to, {router_.nics(there).front(), router_.nics(here).front(), 0}, {}};
    return network.transport(from).open(endpoint, 1);
  }
  void read(WorkerId reader, PeerId peer, OpId id, Time deadline = Time::never()) {
    const Access access =
        network.transport(kSource).allow(reader, kVersion, region[kSource.index()]);
    const std::array<Piece, 1> pieces{Piece{0, 0, kBytes}};
    ASSERT_EQ(network.transport(reader).read(
                  {id, peer, access, region[reader.index()], pieces, deadline}),
              Posted::Posted);
  }
  // All that the worker gets until then.
  std::vector<TransportEvent> until(Time time, WorkerId worker) {
    std::vector<TransportEvent> got;
    bool more = true;
    while (more) {
      more = network.step(time, true);
      static_cast<void>(network.take_ready());
      std::array<TransportEvent, 1> event;
      while (network.transport(worker).poll(event) > 0) got.push_back(std::move(event[0]));
    }
    EXPECT_EQ(network.now(), time);
    return got;
  }
  [[nodiscard]] std::size_t wrong_bytes(WorkerId reader) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      wrong += memory[reader.index()][i] != memory[kSource.index()][i] ? 1U : 0U;
    }
    return wrong;
  }

  DataNetwork& network;
  Time unit;  // what a read takes alone
  std::array<std::vector<std::byte>, 3> memory{std::vector<std::byte>(kBytes),
                                               std::vector<std::byte>(kBytes),
                                               std::vector<std::byte>(kBytes)};
  std::array<RegionId, 3> region;
  std::vector<ReadSight::Kind> seen;

 private:
  const storm::World& world_;
  Router router_;
};

// Fails if `body` does, or ends in another way.
void in_a_child(const std::function<void()>& body) {
  ChildProcess child([&](ChildProcess::Channel& out) {
    body();
    std::fflush(nullptr);
    out.send(::testing::Test::HasFailure() ? 0 : 1, {});
  });
  const auto frame = child.next(120'000);
  const bool well = frame && frame->kind == 1;
  EXPECT_TRUE(well) << child.how_it_ended();
}

// In a child: SimGrid's engine lives once in a process. Cancelling takes up to so many reads' time.
void on_bench(const std::function<void(Bench&)>& body, int cancelling = 0) {
  in_a_child([&] {
    storm::World world = world_with_three();
    world.times.most_cancelling = transfer_time(Bytes(kBytes), world.times.port) * cancelling;
    on_simgrid(world, [&](DataNetwork& network) {
      Bench bench(world, network);
      body(bench);
    });
  });
}

const ReadDone* done_in(const std::vector<TransportEvent>& events) {
  for (const TransportEvent& event : events) {
    if (const auto* done = std::get_if<ReadDone>(&event)) return done;
  }
  return nullptr;
}
std::size_t messages_in(const std::vector<TransportEvent>& events) {
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(),
      [](const TransportEvent& event) { return std::holds_alternative<MessageReceived>(event); }));
}

TEST(StormNetwork, TheClockStopsWhereItIsToldTo) {
  on_bench([](Bench& bench) {
    EXPECT_FALSE(bench.network.step(milliseconds(3), true));
    EXPECT_EQ(bench.network.now(), milliseconds(3));
    EXPECT_FALSE(bench.network.step(milliseconds(2), true));  // past
    EXPECT_EQ(bench.network.now(), milliseconds(3));
    EXPECT_FALSE(bench.network.step(milliseconds(3), true));
    EXPECT_FALSE(bench.network.step(Time::never(), true));  // nothing can happen
    EXPECT_EQ(bench.network.now(), milliseconds(3));
  });
}

TEST(StormNetwork, WhatIsDueAtTheVeryMomentWaitsIfItIsToldTo) {
  on_bench([](Bench& bench) {
    const PeerId peer = bench.open(kReader, kSource);
    const std::array<std::byte, 2> word{};
    ASSERT_TRUE(bench.network.transport(kReader).send(peer, word));
    ASSERT_TRUE(bench.network.step(Time::never(), true));
    const Time latency = bench.network.now();
    EXPECT_GT(latency, Time{});
    ASSERT_EQ(bench.network.take_ready(), std::vector<WorkerId>{kSource});
    std::array<TransportEvent, 2> events;
    ASSERT_EQ(bench.network.transport(kSource).poll(events), 1U);
    // Now the same again, up to the time of its arrival.
    ASSERT_TRUE(bench.network.transport(kReader).send(peer, word));
    EXPECT_FALSE(bench.network.step(latency * 2 - Time(1), true));
    EXPECT_FALSE(bench.network.step(latency * 2, false));
    EXPECT_EQ(bench.network.now(), latency * 2);
    EXPECT_TRUE(bench.network.step(latency * 2, true));
    EXPECT_EQ(bench.network.take_ready(), std::vector<WorkerId>{kSource});
  });
}

TEST(StormNetwork, AReadMovesTheBytesAndIsSeen) {
  on_bench([](Bench& bench) {
    bench.read(kReader, bench.open(kReader, kSource), 9);
    const auto events = bench.until(bench.unit * 3 + milliseconds(1), kReader);
    ASSERT_NE(done_in(events), nullptr);
    EXPECT_EQ(done_in(events)->status, ReadStatus::Ok);
    EXPECT_EQ(bench.wrong_bytes(kReader), 0U);
    using Kind = ReadSight::Kind;
    EXPECT_EQ(bench.seen, (std::vector{Kind::Posted, Kind::Served, Kind::Arrived, Kind::Ended}));
  });
}

// Two readers of one source: SimGrid gives each half of its link.
TEST(StormNetwork, ReadersShareTheSourcesLink) {
  on_bench([](Bench& bench) {
    bench.read(kReader, bench.open(kReader, kSource), 1);
    bench.read(kOther, bench.open(kOther, kSource), 1);
    EXPECT_EQ(done_in(bench.until(bench.unit * 19 / 10, kReader)), nullptr);
    ASSERT_NE(done_in(bench.until(bench.unit * 2 + milliseconds(1), kReader)), nullptr);
    EXPECT_EQ(bench.wrong_bytes(kReader), 0U);
    EXPECT_EQ(bench.wrong_bytes(kOther), 0U);
  });
}

TEST(StormNetwork, AReadThatFailsLeavesNoTrueBytes) {
  on_bench([](Bench& bench) {
    bench.memory[kReader.index()] = bench.memory[kSource.index()];
    bench.read(kReader, bench.open(kReader, kSource), 1, bench.unit / 2);
    const auto events = bench.until(bench.unit * 3, kReader);
    ASSERT_NE(done_in(events), nullptr);
    EXPECT_EQ(done_in(events)->status, ReadStatus::DeadlineExceeded);
    EXPECT_GT(bench.wrong_bytes(kReader), kBytes / 2);
  });
}

TEST(StormNetwork, ACancelledReadGoesOnForAWhile) {
  constexpr int kUnits = 10;
  const auto body = [=](Bench& bench) {
    const PeerId peer = bench.open(kReader, kSource);
    const auto status = [&](Time within) {
      const auto events = bench.until(bench.network.now() + within, kReader);
      return done_in(events) != nullptr ? std::optional(done_in(events)->status) : std::nullopt;
    };
    std::size_t well = 0;
    for (int i = 0; i < 8; ++i) {
      bench.network.set_rate(kSource, Rate(1));
      bench.read(kReader, peer, 1);
      bench.until(bench.network.now() + bench.unit, kReader);
      bench.network.transport(kReader).cancel(1);
      EXPECT_EQ(status(bench.unit * kUnits), ReadStatus::Cancelled);
      // One that is done meanwhile is Ok, and no later one of its number is cancelled in its place.
      bench.network.set_rate(kSource, Rate(kBytes * 1'000'000));
      bench.read(kReader, peer, 1);
      bench.network.transport(kReader).cancel(1);
      if (status(bench.unit * 2) != ReadStatus::Ok) continue;
      ++well;
      bench.network.set_rate(kSource, Rate(1));
      bench.read(kReader, peer, 1);
      EXPECT_FALSE(status(bench.unit * kUnits));
      bench.network.set_rate(kSource, Rate(kBytes * 1'000'000));
      EXPECT_EQ(status(bench.unit * 2), ReadStatus::Ok);
    }
    EXPECT_GE(well, 4U);
  };
  on_bench(body, kUnits);
}

TEST(StormNetwork, AStalledPortServesLater) {
  on_bench([](Bench& bench) {
    const Time stall = bench.unit * 20;
    bench.network.stall(kSource, stall);
    bench.read(kReader, bench.open(kReader, kSource), 1);
    EXPECT_EQ(done_in(bench.until(stall, kReader)), nullptr);
    EXPECT_NE(done_in(bench.until(stall + bench.unit * 2 + milliseconds(1), kReader)), nullptr);
    EXPECT_EQ(bench.wrong_bytes(kReader), 0U);
  });
}

TEST(StormNetwork, ASlowPortTakesLonger) {
  on_bench([](Bench& bench) {
    bench.network.set_rate(kSource, Rate(kBytes * 1000 / 40'000));
    const Time slow = transfer_time(Bytes(kBytes), Rate(kBytes * 1000 / 40'000));
    bench.read(kReader, bench.open(kReader, kSource), 1);
    EXPECT_EQ(done_in(bench.until(slow / 2, kReader)), nullptr);
    EXPECT_NE(done_in(bench.until(slow * 2, kReader)), nullptr);
  });
}

TEST(StormNetwork, CutsAreOneWayAndHealOneByOne) {
  on_bench([](Bench& bench) {
    const std::array<std::byte, 2> word{};
    DataNetwork& network = bench.network;
    const PeerId there = bench.open(kReader, kSource);
    const PeerId other = bench.open(kReader, kOther);
    const PeerId back = bench.open(kSource, kReader);
    network.cut(kReader, kSource, true);
    network.cut(kReader, kSource, true);  // again: no effect
    network.cut(kReader, kOther, true);
    network.cut(kReader, kOther, false);
    for (const PeerId peer : {there, other}) network.transport(kReader).send(peer, word);
    network.transport(kSource).send(back, word);
    const Time soon = network.now() + microseconds(100);
    EXPECT_EQ(messages_in(bench.until(soon, kSource)), 0U);
    std::array<TransportEvent, 4> events;
    EXPECT_EQ(network.transport(kOther).poll(events), 1U);
    EXPECT_EQ(network.transport(kReader).poll(events), 1U);
    network.cut(kReader, kSource, false);
    network.transport(kReader).send(there, word);
    EXPECT_EQ(messages_in(bench.until(network.now() + microseconds(100), kSource)), 1U);
  });
}

TEST(StormNetwork, OneByteOfOneReadIsCorrupt) {
  on_bench([](Bench& bench) {
    bench.network.corrupt(kSource, 1);
    const PeerId peer = bench.open(kReader, kSource);
    const std::array<std::size_t, 3> wrong{0, 1, 0};
    for (OpId id = 1; id <= wrong.size(); ++id) {
      bench.read(kReader, peer, id);
      const Time then = bench.network.now() + bench.unit * 2 + milliseconds(1);
      ASSERT_NE(done_in(bench.until(then, kReader)), nullptr);
      EXPECT_EQ(bench.wrong_bytes(kReader), wrong[id - 1]) << "read " << id;
    }
  });
}

TEST(StormNetwork, WordsAreLostDoubledAndLate) {
  on_bench([](Bench& bench) {
    const std::array<std::byte, 2> word{};
    const PeerId peer = bench.open(kReader, kSource);
    const auto arrive = [&](std::uint32_t lost, std::uint32_t doubled, Time jitter) {
      bench.network.set_message_faults(lost, doubled, jitter);
      for (int i = 0; i < 10; ++i) bench.network.transport(kReader).send(peer, word);
      return messages_in(bench.until(bench.network.now() + milliseconds(1), kSource));
    };
    EXPECT_EQ(arrive(1000, 0, Time{}), 0U);
    EXPECT_EQ(arrive(0, 1000, Time{}), 20U);
    const std::size_t soon = arrive(0, 0, milliseconds(5));
    EXPECT_LT(soon, 10U);
    EXPECT_EQ(soon + messages_in(bench.until(bench.network.now() + milliseconds(6), kSource)), 10U);
    // What is late does not reach whom its peer's number is given to meanwhile.
    arrive(0, 0, milliseconds(5));
    bench.network.transport(kReader).close(peer);
    bench.open(kReader, kOther);
    EXPECT_EQ(messages_in(bench.until(bench.network.now() + milliseconds(6), kOther)), 0U);
  });
}

TEST(StormNetwork, NothingComesToOrFromTheDead) {
  on_bench([](Bench& bench) {
    bench.read(kReader, bench.open(kReader, kSource), 1);
    bench.read(kOther, bench.open(kOther, kSource), 1);
    bench.until(bench.unit / 2, kReader);
    const std::size_t seen = bench.seen.size();
    bench.network.crash(kReader);
    EXPECT_EQ(bench.seen.size(), seen);  // whoever watches has seen it die
    bench.network.crash(kSource);
    EXPECT_FALSE(bench.network.alive(kSource));
    bench.memory[kSource.index()] = {};  // gone with them
    bench.memory[kReader.index()] = {};
    const auto events = bench.until(seconds(5), kOther);
    ASSERT_NE(done_in(events), nullptr);
    EXPECT_EQ(done_in(events)->status, ReadStatus::PeerGone);
    bench.network.restart(kReader);
    EXPECT_TRUE(bench.network.alive(kReader));
    std::array<TransportEvent, 4> none;
    EXPECT_EQ(bench.network.transport(kReader).poll(none), 0U);
  });
}

TEST(StormNetwork, NothingHappensAfterItsBodyHasEnded) {
  in_a_child([] {
    const storm::World world = world_with_three();
    std::size_t seen = 0;
    on_simgrid(world, [&](DataNetwork& network) {
      Bench bench(world, network);
      network.watch_reads([&](const ReadSight&) { ++seen; });
      bench.read(kReader, bench.open(kReader, kSource), 1, bench.unit / 2);
      bench.read(kOther, bench.open(kOther, kSource), 1);
    });
    EXPECT_EQ(seen, 2U);  // they were posted
  });
}

TEST(StormNetwork, WhatItsBodyThrowsComesThrough) {
  in_a_child([] {
    const storm::World world = world_with_three();
    EXPECT_THROW(on_simgrid(world, [](DataNetwork&) { throw std::runtime_error("so"); }),
                 std::runtime_error);
  });
}

}  // namespace
}  // namespace holdfast::sim
