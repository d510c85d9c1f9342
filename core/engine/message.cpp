#include "core/engine/message.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::byte kMagic{0x48};
constexpr std::byte kFormat{2};
constexpr std::byte kHave{1};
constexpr std::byte kAsk{2};
constexpr std::size_t kAskBytes = 32;
constexpr std::size_t kHaveHeader = 36;

std::uint64_t load(std::span<const std::byte> bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return value;
}

void store(std::span<std::byte> out, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i) {
    out[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xffU);
  }
}

void store_header(std::byte kind, const MessageSubject& about, std::uint32_t first,
                  std::span<std::byte> out) {
  out[0] = kMagic;
  out[1] = kFormat;
  out[2] = kind;
  out[3] = std::byte{0};
  store(out, 4, 8, about.version.lineage);
  store(out, 12, 8, about.version.number);
  store(out, 20, 4, about.transfer);
  store(out, 24, 4, about.stripe.value());
  store(out, 28, 4, first);
}

MessageSubject load_subject(std::span<const std::byte> bytes) {
  return {{load(bytes, 4, 8), load(bytes, 12, 8)},
          static_cast<std::uint32_t>(load(bytes, 20, 4)),
          StripeId(static_cast<std::uint32_t>(load(bytes, 24, 4)))};
}

tl::unexpected<MessageError> wrong(std::size_t offset, const char* problem) {
  return tl::unexpected(MessageError{offset, problem});
}

tl::expected<Message, MessageError> decode_have(std::span<const std::byte> bytes, const Ask& head) {
  if (bytes.size() < kHaveHeader) return wrong(bytes.size(), "a have message ends too early");
  const auto count = static_cast<std::uint32_t>(load(bytes, 32, 4));
  if (count > kMaxHaveBlocks) return wrong(32, "more than 4096 blocks in one message");
  if (head.first > 0xffffffffU - kMaxHaveBlocks) return wrong(28, "block number out of range");
  const std::size_t length = kHaveHeader + (count + 7) / 8;
  if (bytes.size() < length) return wrong(bytes.size(), "the bitmap ends too early");
  if (bytes.size() > length) return wrong(length, "bytes after the end of the message");
  const std::uint32_t used = count % 8;
  if (used != 0 && (std::to_integer<unsigned>(bytes[length - 1]) >> used) != 0) {
    return wrong(length - 1, "bits after the end of the bitmap");
  }
  return Have{head.about, head.first, count, bytes.subspan(kHaveHeader)};
}

}  // namespace

std::uint64_t Have::word(std::uint32_t k) const {
  const std::size_t begin = std::size_t{k} * 8;
  if (begin >= bitmap.size()) return 0;
  return load(bitmap, begin, std::min<std::size_t>(8, bitmap.size() - begin));
}

std::string to_string(const MessageError& error) {
  return fmt::format("byte {}: {}", error.offset, error.problem);
}

tl::expected<Message, MessageError> decode_message(std::span<const std::byte> bytes) {
  constexpr std::size_t kKnown = 4;
  for (std::size_t i = 0; i < std::min(bytes.size(), kKnown); ++i) {
    if (i == 0 && bytes[i] != kMagic) return wrong(0, "not a message of an engine");
    if (i == 1 && bytes[i] != kFormat) return wrong(1, "unknown format");
    if (i == 2 && bytes[i] != kHave && bytes[i] != kAsk) return wrong(2, "unknown kind");
    if (i == 3 && bytes[i] != std::byte{0}) return wrong(3, "a reserved byte is not zero");
  }
  if (bytes.size() < kAskBytes) return wrong(bytes.size(), "the message ends too early");
  const Ask head{load_subject(bytes), static_cast<std::uint32_t>(load(bytes, 28, 4))};
  if (!head.about.stripe.valid()) return wrong(24, "no such stripe");
  if (head.first % 64 != 0) return wrong(28, "the first block is not a multiple of 64");
  if (bytes[2] == kHave) return decode_have(bytes, head);
  if (bytes.size() > kAskBytes) return wrong(kAskBytes, "bytes after the end of the message");
  return head;
}

std::optional<MessageSubject> subject_of(std::span<const std::byte> bytes) {
  if (bytes.size() < kAskBytes || bytes[0] != kMagic || bytes[1] != kFormat) return std::nullopt;
  return load_subject(bytes);
}

std::size_t encode_have(const MessageSubject& about, std::uint32_t first, std::uint32_t count,
                        std::span<const std::uint64_t> words, std::span<std::byte> out) {
  store_header(kHave, about, first, out);
  store(out, 32, 4, count);
  const std::size_t length = (count + 7) / 8;
  for (std::size_t i = 0; i < length; ++i) {
    out[kHaveHeader + i] = static_cast<std::byte>((words[i / 8] >> (8 * (i % 8))) & 0xffU);
  }
  if (count % 8 != 0) {
    out[kHaveHeader + length - 1] &= static_cast<std::byte>((1U << (count % 8)) - 1U);
  }
  return kHaveHeader + length;
}

std::size_t encode_ask(const MessageSubject& about, std::uint32_t first, std::span<std::byte> out) {
  store_header(kAsk, about, first, out);
  return kAskBytes;
}

}  // namespace holdfast
