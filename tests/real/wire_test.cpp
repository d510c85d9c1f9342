#include "real/wire.hpp"

#include <gtest/gtest.h>

#include <random>

namespace holdfast::real {
namespace {

std::optional<FrameHeader> decode(std::span<const std::byte> bytes, Side receiver) {
  return decode_header(bytes.first<kHeaderBytes>(), receiver);
}

TEST(Wire, HeadersComeBackAndGoOneWayOnly) {
  struct Case {
    FrameType type;
    std::uint32_t length;
    bool to_source;
    bool to_reader;
  };
  const Case cases[] = {
      {FrameType::Hello, 40, true, false},      {FrameType::Welcome, 36, false, true},
      {FrameType::Read, 27, true, false},       {FrameType::Cancel, 0, true, false},
      {FrameType::Data, 1, false, true},        {FrameType::Data, kMaxDataBytes, false, true},
      {FrameType::Done, 0, false, true},        {FrameType::Message, 4096, true, false},
      {FrameType::Ping, 0, true, true},         {FrameType::Pong, 0, true, true},
      {FrameType::Fence, 0, false, true},       {FrameType::Fenced, 0, true, false},
      {FrameType::Data, 0, false, false},       {FrameType::Data, kMaxDataBytes + 1, false, false},
      {FrameType::Hello, 41, false, false},     {FrameType::Message, 4097, false, false},
      {FrameType::Read, 1 << 20, false, false},
  };
  for (const Case& c : cases) {
    const FrameHeader header{c.type, 0, c.length, 0x0102030405060708U};
    std::vector<std::byte> bytes;
    append_header(header, bytes);
    ASSERT_EQ(bytes.size(), kHeaderBytes);
    EXPECT_EQ(decode(bytes, Side::Source).has_value(), c.to_source) << int(c.type);
    EXPECT_EQ(decode(bytes, Side::Reader).has_value(), c.to_reader) << int(c.type);
    if (c.to_reader) {
      EXPECT_EQ(*decode(bytes, Side::Reader), header);
    }
    bytes[2] = std::byte{1};  // reserved
    EXPECT_FALSE(decode(bytes, Side::Source));
    EXPECT_FALSE(decode(bytes, Side::Reader));
  }
  for (const int type : {0, 13, 255}) {
    std::vector<std::byte> bytes(kHeaderBytes);
    bytes[0] = static_cast<std::byte>(type);
    EXPECT_FALSE(decode(bytes, Side::Source));
    EXPECT_FALSE(decode(bytes, Side::Reader));
  }
}

TEST(Wire, GreetingsAndReadsComeBack) {
  std::vector<std::byte> bytes;
  const Hello hello{WorkerId(3U), WorkerId(9U), 5, 6, 7};
  append_hello(hello, bytes);
  EXPECT_EQ(decode_hello(std::span(bytes).subspan(kHeaderBytes)), hello);
  bytes[kHeaderBytes] ^= std::byte{1};
  EXPECT_FALSE(decode_hello(std::span(bytes).subspan(kHeaderBytes)));
  bytes.clear();
  const Welcome welcome{WorkerId(3U), 5, 6, 7};
  append_welcome(welcome, bytes);
  EXPECT_EQ(decode_welcome(std::span(bytes).subspan(kHeaderBytes)), welcome);

  Access access;
  access.size = 24;
  access.bytes[23] = std::byte{7};
  const std::vector<Piece> pieces{{1, 2, 3}, {std::uint64_t{1} << 40U, 0, std::uint64_t{1} << 35U}};
  bytes.clear();
  append_read(11, access, pieces, bytes);
  const auto call = decode_read(std::span(bytes).subspan(kHeaderBytes));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->access.size, 24);
  EXPECT_EQ(call->access.bytes, access.bytes);
  ASSERT_EQ(call->extents.size(), 2U);
  EXPECT_EQ(call->extents[1].offset, std::uint64_t{1} << 40U);
  EXPECT_EQ(call->extents[1].bytes, std::uint64_t{1} << 35U);
  const auto payload = std::span(bytes).subspan(kHeaderBytes);
  for (std::size_t cut = 0; cut < payload.size(); ++cut) {
    EXPECT_FALSE(decode_read(payload.first(cut))) << cut;
  }
  bytes.clear();
  append_read(11, access, std::vector<Piece>{{0, 0, ~std::uint64_t{0}}, {0, 0, 1}}, bytes);
  EXPECT_FALSE(decode_read(std::span(bytes).subspan(kHeaderBytes))) << "the sum overflows";
}

// The same frames come out however the bytes are portioned.
TEST(Wire, PortionsDoNotMatter) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  std::vector<std::byte> stream;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto length = static_cast<std::uint32_t>(1 + random() % 300);
    append_header({FrameType::Data, 0, length, i}, stream);
    stream.resize(stream.size() + length, static_cast<std::byte>(i));
    append_welcome({WorkerId(1U), i, 0, 0}, stream);
    append_header({FrameType::Done, 4, 0, i}, stream);
  }
  for (const std::size_t most : {std::size_t{1}, std::size_t{3}, std::size_t{100}, stream.size()}) {
    FrameInput input(Side::Reader);
    std::span<const std::byte> rest = stream;
    std::uint64_t frames = 0;
    std::uint64_t data = 0;
    while (!rest.empty()) {
      std::size_t part = std::min<std::size_t>(rest.size(), 1 + random() % most);
      if (input.data_left() != 0) {
        part = std::min<std::size_t>(part, input.data_left());
        EXPECT_EQ(rest[part - 1], static_cast<std::byte>(input.header().sequence));
        input.placed(static_cast<std::uint32_t>(part));
        data += part;
      } else {
        const auto room = input.room();
        part = std::min(part, room.size());
        std::copy_n(rest.begin(), part, room.begin());
        const auto got = input.filled(part);
        ASSERT_NE(got, FrameInput::Got::Broken) << "seed " << seed;
        if (got == FrameInput::Got::Frame) {
          EXPECT_EQ(frames % 3, input.header().type == FrameType::Data      ? 0U
                                : input.header().type == FrameType::Welcome ? 1U
                                                                            : 2U);
          if (input.header().type == FrameType::Welcome) {
            EXPECT_EQ(decode_welcome(input.payload())->incarnation, frames / 3);
          }
          ++frames;
        }
      }
      rest = rest.subspan(part);
    }
    EXPECT_EQ(frames, 300U) << "seed " << seed;
    EXPECT_EQ(data + 100 * (16 + 52 + 16), stream.size());
  }
}

}  // namespace
}  // namespace holdfast::real
