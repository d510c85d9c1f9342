#include "core/workload/stalls.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Interval span(std::int64_t from, std::int64_t to) {
  return {seconds(from), seconds(to)};
}
Wait wait(StallPart part, std::int64_t from, std::int64_t to) {
  return {part, seconds(from), seconds(to)};
}

void expect(const std::vector<GroupTime>& groups, double rollout, double trainer, double offload) {
  const StallParts parts = stall_parts(groups);
  EXPECT_DOUBLE_EQ(parts.rollout.seconds(), rollout);
  EXPECT_DOUBLE_EQ(parts.trainer.seconds(), trainer);
  EXPECT_DOUBLE_EQ(parts.offload.seconds(), offload);
  EXPECT_DOUBLE_EQ(parts.total().seconds(), rollout + trainer + offload);
}

TEST(StallParts, CountEachGpuOfAGroup) {
  expect(
      {{8, {span(0, 100)}, {wait(StallPart::Rollout, 3, 5)}},
       {2, {span(0, 100)}, {wait(StallPart::Trainer, 10, 11), wait(StallPart::Offload, 20, 25)}}},
      16, 2, 10);
}

TEST(StallParts, CountOverlapsOnce) {
  // [0,10) rollout twice over; [4,6) trainer; [5,9) offload: rollout 4 + 1, trainer 1, offload 4.
  expect({{1,
           {span(0, 100)},
           {wait(StallPart::Rollout, 0, 7), wait(StallPart::Rollout, 2, 10),
            wait(StallPart::Trainer, 4, 6), wait(StallPart::Offload, 5, 9)}}},
         5, 1, 4);
}

TEST(StallParts, CountOnlyWhileTheGroupIsThere) {
  // Present [10,20) and [30,40); waits [5,12) and [18,35): 2 + 2 + 5.
  expect({{3,
           {span(30, 40), span(10, 20)},
           {wait(StallPart::Rollout, 5, 12), wait(StallPart::Rollout, 18, 35)}}},
         27, 0, 0);
}

TEST(StallParts, AreNothingWithoutWaitsOrPresence) {
  expect({}, 0, 0, 0);
  expect({{8, {span(0, 9)}, {}}}, 0, 0, 0);
  expect({{8, {}, {wait(StallPart::Rollout, 0, 9)}}}, 0, 0, 0);
  expect({{8, {span(0, 9)}, {wait(StallPart::Rollout, 4, 4)}}}, 0, 0, 0);
}

TEST(StallParts, ExceedWhatATimeHolds) {
  // 16,384 GPUs for 1e6 s: 1.6e22 ps, more than 2^63.
  expect({{16'384, {span(0, 1'000'000)}, {wait(StallPart::Rollout, 0, 1'000'000)}}}, 1.6384e10, 0,
         0);
}

}  // namespace
}  // namespace holdfast
