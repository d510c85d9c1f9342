#include "core/hash.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

// The encoding written out by hand.
TEST(CanonicalHasher, EncodesAsDocumented) {
  const char bytes[] =
      "\x08\x07\x06\x05\x04\x03\x02\x01"  // 0x0102030405060708
      "\x02\x00\x00\x00\x00\x00\x00\x00"  // length of "hi"
      "hi"
      "\xff\xff\xff\xff\xff\xff\xff\xff";  // -1 ps
  const XXH128_hash_t expected = XXH3_128bits(bytes, sizeof(bytes) - 1);
  const Hash128 hash = CanonicalHasher().add(0x0102030405060708U).add("hi").add(Time(-1)).finish();
  EXPECT_EQ(hash.high, expected.high64);
  EXPECT_EQ(hash.low, expected.low64);
}

TEST(CanonicalHasher, TellsCallsApart) {
  const auto two = [](std::string_view a, std::string_view b) {
    return CanonicalHasher().add(a).add(b).finish();
  };
  EXPECT_EQ(two("ab", "c"), two("ab", "c"));
  EXPECT_NE(two("ab", "c"), two("a", "bc"));
  EXPECT_NE(CanonicalHasher().add(1U).add(2U).finish(), CanonicalHasher().add(2U).add(1U).finish());
  EXPECT_NE(CanonicalHasher().finish(), CanonicalHasher().add(0U).finish());
  EXPECT_EQ(CanonicalHasher().add(Bytes(5)).finish(), CanonicalHasher().add(Rate(5)).finish());
}

TEST(Hash128, TextGoesThereAndBack) {
  std::mt19937_64 random(11);
  RecordProperty("seed", "11");
  for (int i = 0; i < 1000; ++i) {
    const Hash128 hash{random() >> (random() % 64), random() >> (random() % 64)};
    const std::string text = to_string(hash);
    EXPECT_EQ(text.size(), 32U);
    EXPECT_EQ(parse_hash(text), hash) << text;
  }
  EXPECT_EQ(to_string(Hash128{1, 0xabc}), "00000000000000010000000000000abc");
}

TEST(Hash128, Refuses) {
  const std::string good(32, 'a');
  EXPECT_TRUE(parse_hash(good).has_value());
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "a", "g" + good.substr(1), "0x" + good.substr(2),
        "-" + good.substr(1), "+" + good.substr(1), " " + good.substr(1), good.substr(1) + " ",
        good.substr(0, 16) + "-" + good.substr(17), std::string(32, '\0')}) {
    EXPECT_FALSE(parse_hash(bad).has_value()) << bad;
  }
  EXPECT_THAT(parse_hash("\x1b[31m").error(), HasSubstr("'\\x1b[31m' is not a hash"));
}

}  // namespace
}  // namespace holdfast
