// Rollouts of one replica: lengths, pauses, losses.
#include <gtest/gtest.h>

#include <vector>

#include "core/workload/rollouts.hpp"

namespace holdfast {
namespace {

RolloutSlots constant(std::uint32_t slots, double tokens) {
  return {slots, Distribution::table({{tokens, 1'000'000}}), milliseconds(10), Random(1)};
}

TEST(Rollouts, TakeTheirTokensAndLeaveTheirSlots) {
  RolloutSlots slots = constant(4, 100);
  EXPECT_EQ(slots.next(), Time::never());
  slots.resume(seconds(5));
  EXPECT_EQ(slots.begin(3), 3U);
  EXPECT_EQ(slots.next(), seconds(6));
  EXPECT_EQ(slots.finish(milliseconds(5999)), 0U);
  EXPECT_EQ(slots.free(), 1U);
  EXPECT_EQ(slots.begin(9), 1U);  // ends a second after the last time that was told
  EXPECT_EQ(slots.finish(seconds(6)), 3U);
  EXPECT_EQ(slots.open(), 1U);
  EXPECT_EQ(slots.next(), milliseconds(6999));
}

TEST(Rollouts, StandStillWhileNothingIsGenerated) {
  RolloutSlots slots = constant(1, 100);
  slots.resume(seconds(0));
  slots.begin(1);
  slots.pause(milliseconds(400));
  EXPECT_EQ(slots.next(), Time::never());
  EXPECT_EQ(slots.finish(seconds(50)), 0U);
  slots.resume(seconds(60));
  EXPECT_EQ(slots.next(), milliseconds(60'600));
  slots.resume(milliseconds(60'100));  // once more changes nothing
  EXPECT_EQ(slots.next(), milliseconds(60'600));
  EXPECT_EQ(slots.finish(milliseconds(60'600)), 1U);
}

TEST(Rollouts, AreLostTogether) {
  RolloutSlots slots = constant(8, 100);
  slots.resume(seconds(0));
  slots.begin(5);
  EXPECT_EQ(slots.drop(), 5U);
  EXPECT_EQ(slots.open(), 0U);
  EXPECT_EQ(slots.next(), Time::never());
}

TEST(Rollouts, AlwaysHaveAToken) {
  RolloutSlots slots = constant(1, 0.1);
  slots.resume(seconds(0));
  slots.begin(1);
  EXPECT_EQ(slots.next(), milliseconds(10));
}

// Pausing changes when they end, not in which order or after how much generation.
TEST(Rollouts, EndAfterTheSameTimeOfGenerationWhateverThePauses) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Distribution lengths = Distribution::lognormal(300, 1.0, 4096);
    RolloutSlots straight(16, lengths, milliseconds(10), Random(seed));
    RolloutSlots paused(16, lengths, milliseconds(10), Random(seed));
    straight.resume(Time());
    paused.resume(Time());
    straight.begin(16);
    paused.begin(16);
    Random random(seed, 1);
    Time away;
    while (straight.open() > 0) {
      const Time end = straight.next();
      if (random.uniform() < 0.5) {
        const Time stop = end + away - microseconds(1);
        paused.finish(stop);
        paused.pause(stop);
        paused.resume(stop + seconds(7));
        away += seconds(7);
      }
      EXPECT_EQ(paused.next(), end + away);
      EXPECT_EQ(paused.finish(end + away), straight.finish(end));
    }
    EXPECT_EQ(paused.open(), 0U);
  }
}

}  // namespace
}  // namespace holdfast
