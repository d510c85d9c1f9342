#include "core/engine/digest.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace holdfast {
namespace {

std::vector<std::byte> noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The definition, written out: pieces of 64 KiB, their digests little-endian, hashed again.
std::uint64_t by_definition(std::span<const std::byte> bytes) {
  std::vector<unsigned char> digests;
  for (std::size_t at = 0; at < bytes.size(); at += 65536) {
    const std::size_t length = std::min<std::size_t>(65536, bytes.size() - at);
    const std::uint64_t digest = XXH3_64bits(bytes.data() + at, length);
    for (unsigned i = 0; i < 8; ++i) {
      digests.push_back(static_cast<unsigned char>(digest >> (8 * i)));
    }
  }
  return XXH3_64bits(digests.data(), digests.size());
}

TEST(Digest, IsTheDefinition) {
  for (const std::size_t size : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 131072UL, 200001UL}) {
    SCOPED_TRACE(size);
    const auto bytes = noise(size, size);
    EXPECT_EQ(block_digest(bytes), by_definition(bytes));
  }
}

// Pinned: other machines and later versions must agree. The last byte decides the tables in plans.
TEST(Digest, IsPinned) {
  std::vector<std::byte> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  EXPECT_EQ(block_digest(bytes), by_definition(bytes));
  EXPECT_EQ(block_digest({}), 0x2d06800538d394c2ULL);  // XXH3-64 of nothing
}

TEST(Digest, ExtentsDoNotMatter) {
  const auto bytes = noise(300'000, 3);
  const std::uint64_t whole = block_digest(bytes);
  std::mt19937_64 random(4);
  BlockDigester digester;
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t length = std::min<std::size_t>(1 + random() % 90'000, bytes.size() - at);
      digester.add(std::span(bytes).subspan(at, length));
      at += length;
    }
    ASSERT_EQ(digester.finish(), whole);
  }
}

TEST(Digest, EachByteCounts) {
  auto bytes = noise(70'000, 5);
  const std::uint64_t before = block_digest(bytes);
  for (const std::size_t at : {0UL, 65535UL, 65536UL, 69999UL}) {
    bytes[at] ^= std::byte{1};
    EXPECT_NE(block_digest(bytes), before) << at;
    bytes[at] ^= std::byte{1};
  }
  EXPECT_EQ(block_digest(bytes), before);
}

TEST(Digest, RootIsTheHashOfTheTable) {
  const std::vector<std::uint64_t> table{1, 0x1122334455667788, 3};
  std::vector<unsigned char> bytes;
  for (const std::uint64_t digest : table) {
    for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<unsigned char>(digest >> (8 * i)));
  }
  const XXH128_hash_t expected = XXH3_128bits(bytes.data(), bytes.size());
  EXPECT_EQ(digest_root(table), (Hash128{expected.high64, expected.low64}));
  EXPECT_NE(digest_root(table), digest_root(std::vector<std::uint64_t>{1, 3, 0x1122334455667788}));
}

}  // namespace
}  // namespace holdfast
