// Two ends over a network that loses, doubles, delays beyond time-outs and reorders, and at times
// lets nothing through one way: whatever it does, payloads arrive exactly once and in order, and
// then both ends fall silent.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "core/catalog/session.hpp"

namespace holdfast {
namespace {

using Numbers = Session<std::uint64_t, std::uint64_t>;
using NumberFrame = Frame<std::uint64_t>;

// What the network does, in parts of a thousand and in time.
struct Weather {
  unsigned loss = 0;
  unsigned doubling = 0;
  unsigned very_late = 0;  // up to ten seconds, many time-outs
  Time delay;              // else up to this
  Time partition;          // nothing from end 0 to end 1 before this
};

class Network {
 public:
  Network(std::uint64_t seed, const Weather& weather, const SessionConfig& config)
      : random_(seed),
        weather_(weather),
        config_(config),
        ends_{Numbers({1, 1}, config), Numbers({1, 1}, config)} {}

  // Sends `count` payloads from either end at random times within `span`.
  void plan(std::uint64_t count, Time span) {
    for (std::size_t end = 0; end < 2; ++end) {
      for (std::uint64_t i = 0; i < count; ++i) sends_.emplace(Time(below(span)), end);
    }
  }

  // Runs until nothing is left to do; false if that takes unreasonably long.
  bool run() {
    for (int step = 0; step < 2'000'000; ++step) {
      Time next = std::min(ends_[0].next_deadline(), ends_[1].next_deadline());
      if (!sends_.empty()) next = std::min(next, sends_.begin()->first);
      if (!flying_.empty()) next = std::min(next, flying_.begin()->first);
      if (next == Time::never()) return true;
      now_ = std::max(now_, next);
      step_once();
      if (::testing::Test::HasFailure()) return false;
    }
    return false;
  }

  const Numbers& end(std::size_t i) const { return ends_[i]; }
  std::uint64_t delivered(std::size_t i) const { return delivered_[i]; }
  std::uint64_t frames() const { return frames_; }
  Time now() const { return now_; }

 private:
  std::int64_t below(Time limit) {
    return static_cast<std::int64_t>(
        random_() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, limit.picoseconds())));
  }
  bool chance(unsigned per_mille) { return random_() % 1000 < per_mille; }

  void step_once() {
    while (!sends_.empty() && sends_.begin()->first <= now_) {
      const std::size_t from = sends_.begin()->second;
      sends_.erase(sends_.begin());
      ends_[from].send(std::make_shared<const std::uint64_t>(sent_[from]++), now_);
    }
    while (!flying_.empty() && flying_.begin()->first <= now_) {
      const auto [to, frame] = flying_.begin()->second;
      flying_.erase(flying_.begin());
      arrive(to, frame);
    }
    for (std::size_t end = 0; end < 2; ++end) carry(end);
  }

  void arrive(std::size_t to, const NumberFrame& frame) {
    std::vector<std::shared_ptr<const std::uint64_t>> got;
    ASSERT_EQ(ends_[to].receive(frame, now_, got), FrameAnswer::Taken);
    for (const auto& payload : got) ASSERT_EQ(*payload, delivered_[to]++);
    ASSERT_LE(delivered_[to], sent_[1 - to]);
  }

  void carry(std::size_t from) {
    const bool was_due = ends_[from].next_deadline() <= now_;
    std::vector<NumberFrame> frames;
    ends_[from].due(now_, frames);
    ASSERT_EQ(!frames.empty(), was_due);
    ASSERT_GT(ends_[from].next_deadline(), now_);
    // Whatever is unacknowledged is waited for.
    ASSERT_EQ(ends_[from].unacknowledged() > 0 && ends_[from].next_deadline() == Time::never(),
              false);
    const std::uint64_t first = sent_[from] - ends_[from].unacknowledged();
    for (const NumberFrame& frame : frames) {
      ++frames_;
      if (frame.payload) {
        ASSERT_GE(frame.sequence, first);
        ASSERT_LT(frame.sequence, first + config_.window);
      }
      ASSERT_EQ(frame.acknowledged, delivered_[from]);
      launch(1 - from, frame);
      if (chance(weather_.doubling)) launch(1 - from, frame);
    }
  }

  void launch(std::size_t to, const NumberFrame& frame) {
    if (chance(weather_.loss) || (to == 1 && now_ < weather_.partition)) return;
    const Time late = chance(weather_.very_late) ? seconds(10) : weather_.delay;
    flying_.emplace(now_ + Time(below(late)), std::pair(to, frame));
  }

  std::mt19937_64 random_;
  Weather weather_;
  SessionConfig config_;
  Numbers ends_[2];
  std::uint64_t sent_[2] = {0, 0};
  std::uint64_t delivered_[2] = {0, 0};
  std::uint64_t frames_ = 0;
  Time now_;
  std::multimap<Time, std::size_t> sends_;
  std::multimap<Time, std::pair<std::size_t, NumberFrame>> flying_;
};

TEST(SessionProperty, EveryPayloadArrivesOnceAndInOrder) {
  RecordProperty("seeds", "1..400");
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed * 7919);
    Weather weather;
    weather.loss = static_cast<unsigned>(random() % 600);
    weather.doubling = static_cast<unsigned>(random() % 300);
    weather.very_late = static_cast<unsigned>(random() % 100);
    weather.delay = milliseconds(1 + static_cast<std::int64_t>(random() % 400));
    if (random() % 4 == 0) {
      weather.partition = seconds(1 + static_cast<std::int64_t>(random() % 20));
    }
    SessionConfig config;
    config.window = 1U + static_cast<std::uint32_t>(random() % (random() % 2 == 0 ? 4 : 64));
    const std::uint64_t count = random() % 150;
    Network network(seed, weather, config);
    network.plan(count, milliseconds(1 + static_cast<std::int64_t>(random() % 10'000)));
    ASSERT_TRUE(network.run());
    for (std::size_t end = 0; end < 2; ++end) {
      ASSERT_EQ(network.delivered(end), count);
      ASSERT_EQ(network.end(end).unacknowledged(), 0U);
      ASSERT_EQ(network.end(end).next_deadline(), Time::never());
      ASSERT_EQ(network.end(end).memory_bytes(), sizeof(Numbers));
    }
  }
}

// Where nothing is lost and round trips are short, each payload is carried once, and there are no
// more acknowledgements than payloads.
TEST(SessionProperty, APerfectNetworkCarriesEachPayloadOnce) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Weather weather;
    weather.delay = milliseconds(50);
    Network network(seed, weather, {});
    network.plan(200, seconds(2));
    ASSERT_TRUE(network.run());
    EXPECT_EQ(network.delivered(0), 200U);
    EXPECT_EQ(network.delivered(1), 200U);
    EXPECT_GE(network.frames(), 400U);
    EXPECT_LE(network.frames(), 800U);
  }
}

}  // namespace
}  // namespace holdfast
