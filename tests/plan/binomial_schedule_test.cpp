// The contract of the binomial pipeline over every group size and number of blocks that a reader
// could check by hand, by carrying the steps out.

#include "core/plan/binomial_schedule.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace holdfast {
namespace {

// Carries all steps out. What is received in a step can be sent from the next one.
void carry_out(std::uint32_t n, std::uint32_t blocks) {
  SCOPED_TRACE(testing::Message() << n << " positions, " << blocks << " blocks");
  const BinomialSchedule schedule(n, blocks);
  const auto l = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  ASSERT_EQ(schedule.steps(), std::has_single_bit(n) ? blocks + l - 1 : blocks + l);
  std::vector<std::vector<bool>> has(n, std::vector<bool>(blocks));
  has[0].assign(blocks, true);
  for (std::uint32_t step = 0; step < schedule.steps(); ++step) {
    std::vector<std::vector<std::uint32_t>> arrives(n);
    for (std::uint32_t from = 0; from < n; ++from) {
      const auto send = schedule.sent(from, step);  // one at most, by type
      if (!send) continue;
      ASSERT_LT(send->peer, n);
      ASSERT_LT(send->block, blocks);
      ASSERT_TRUE(has[from][send->block]) << from << " step " << step;
      ASSERT_FALSE(has[send->peer][send->block]) << send->peer << " step " << step;
      ASSERT_EQ(schedule.parent(send->peer, send->block), from);
      arrives[send->peer].push_back(send->block);
    }
    for (std::uint32_t to = 0; to < n; ++to) {
      ASSERT_LE(arrives[to].size(), 1U) << to << " step " << step;
      for (const std::uint32_t block : arrives[to]) has[to][block] = true;
    }
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(has[i], std::vector<bool>(blocks, true)) << i;
  }
}

TEST(BinomialSchedule, EveryoneEndsWithEverythingAndNobodyIsOverloaded) {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (std::uint32_t blocks = 1; blocks <= 32; ++blocks) {
      carry_out(n, blocks);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(BinomialSchedule, LargeGroups) {
  for (const std::uint32_t n : {127U, 128U, 129U, 255U, 1000U, 1024U}) {
    carry_out(n, 70);
    if (HasFatalFailure()) return;
  }
}

TEST(BinomialSchedule, TreesRepeat) {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    constexpr std::uint32_t kBlocks = 40;
    const BinomialSchedule schedule(n, kBlocks);
    for (std::uint32_t b = 0; b + schedule.period() < kBlocks - 1; ++b) {
      for (std::uint32_t i = 1; i < n; ++i) {
        ASSERT_EQ(schedule.parent(i, b), schedule.parent(i, b + schedule.period()))
            << i << " of " << n << ", block " << b;
      }
    }
  }
}

TEST(BinomialSchedule, TheRootAloneHasNothingToDo) {
  EXPECT_EQ(BinomialSchedule(1, 5).steps(), 0U);
  EXPECT_EQ(BinomialSchedule(1, 5).period(), 1U);
}

// The root sends each block once, and every position about as many as it receives.
TEST(BinomialSchedule, SendingIsShared) {
  for (const std::uint32_t n : {16U, 23U, 31U, 33U, 64U}) {
    const std::uint32_t blocks = 2 * BinomialSchedule(n, 1).period() * 20 + 1;
    const BinomialSchedule schedule(n, blocks);
    std::vector<std::uint32_t> sent(n);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      for (std::uint32_t i = 1; i < n; ++i) ++sent[schedule.parent(i, b)];
    }
    EXPECT_LE(sent[0], blocks + std::bit_width(n));  // the last one to each neighbour
    for (std::uint32_t i = 1; i < n; ++i) EXPECT_LE(sent[i], blocks + std::bit_width(n)) << i;
  }
}

}  // namespace
}  // namespace holdfast
