// What comes over a connection: the frame decoder takes anything in any portions, gives the same
// frames however it is portioned, and what it accepts has exactly one encoding.
//
// The first byte says who receives, the second how large the portions are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "real/wire.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::real;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Taken {
  std::vector<FrameHeader> headers;
  std::vector<std::vector<std::byte>> payloads;
  bool broken = false;
  friend bool operator==(const Taken&, const Taken&) = default;
};

Taken take(std::span<const std::byte> bytes, Side side, std::size_t portion) {
  Taken taken;
  FrameInput input(side);
  while (!bytes.empty()) {
    std::size_t part = std::min(bytes.size(), portion);
    if (input.data_left() != 0) {
      part = std::min<std::size_t>(part, input.data_left());
      const auto data = bytes.first(part);
      taken.payloads.back().insert(taken.payloads.back().end(), data.begin(), data.end());
      input.placed(static_cast<std::uint32_t>(part));
    } else {
      const std::span<std::byte> room = input.room();
      require(!room.empty());
      part = std::min(part, room.size());
      std::copy_n(bytes.begin(), part, room.begin());
      const FrameInput::Got got = input.filled(part);
      if (got == FrameInput::Got::Broken) {
        taken.broken = true;
        return taken;
      }
      if (got == FrameInput::Got::Frame) {
        taken.headers.push_back(input.header());
        const auto payload = input.payload();
        taken.payloads.emplace_back(payload.begin(), payload.end());
      }
    }
    bytes = bytes.subspan(part);
  }
  return taken;
}

std::vector<std::byte> encode_read(const FrameHeader& header, const ReadCall& call) {
  std::vector<Piece> pieces;
  for (const Extent& extent : call.extents) pieces.push_back({extent.offset, 0, extent.bytes});
  std::vector<std::byte> out;
  append_read(header.sequence, call.access, pieces, out);
  return out;
}

void encode_again(const FrameHeader& header, std::span<const std::byte> payload) {
  std::vector<std::byte> head;
  append_header(header, head);
  std::vector<std::byte> again;
  if (header.type == FrameType::Read) {
    const auto call = decode_read(payload);
    if (!call) return;
    std::uint64_t total = 0;
    for (const Extent& extent : call->extents) {
      total += extent.bytes;
      require(total >= extent.bytes);
    }
    again = encode_read(header, *call);
  } else if (header.type == FrameType::Hello) {
    const auto hello = decode_hello(payload);
    if (!hello || header.sequence != 0) return;
    append_hello(*hello, again);
  } else if (header.type == FrameType::Welcome) {
    const auto welcome = decode_welcome(payload);
    if (!welcome || header.sequence != 0) return;
    append_welcome(*welcome, again);
  } else {
    return;
  }
  require(again.size() == head.size() + payload.size());
  require(std::equal(head.begin(), head.end(), again.begin()));
  require(std::equal(payload.begin(), payload.end(), again.begin() + kHeaderBytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Side side = (data[0] & 1U) != 0 ? Side::Source : Side::Reader;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  const Taken whole = take(bytes, side, bytes.size() + 1);
  require(whole == take(bytes, side, 1 + data[1] % 40U));
  for (std::size_t i = 0; i < whole.headers.size(); ++i) {
    const auto& payload = whole.payloads[i];
    require(payload.size() <= whole.headers[i].length);
    require(payload.size() == whole.headers[i].length || i + 1 == whole.headers.size());
    encode_again(whole.headers[i], payload);
  }
  return 0;
}
