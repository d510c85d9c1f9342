// Whole storms on SimGrid. HOLDFAST_STORM_SEEDS says how many (40).
#include "sim/storm_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "sim/storm_network.hpp"
#include "tests/engine/forwarding_transport.hpp"

namespace holdfast::sim {
namespace {

using storm::DataNetwork;
using storm::Outcome;
using storm::Recipe;
using testing::ForwardingTransport;

std::uint64_t seeds() {
  const char* text = std::getenv("HOLDFAST_STORM_SEEDS");
  return text == nullptr ? 40 : std::strtoull(text, nullptr, 10);
}

Recipe of_seed(std::uint64_t seed) {
  Recipe recipe;
  recipe.seed = seed;
  return recipe;
}

TEST(StormOnSimGrid, NoSeedBreaksARule) {
  std::uint64_t ok = 0;
  for (std::uint64_t seed = 0; seed < seeds() * 20; seed += 20) {
    ASSERT_EQ(storm::wire_of(of_seed(seed)), storm::Wire::SimGrid);
    const Outcome outcome = storm_on_its_wire(of_seed(seed));
    ok += outcome.calls_ok;
    ASSERT_FALSE(outcome.violation)
        << "seed " << seed << " breaks '" << outcome.violation->rule << "' at "
        << to_string(outcome.violation->at) << ": " << outcome.violation->text
        << "\n  holdfast fuzz --story --seeds " << seed;
  }
  // Storms in which nobody gets anything prove nothing.
  EXPECT_GE(ok, 4 * seeds());
}

TEST(StormOnSimGrid, ASeedIsTheSameRunEachTime) {
  for (const std::uint64_t seed : {std::uint64_t{20}, std::uint64_t{60}, std::uint64_t{140}}) {
    const Outcome once = storm_on_its_wire(of_seed(seed));
    std::vector<std::string> story;
    const Outcome twice = storm_on_its_wire(of_seed(seed), &story);
    EXPECT_NE(once.trace, 0U);
    EXPECT_EQ(once.trace, twice.trace) << "seed " << seed;
    EXPECT_EQ(once.steps, twice.steps) << "seed " << seed;
    EXPECT_EQ(once.cells.agent, twice.cells.agent);
    EXPECT_GT(story.size(), 100U);
    // Another network, another run of the same script.
    Recipe elsewhere = of_seed(seed);
    elsewhere.wire = storm::Wire::Virtual;
    EXPECT_NE(storm_on_its_wire(elsewhere).trace, once.trace);
  }
}

// --- A broken engine is found --------------------------------------------------------------------

// Asks for everything twice, and hides the second answer.
class AsksTwice final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  Posted read(const ReadRequest& request) override {
    const Posted posted = inner().read(request);
    ReadRequest again = request;
    again.id |= kAgain;
    if (posted == Posted::Posted) static_cast<void>(inner().read(again));
    return posted;
  }
  std::size_t poll(std::span<TransportEvent> out) override {
    const std::size_t count = inner().poll(out);
    const auto last = std::remove_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count),
                                     [](const auto& event) {
                                       const auto* done = std::get_if<ReadDone>(&event);
                                       return done != nullptr && (done->id & kAgain) != 0;
                                     });
    return static_cast<std::size_t>(last - out.begin());
  }

 private:
  static constexpr OpId kAgain = OpId{1} << 63U;
};

class BrokenNetwork final : public DataNetwork {
 public:
  BrokenNetwork(DataNetwork& inner, std::size_t workers) : inner_(inner) {
    for (std::size_t w = 0; w < workers; ++w) {
      transports_.push_back(std::make_unique<AsksTwice>(inner.transport(WorkerId(w))));
    }
  }

  [[nodiscard]] Transport& transport(WorkerId worker) override {
    return *transports_[worker.index()];
  }
  [[nodiscard]] Memory& memory(WorkerId worker) override { return inner_.memory(worker); }
  [[nodiscard]] Time now() const override { return inner_.now(); }
  bool step(Time until, bool then_too) override { return inner_.step(until, then_too); }
  [[nodiscard]] std::vector<WorkerId> take_ready() override { return inner_.take_ready(); }
  void crash(WorkerId worker) override { inner_.crash(worker); }
  void restart(WorkerId worker) override { inner_.restart(worker); }
  [[nodiscard]] bool alive(WorkerId worker) const override { return inner_.alive(worker); }
  void cut(WorkerId from, WorkerId to, bool cut) override { inner_.cut(from, to, cut); }
  void set_rate(WorkerId worker, Rate rate) override { inner_.set_rate(worker, rate); }
  void stall(WorkerId worker, Time until) override { inner_.stall(worker, until); }
  void corrupt(WorkerId source, std::uint64_t skip) override { inner_.corrupt(source, skip); }
  void set_message_faults(std::uint32_t lost, std::uint32_t doubled, Time jitter) override {
    inner_.set_message_faults(lost, doubled, jitter);
  }
  void watch_reads(std::function<void(const ReadSight&)> watcher) override {
    inner_.watch_reads(std::move(watcher));
  }

 private:
  DataNetwork& inner_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

void on_broken_simgrid(const storm::World& world, const std::function<void(DataNetwork&)>& body) {
  on_simgrid(world, [&](DataNetwork& network) {
    BrokenNetwork broken(network, world.cards.size());
    body(broken);
  });
}

TEST(StormOnSimGrid, AnEngineThatAsksTwiceIsFoundAndShrunk) {
  const auto run = [](const Recipe& recipe) {
    return storm_in_a_child(recipe, nullptr, on_broken_simgrid);
  };
  const Outcome failed = run(of_seed(20));
  ASSERT_TRUE(failed.violation);
  EXPECT_EQ(failed.violation->rule, "reads");
  const Outcome smallest = storm::shrink(failed, run);
  ASSERT_TRUE(smallest.violation);
  EXPECT_EQ(smallest.violation->rule, "reads");
  // Somebody publishes; at the end everybody fetches.
  ASSERT_TRUE(smallest.recipe.tasks && smallest.recipe.faults);
  EXPECT_EQ(smallest.recipe.tasks->size(), 1U);
  EXPECT_EQ(smallest.recipe.faults->size(), 0U);
  EXPECT_EQ(storm::wire_of(smallest.recipe), storm::Wire::SimGrid);
  EXPECT_EQ(run(smallest.recipe).trace, smallest.trace);
}

TEST(StormOnSimGrid, AProcessThatDiesIsAViolation) {
  const Outcome outcome = storm_in_a_child(
      of_seed(20), nullptr,
      [](const storm::World&, const std::function<void(DataNetwork&)>&) { std::abort(); });
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->rule, "crash");
  EXPECT_EQ(outcome.recipe, of_seed(20));
}

}  // namespace
}  // namespace holdfast::sim
