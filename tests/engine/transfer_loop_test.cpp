// Several transfers of one worker over one Transport and Memory.
#include "core/engine/transfer_loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "core/engine/digest.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

// `transfers` updates of one demand at a time, each into memory of its own. Transfer t has slot
// 7 * t and transfer id 40 + t.
class Sharers final : public Grants {
 public:
  Sharers(const Demand& demand, const Plan& plan, std::size_t transfers,
          const VirtualOptions& options)
      : demand_(demand), placement_(demand.block_bytes), network(demand.workers.size(), options) {
    const std::uint64_t size = placement_.region_bytes(WorkerId(0U)).count();
    truth_.resize(size);
    for (std::size_t i = 0; i < size; ++i) truth_[i] = static_cast<std::byte>(i * 131 + i / 251);
    std::vector<std::uint64_t> digests;
    for (std::size_t b = 0; b < demand.block_bytes.size(); ++b) {
      const Extent extent = placement_.extent(BlockId(b));
      digests.push_back(block_digest(std::span(truth_).subspan(extent.offset, extent.bytes)));
    }
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      for (std::size_t t = 0; t < transfers; ++t) {
        auto& bytes = memory.emplace_back(w == 0 ? truth_ : std::vector<std::byte>(size));
        regions_.push_back(network.transport(WorkerId(w)).add_region(bytes, Bytes(size)));
      }
    }
    for (std::size_t t = 0; t < transfers; ++t) {
      tables_.push_back(std::make_shared<const UpdateTables>(demand, plan, nullptr, digests,
                                                             40 + static_cast<std::uint32_t>(t)));
    }
    EngineConfig config;
    config.ask_interval = microseconds(200);
    for (std::size_t w = 0; w < demand.workers.size(); ++w) {
      const WorkerId id(w);
      for (std::size_t t = 0; t < transfers; ++t) {
        engines.push_back(std::make_unique<WorkerEngine>(tables_[t], id, config));
        loops.emplace_back(LoopSetup{*engines.back(), network.transport(id), network.memory(id),
                                     placement_, regions_[w * transfers + t], *this, 1, nullptr},
                           static_cast<std::uint16_t>(7 * t));
      }
    }
  }

  [[nodiscard]] Access access(WorkerId reader, WorkerId source) override {
    // All transfers read the same bytes: any region of the source that is complete will do. Each
    // reader gets the region of its own transfer.
    return network.transport(source).allow(reader, demand_.version,
                                           regions_[source.index() * transfers() + asking]);
  }
  [[nodiscard]] std::string address(WorkerId) override { return {}; }

  [[nodiscard]] std::size_t transfers() const { return tables_.size(); }
  TransferLoop& loop(std::size_t worker, std::size_t transfer) {
    return loops[worker * transfers() + transfer];
  }
  WorkerEngine& engine(std::size_t worker, std::size_t transfer) {
    return *engines[worker * transfers() + transfer];
  }
  [[nodiscard]] bool right(std::size_t worker, std::size_t transfer) const {
    return memory[worker * transfers() + transfer] == truth_;
  }

  // Everything that can happen now.
  void settle() {
    for (std::size_t w = 0; w < network.workers(); ++w) {
      if (!network.alive(WorkerId(w))) continue;
      for (bool more = true; more;) {
        more = false;
        for (std::size_t t = 0; t < transfers(); ++t) {
          asking = t;
          loop(w, t).pump();
        }
        std::array<TransportEvent, 3> events;
        const std::size_t polled = network.transport(WorkerId(w)).poll(events);
        for (std::size_t i = 0; i < polled; ++i) {
          more = true;
          hand_on(w, events[i]);
        }
        std::array<JobDone, 3> jobs;
        const std::size_t done = network.memory(WorkerId(w)).poll(jobs);
        for (std::size_t i = 0; i < done; ++i) {
          more = true;
          std::size_t takers = 0;
          for (std::size_t t = 0; t < transfers(); ++t) {
            asking = t;
            if (loop(w, t).take(jobs[i])) ++takers;
          }
          EXPECT_EQ(takers, 1U);
        }
      }
    }
  }
  bool step(Time until = Time::never()) {
    settle();
    Time timer = Time::never();
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (network.alive(WorkerId(i / transfers()))) {
        timer = std::min(timer, loops[i].next_deadline());
      }
    }
    const Time event = network.next_event();
    if (std::min(timer, event) > until || std::min(timer, event) == Time::never()) return false;
    if (event <= timer) {
      network.step();
    } else {
      network.advance(timer);
    }
    settle();
    return true;
  }

 private:
  void hand_on(std::size_t worker, const TransportEvent& event) {
    std::size_t takers = 0;
    for (std::size_t t = 0; t < transfers(); ++t) {
      asking = t;
      if (loop(worker, t).take(event)) ++takers;
    }
    EXPECT_LE(takers, 1U);
    unclaimed += 1 - takers;
  }

  Demand demand_;
  PackedPlacement placement_;
  std::vector<std::byte> truth_;
  std::vector<RegionId> regions_;
  std::vector<std::shared_ptr<const UpdateTables>> tables_;

 public:
  VirtualNetwork network;
  std::deque<std::vector<std::byte>> memory;
  std::vector<std::unique_ptr<WorkerEngine>> engines;
  std::deque<TransferLoop> loops;
  std::size_t asking = 0;  // the transfer that is being pumped
  std::size_t unclaimed = 0;
};

