// What engines tell each other directly: which blocks a parent has verified (have), and that a
// child would like to hear it again (ask). Everything else goes through the coordinator.
//
// Encoding: integers little-endian; no padding; a message is exactly as long as it says.
//   byte 0      0x48
//   byte 1      format, 2
//   byte 2      kind: 1 have, 2 ask
//   byte 3      0
//   8 bytes     lineage, 8 bytes number of the version
//   4 bytes     transfer: which of the transfers of that version (UpdateTables::transfer)
//   4 bytes     stripe
//   4 bytes     first: number of a block in the stripe's own order, a multiple of 64
//   have only:  4 bytes count (at most 4,096), then ceil(count / 8) bytes of bitmap: bit k (lowest
//               bit of a byte first) is block first + k; unused bits of the last byte are zero.
// All of it at most 548 bytes. Both messages are idempotent: loss, doubling and reordering do no
// harm, since bitmaps are only ever added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <variant>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"

namespace holdfast {

inline constexpr std::uint32_t kMaxHaveBlocks = 4096;
inline constexpr std::size_t kMaxMessageBytes = 36 + kMaxHaveBlocks / 8;

// What a message is about.
struct MessageSubject {
  Version version;
  std::uint32_t transfer = 0;
  StripeId stripe;
  friend constexpr auto operator<=>(const MessageSubject&, const MessageSubject&) = default;
};

struct Have {
  MessageSubject about;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::span<const std::byte> bitmap;  // a view into the message

  // Bits 64 k .. 64 k + 63, those beyond count zero.
  [[nodiscard]] std::uint64_t word(std::uint32_t k) const;
};

struct Ask {
  MessageSubject about;
  std::uint32_t first = 0;  // what comes before is known
};

using Message = std::variant<Have, Ask>;

struct MessageError {
  std::size_t offset = 0;  // byte at which it stops making sense
  const char* problem = "";
};
[[nodiscard]] std::string to_string(const MessageError& error);

// Never throws, never reads outside `bytes`. The answer refers to `bytes`.
[[nodiscard]] tl::expected<Message, MessageError> decode_message(std::span<const std::byte> bytes);

// What a message is about, without a look at the rest: for handing it on. Nothing for bytes that
// are no message's beginning.
[[nodiscard]] std::optional<MessageSubject> subject_of(std::span<const std::byte> bytes);

// Write into `out` (at least kMaxMessageBytes) and return the length. Preconditions: first is a
// multiple of 64, count at most 4,096, `words` holds count bits from bit 0; those beyond are
// masked.
std::size_t encode_have(const MessageSubject& about, std::uint32_t first, std::uint32_t count,
                        std::span<const std::uint64_t> words, std::span<std::byte> out);
std::size_t encode_ask(const MessageSubject& about, std::uint32_t first, std::span<std::byte> out);

}  // namespace holdfast
