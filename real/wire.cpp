#include "real/wire.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::real {
namespace {

constexpr std::uint64_t kMagic = 0x3150544c44464848U;  // "HHFDLTP1"
constexpr std::uint32_t kHelloBytes = 40;
constexpr std::uint32_t kWelcomeBytes = 36;
constexpr std::uint32_t kPieceBytes = 16;
constexpr std::uint32_t kReadHead = 3;  // size of the access, number of pieces
constexpr std::uint32_t kMaxReadBytes =
    kReadHead + static_cast<std::uint32_t>(Access::kCapacity) + kMaxPieces * kPieceBytes;

template <class T>
void put(T value, std::vector<std::byte>& out) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xffU));
  }
}

// The caller has checked that the bytes are there.
template <class T>
T take(std::span<const std::byte>& bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<T>(value | (static_cast<T>(bytes[i]) << (8 * i)));
  }
  bytes = bytes.subspan(sizeof value);
  return value;
}

// What a type may look like on its way to one side.
struct Shape {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  std::uint8_t details = 0;  // the largest
  std::uint8_t least_detail = 0;
};

std::optional<Shape> shape_of(FrameType type, Side receiver) {
  const bool to_source = receiver == Side::Source;
  switch (type) {
    case FrameType::Hello:
      if (to_source) return Shape{kHelloBytes, kHelloBytes};
      break;
    case FrameType::Read:
      if (to_source) return Shape{kReadHead, kMaxReadBytes};
      break;
    case FrameType::Message:
      if (to_source) return Shape{0, static_cast<std::uint32_t>(Transport::kMaxMessage)};
      break;
    case FrameType::Cancel:
    case FrameType::Fenced:
      if (to_source) return Shape{};
      break;
    case FrameType::Welcome:
      if (!to_source) return Shape{kWelcomeBytes, kWelcomeBytes};
      break;
    case FrameType::Refuse:
      if (!to_source) return Shape{0, 0, static_cast<std::uint8_t>(Refusal::StaleIncarnation), 1};
      break;
    case FrameType::Data:
      if (!to_source) return Shape{1, kMaxDataBytes};
      break;
    case FrameType::Done:
      if (!to_source) return Shape{0, 0, static_cast<std::uint8_t>(ReadStatus::OutOfRange)};
      break;
    case FrameType::Fence:
      if (!to_source) return Shape{};
      break;
    case FrameType::Ping:
    case FrameType::Pong:
      return Shape{};
  }
  return std::nullopt;
}

}  // namespace

void append_header(const FrameHeader& header, std::vector<std::byte>& out) {
  put(static_cast<std::uint8_t>(header.type), out);
  put(header.detail, out);
  put(std::uint16_t{0}, out);
  put(header.length, out);
  put(header.sequence, out);
}

std::optional<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> fixed,
                                         Side receiver) {
  std::span<const std::byte> bytes = fixed;
  FrameHeader header;
  const auto type = take<std::uint8_t>(bytes);
  if (type < static_cast<std::uint8_t>(FrameType::Hello) ||
      type > static_cast<std::uint8_t>(FrameType::Fenced)) {
    return std::nullopt;
  }
  header.type = static_cast<FrameType>(type);
  header.detail = take<std::uint8_t>(bytes);
  const auto reserved = take<std::uint16_t>(bytes);
  header.length = take<std::uint32_t>(bytes);
  header.sequence = take<std::uint64_t>(bytes);
  const auto shape = shape_of(header.type, receiver);
  if (!shape || reserved != 0 || header.length < shape->least || header.length > shape->most ||
      header.detail < shape->least_detail || header.detail > shape->details) {
    return std::nullopt;
  }
  return header;
}

void append_hello(const Hello& hello, std::vector<std::byte>& out) {
  append_header({FrameType::Hello, 0, kHelloBytes, 0}, out);
  put(kMagic, out);
  put(hello.worker.value(), out);
  put(hello.target.value(), out);
  put(hello.incarnation, out);
  put(hello.nonce, out);
  put(hello.instance, out);
}