TEST(TransferLoop, TransfersOfOneVersionDoNotMix) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Demand demand = simple_demand(3, 5 + static_cast<std::uint32_t>(random() % 20),
                                        Bytes(500 + random() % 1000));
    VirtualOptions options;
    options.seed = random();
    options.limits = {Bytes(300 + random() % 1000), 1 + static_cast<std::uint32_t>(random() % 4),
                      1};
    options.lost_per_mille = random() % 2 == 0 ? 0 : 100;
    options.doubled_per_mille = 100;
    Sharers sharers(demand, tree_plan(demand, {0, 1, 1}, 3), 3, options);
    const auto complete = [&] {
      return std::all_of(sharers.engines.begin(), sharers.engines.end(),
                         [](const auto& engine) { return engine->complete(); });
    };
    while (!complete()) ASSERT_TRUE(sharers.step(seconds(10)));
    for (std::size_t w = 0; w < 4; ++w) {
      for (std::size_t t = 0; t < 3; ++t) {
        EXPECT_TRUE(sharers.right(w, t)) << "worker " << w << " transfer " << t;
        EXPECT_EQ(sharers.engine(w, t).ignored_messages(), 0U);
        EXPECT_TRUE(sharers.loop(w, t).idle());
      }
      EXPECT_EQ(sharers.network.traffic(WorkerId(w)).in,
                w == 0 ? Bytes() : Bytes(sharers.memory[0].size() * 3));
    }
    EXPECT_EQ(sharers.unclaimed, 0U);
  }
}

// One transfer stops in the middle: its reads end, its memory is touched no more, the others go on.
TEST(TransferLoop, StopsWithoutTheOthers) {
  std::size_t were_busy = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Demand demand = simple_demand(2, 20, Bytes(2000));
    VirtualOptions options;
    options.rate = Rate(1'000'000'000);
    options.digest_rate = Rate(1'000'000'000);
    options.limits = {Bytes(700), 2, 1};
    Sharers sharers(demand, tree_plan(demand, {0, 1}, 4), 2, options);
    const std::uint64_t steps = random() % 250;
    for (std::uint64_t k = 0; k < steps; ++k) sharers.step();
    TransferLoop& stopping = sharers.loop(1, 0);
    if (!stopping.idle()) ++were_busy;
    const std::uint64_t reads = stopping.stats().reads;
    stopping.stop();
    EXPECT_TRUE(stopping.stopped());
    EXPECT_EQ(stopping.next_deadline(), Time::never());
    while (!stopping.idle()) ASSERT_TRUE(sharers.step(seconds(10)));
    // Worker 2 starves in that transfer only.
    const std::vector<std::byte> before = sharers.memory[2];
    const auto others = [&] {
      return sharers.engine(1, 1).complete() && sharers.engine(2, 1).complete();
    };
    while (!others()) ASSERT_TRUE(sharers.step(seconds(10)));
    EXPECT_EQ(sharers.memory[2], before);
    EXPECT_EQ(stopping.stats().reads, reads);
    EXPECT_TRUE(sharers.right(1, 1));
    EXPECT_TRUE(sharers.right(2, 1));
  }
  EXPECT_GT(were_busy, 10U);
}

TEST(TransferLoop, SlotsAreTheTopBitsOfIds) {
  EXPECT_EQ(TransferLoop::slot_of(0x1234'0000'0000'0001ULL), 0x1234);
  EXPECT_EQ(TransferLoop::slot_of(0x0000'ffff'ffff'ffffULL), 0);
}

}  // namespace
}  // namespace holdfast::testing
