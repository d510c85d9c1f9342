#include "core/engine/message.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace holdfast {
namespace {

using Buffer = std::array<std::byte, kMaxMessageBytes>;

TEST(Message, HaveRoundTrips) {
  std::mt19937_64 random(7);
  for (std::uint32_t count = 0; count <= kMaxHaveBlocks; count += count < 140 ? 1 : 61) {
    SCOPED_TRACE(count);
    std::vector<std::uint64_t> words(count / 64 + 1);
    for (std::uint64_t& word : words) word = random();
    Buffer buffer;
    buffer.fill(std::byte{0xff});
    const std::size_t length =
        encode_have({{random(), random()}, 9, StripeId(17U)}, 64 * 5, count, words, buffer);
    ASSERT_LE(length, kMaxMessageBytes);
    const auto message = decode_message(std::span(buffer).first(length));
    ASSERT_TRUE(message) << to_string(message.error());
    const Have& have = std::get<Have>(*message);
    EXPECT_EQ(have.about.transfer, 9U);
    EXPECT_EQ(have.about.stripe, StripeId(17U));
    EXPECT_EQ(have.first, 320U);
    EXPECT_EQ(have.count, count);
    for (std::uint32_t i = 0; i < 64 * (count / 64 + 2); ++i) {
      const bool expected = i < count && ((words[i / 64] >> (i % 64)) & 1U) != 0;
      ASSERT_EQ((have.word(i / 64) >> (i % 64)) & 1U, expected ? 1U : 0U) << "bit " << i;
    }
  }
}

// The layout that the header promises, byte by byte.
TEST(Message, BytesAreAsDocumented) {
  Buffer buffer{};
  const std::array<std::uint64_t, 1> words{0xffff};
  ASSERT_EQ(encode_have({{0x0102, 0x03}, 0x0607, StripeId(0x0405U)}, 64, 10, words, buffer), 38U);
  const std::array<unsigned, 38> expected{0x48, 2, 1,  0, 2, 1, 0,  0, 0, 0, 0,    0, 3,
                                          0,    0, 0,  0, 0, 0, 0,  7, 6, 0, 0,    5, 4,
                                          0,    0, 64, 0, 0, 0, 10, 0, 0, 0, 0xff, 3};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(buffer[i]), expected[i]) << "byte " << i;
  }
}

TEST(Message, AskRoundTrips) {
  Buffer buffer;
  const std::size_t length = encode_ask({{4, 5}, 8, StripeId(6U)}, 128, buffer);
  const auto message = decode_message(std::span(buffer).first(length));
  ASSERT_TRUE(message);
  const Ask& ask = std::get<Ask>(*message);
  EXPECT_EQ(ask.about, (MessageSubject{{4, 5}, 8, StripeId(6U)}));
  EXPECT_EQ(ask.first, 128U);
}

TEST(Message, SubjectIsReadWithoutTheRest) {
  Buffer buffer;
  const MessageSubject about{{4, 5}, 8, StripeId(6U)};
  const std::size_t length = encode_ask(about, 128, buffer);
  EXPECT_EQ(subject_of(std::span(buffer).first(length)), about);
  EXPECT_EQ(subject_of(std::span(buffer).first(length - 1)), std::nullopt);
  buffer[1] = std::byte{1};
  EXPECT_EQ(subject_of(std::span(buffer).first(length)), std::nullopt);
}

struct Damage {
  const char* what;
  std::size_t byte;
  unsigned value;
  std::size_t offset;  // that the error names
};

TEST(Message, DamageIsRefusedWithItsPlace) {
  const std::array<std::uint64_t, 1> words{5};
  Buffer good{};
  const std::size_t length = encode_have({{1, 2}, 4, StripeId(3U)}, 0, 3, words, good);
  ASSERT_TRUE(decode_message(std::span(good).first(length)));
  for (const Damage& damage :
       {Damage{"magic", 0, 0x49, 0}, Damage{"older format", 1, 1, 1}, Damage{"kind", 2, 3, 2},
        Damage{"reserved", 3, 1, 3}, Damage{"first", 28, 1, 28}, Damage{"count", 33, 0x11, 32},
        Damage{"longer bitmap", 32, 9, 37}, Damage{"spare bit", 36, 8, 36}}) {
    SCOPED_TRACE(damage.what);
    Buffer bad = good;
    bad[damage.byte] = static_cast<std::byte>(damage.value);
    const auto message = decode_message(std::span(bad).first(length));
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().offset, damage.offset) << message.error().problem;
  }
  Buffer nobody = good;
  std::fill(nobody.begin() + 24, nobody.begin() + 28, std::byte{0xff});
  EXPECT_EQ(decode_message(std::span(nobody).first(length)).error().offset, 24U);
}

// Each truncation is refused at its end, each extension at the first byte too many.
TEST(Message, LengthIsExact) {
  const std::array<std::uint64_t, 2> words{5, 1};
  Buffer buffer{};
  for (const bool ask : {false, true}) {
    const std::size_t length = ask ? encode_ask({{1, 2}, 4, StripeId(3U)}, 64, buffer)
                                   : encode_have({{1, 2}, 4, StripeId(3U)}, 64, 70, words, buffer);
    for (std::size_t n = 0; n < length; ++n) {
      const auto message = decode_message(std::span(buffer).first(n));
      ASSERT_FALSE(message) << n;
      EXPECT_EQ(message.error().offset, n);
    }
    const auto longer = decode_message(std::span(buffer).first(length + 1));
    ASSERT_FALSE(longer);
    EXPECT_EQ(longer.error().offset, length);
  }
}

// Whatever is accepted encodes to the same bytes again: there is one encoding of each message.
TEST(Message, AcceptedNoiseIsCanonical) {
  std::mt19937_64 random(11);
  std::size_t accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::vector<std::byte> noise(32 + random() % 12);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random() % 4);
    noise[0] = std::byte{0x48};
    noise[1] = std::byte{2};
    noise[3] = std::byte{0};
    for (std::size_t i = 28; i < std::min<std::size_t>(noise.size(), 36); ++i) {
      if (i % 4 != 0) noise[i] = std::byte{0};
    }
    noise[28] &= std::byte{0xc0};
    const auto message = decode_message(noise);
    if (!message) {
      ASSERT_LE(message.error().offset, noise.size());
      continue;
    }
    ++accepted;
    Buffer again{};
    std::size_t length = 0;
    if (const Have* have = std::get_if<Have>(&*message)) {
      const std::array<std::uint64_t, 1> words{have->word(0)};
      length = encode_have(have->about, have->first, have->count, words, again);
    } else {
      const Ask& ask = std::get<Ask>(*message);
      length = encode_ask(ask.about, ask.first, again);
    }
    ASSERT_EQ(length, noise.size());
    ASSERT_TRUE(std::equal(noise.begin(), noise.end(), again.begin()));
  }
  EXPECT_GT(accepted, 100U);
}

}  // namespace
}  // namespace holdfast