std::optional<Hello> decode_hello(std::span<const std::byte> payload) {
  if (payload.size() != kHelloBytes || take<std::uint64_t>(payload) != kMagic) return std::nullopt;
  Hello hello;
  hello.worker = WorkerId(take<std::uint32_t>(payload));
  hello.target = WorkerId(take<std::uint32_t>(payload));
  hello.incarnation = take<std::uint64_t>(payload);
  hello.nonce = take<std::uint64_t>(payload);
  hello.instance = take<std::uint64_t>(payload);
  if (!hello.worker.valid() || !hello.target.valid()) return std::nullopt;
  return hello;
}

void append_welcome(const Welcome& welcome, std::vector<std::byte>& out) {
  append_header({FrameType::Welcome, 0, kWelcomeBytes, 0}, out);
  put(kMagic, out);
  put(welcome.worker.value(), out);
  put(welcome.incarnation, out);
  put(welcome.nonce, out);
  put(welcome.instance, out);
}

std::optional<Welcome> decode_welcome(std::span<const std::byte> payload) {
  if (payload.size() != kWelcomeBytes || take<std::uint64_t>(payload) != kMagic) {
    return std::nullopt;
  }
  Welcome welcome;
  welcome.worker = WorkerId(take<std::uint32_t>(payload));
  welcome.incarnation = take<std::uint64_t>(payload);
  welcome.nonce = take<std::uint64_t>(payload);
  welcome.instance = take<std::uint64_t>(payload);
  return welcome;
}

void append_read(std::uint64_t sequence, const Access& access, std::span<const Piece> pieces,
                 std::vector<std::byte>& out) {
  const std::size_t length = kReadHead + access.size + pieces.size() * kPieceBytes;
  append_header({FrameType::Read, 0, static_cast<std::uint32_t>(length), sequence}, out);
  put(access.size, out);
  put(static_cast<std::uint16_t>(pieces.size()), out);
  out.insert(out.end(), access.bytes.begin(), access.bytes.begin() + access.size);
  for (const Piece& piece : pieces) {
    put(piece.remote_offset, out);
    put(piece.bytes, out);
  }
}

std::optional<ReadCall> decode_read(std::span<const std::byte> payload) {
  if (payload.size() < kReadHead) return std::nullopt;
  ReadCall call;
  call.access.size = take<std::uint8_t>(payload);
  const auto count = take<std::uint16_t>(payload);
  if (call.access.size > Access::kCapacity || count > kMaxPieces ||
      payload.size() != call.access.size + std::size_t{count} * kPieceBytes) {
    return std::nullopt;
  }
  std::copy_n(payload.begin(), call.access.size, call.access.bytes.begin());
  payload = payload.subspan(call.access.size);
  call.extents.reserve(count);
  std::uint64_t total = 0;
  while (!payload.empty()) {
    Extent extent;
    extent.offset = take<std::uint64_t>(payload);
    extent.bytes = take<std::uint64_t>(payload);
    if (extent.bytes > std::numeric_limits<std::uint64_t>::max() - total) return std::nullopt;
    total += extent.bytes;
    call.extents.push_back(extent);
  }
  return call;
}

std::span<std::byte> FrameInput::room() {
  if (in_payload_) return std::span(payload_).subspan(have_);
  return std::span(head_).subspan(have_);
}

FrameInput::Got FrameInput::filled(std::size_t bytes) {
  have_ += bytes;
  if (in_payload_) {
    if (have_ < payload_.size()) return Got::More;
    in_payload_ = false;
    have_ = 0;
    return Got::Frame;
  }
  if (have_ < kHeaderBytes) return Got::More;
  const auto header = decode_header(head_, receiver_);
  if (!header) return Got::Broken;
  have_ = 0;
  header_ = *header;
  payload_.clear();
  if (header_.type == FrameType::Data) {
    data_left_ = header_.length;
    return Got::Frame;
  }
  if (header_.length == 0) return Got::Frame;
  payload_.resize(header_.length);
  in_payload_ = true;
  return Got::More;
}

}  // namespace holdfast::real
