// A large update: that it ends, what it delivers, and, for the reader, how long it took.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "sim/simulation.hpp"
#include "tests/sim/scale_fixture.hpp"

namespace holdfast::sim::testing {
namespace {

// 128 hosts of 8 GPUs, TP=8, 256 blocks of 2^26 bytes a shard: 127 x 8 x 256 deliveries. Two trees
// over 127 = 2^7 - 1 hosts, so the time is known but for digests and rounding of the fill:
// 256 blocks and 2 x 6 more to fill the pipeline, two latencies and a word a hop at most 1 %.
TEST(Scale, ThousandGpus) {
  const ScaleCase scale = make_scale_case(128, 256);
  const Router router(scale.topology);
  const auto start = std::chrono::steady_clock::now();
  const SimulationResult result = simulate(router, scale.demand, scale.plan);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(result.failure) << *result.failure;
  EXPECT_EQ(result.deliveries, 127U * 8U * 256U);
  EXPECT_EQ(result.moved.gpu, Bytes(kScaleBlock) * 127 * 8 * 256);
  const double least = transfer_time(Bytes(kScaleBlock) * (256 + 12), kScaleRate).seconds();
  EXPECT_GE(result.makespan.seconds(), least);
  EXPECT_LE(result.makespan.seconds(), least * 1.01);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  std::printf(
      "[ figures  ] 1,016 receivers x 256 blocks: %.2f s wall, %.2f s of a core, %.2f us of a core "
      "a "
      "delivery, %.0f MiB\n",
      wall.count(), cpu, cpu * 1e6 / static_cast<double>(result.deliveries),
      static_cast<double>(usage.ru_maxrss) / 1024);
}

}  // namespace
}  // namespace holdfast::sim::testing
