#include "real/host_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "core/engine/digest.hpp"
#include "real/tcp_transport.hpp"

namespace holdfast::real {
namespace {

std::vector<JobDone> collect(Transport& transport, Memory& memory, std::size_t count) {
  std::vector<JobDone> done;
  const Time end = transport.now() + seconds(60);
  while (done.size() < count && transport.now() < end) {
    std::array<JobDone, 1> one;  // what is left ends the next wait
    if (memory.poll(one) != 0) done.push_back(one[0]);
    if (done.size() < count) transport.wait(end);
  }
  return done;
}

// Random extents: digests are those of the packed bytes, a gather packs them, a scatter undoes it;
// jobs are done in order.
TEST(HostMemory, DigestsGathersScattersAnyExtents) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  TcpTransport transport(WorkerId(0U));
  HostMemory memory(transport.regions(), transport.wake_up());
  std::vector<std::byte> bytes(1 << 20);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  std::vector<std::byte> packed(1 << 20);
  std::vector<std::byte> back(1 << 20);
  const RegionId region = transport.add_region(bytes, Bytes(bytes.size()));
  const RegionId staging = transport.add_region(packed, Bytes(packed.size()));
  const RegionId other = transport.add_region(back, Bytes(back.size()));
  for (int round = 0; round < 50; ++round) {
    std::vector<Extent> extents;
    std::vector<std::byte> expected;
    std::uint64_t at = random() % 5000;
    for (std::size_t n = random() % 20; n != 0; --n) {
      const Extent extent{at, random() % 40'000};
      if (extent.offset + extent.bytes > bytes.size()) break;
      extents.push_back(extent);
      const auto part = std::span(bytes).subspan(extent.offset, extent.bytes);
      expected.insert(expected.end(), part.begin(), part.end());
      at += extent.bytes + random() % 5000;
    }
    memory.digest(1, region, extents);
    memory.gather(2, region, extents, staging, 100);
    memory.scatter(3, staging, 100, other, extents);
    memory.digest(4, other, extents);
    const std::vector<JobDone> done = collect(transport, memory, 4);
    ASSERT_EQ(done.size(), 4U) << "seed " << seed;
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].id, i + 1);
    EXPECT_EQ(done[0].digest, block_digest(expected)) << "seed " << seed;
    EXPECT_EQ(done[3].digest, done[0].digest) << "seed " << seed;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), packed.begin() + 100));
  }
}

// A completion that was not polled ends every wait; one that was ends none.
TEST(HostMemory, CompletionsEndWaits) {
  TcpTransport transport(WorkerId(0U));
  HostMemory memory(transport.regions(), transport.wake_up());
  std::vector<std::byte> bytes(100);
  const RegionId region = transport.add_region(bytes, Bytes(100));
  memory.digest(1, region, std::array{Extent{0, 100}});
  const Time far = transport.now() + seconds(1000);
  transport.wait(far);
  transport.wait(far);
  EXPECT_LT(transport.now(), far);
  EXPECT_EQ(collect(transport, memory, 1).size(), 1U);
  const Time soon = transport.now() + milliseconds(20);
  while (transport.now() < soon) transport.wait(soon);
  std::array<JobDone, 1> none;
  EXPECT_EQ(memory.poll(none), 0U);
}

// Jobs that wait when it ends are forgotten, the end is bounded.
TEST(HostMemory, EndsWithJobsWaiting) {
  TcpTransport transport(WorkerId(0U));
  std::vector<std::byte> bytes(1 << 22);
  const RegionId region = transport.add_region(bytes, Bytes(bytes.size()));
  HostMemory memory(transport.regions(), transport.wake_up());
  for (JobId job = 0; job < 1000; ++job) {
    memory.digest(job, region, std::array{Extent{0, bytes.size()}});
  }
}

}  // namespace
}  // namespace holdfast::real
