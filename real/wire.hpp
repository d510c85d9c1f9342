// The bytes that two TCP transports exchange. Pure: no sockets.
//
// A connection goes from a reader to a source. Each direction is a sequence of frames: a header of
// 16 bytes (type, detail, two zero bytes, payload length u32, sequence u64; all little-endian) and
// the payload. Whoever receives knows for each type and direction which details and lengths there
// are; anything else is garbage and ends that connection, and that one only.
//
//   reader -> source                          source -> reader
//   Hello   first; who, whom                  Welcome   first; who really
//   Read    sequence; access, pieces          Refuse    detail: Refusal; then it closes
//   Cancel  sequence                          Data      sequence; the read's next bytes
//   Message payload                           Done      sequence; detail: ReadStatus
//   Fenced  sequence: all before was taken    Fence     sequence: say when you are here
//   Ping, Pong                                Ping, Pong
//
// Sequences of reads rise; the data of one read come in the order of its pieces. A Done of Ok comes
// after exactly all of its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/transport.hpp"

namespace holdfast::real {

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::uint32_t kMaxDataBytes = 256 * 1024;
inline constexpr std::uint32_t kMaxPieces = 1024;

enum class FrameType : std::uint8_t {
  Hello = 1,
  Welcome,
  Refuse,
  Read,
  Cancel,
  Data,
  Done,
  Message,
  Ping,
  Pong,
  Fence,
  Fenced,
};

// Why a source does not take a connection.
enum class Refusal : std::uint8_t {
  WrongWorker = 1,   // another worker has this address now
  StaleInstance,     // the source was restarted since its address was published
  StaleIncarnation,  // a later incarnation of the reader has been here
};

// Who receives.
enum class Side { Source, Reader };

struct FrameHeader {
  FrameType type = FrameType::Ping;
  std::uint8_t detail = 0;
  std::uint32_t length = 0;  // of the payload
  std::uint64_t sequence = 0;
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

void append_header(const FrameHeader& header, std::vector<std::byte>& out);
// Nothing if no such frame goes to `receiver`.
[[nodiscard]] std::optional<FrameHeader> decode_header(
    std::span<const std::byte, kHeaderBytes> bytes, Side receiver);

struct Hello {
  WorkerId worker;  // who connects
  WorkerId target;  // who is expected
  std::uint64_t incarnation = 0;
  std::uint64_t nonce = 0;     // of the reader's session; comes back in the Welcome
  std::uint64_t instance = 0;  // of the source that is expected; zero: any
  friend bool operator==(const Hello&, const Hello&) = default;
};
void append_hello(const Hello& hello, std::vector<std::byte>& out);
[[nodiscard]] std::optional<Hello> decode_hello(std::span<const std::byte> payload);

struct Welcome {
  WorkerId worker;
  std::uint64_t incarnation = 0;
  std::uint64_t nonce = 0;
  std::uint64_t instance = 0;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
void append_welcome(const Welcome& welcome, std::vector<std::byte>& out);
[[nodiscard]] std::optional<Welcome> decode_welcome(std::span<const std::byte> payload);

// A read as its source sees it.
struct ReadCall {
  Access access;
  std::vector<Extent> extents;  // of the source's region
};
// `pieces` at most kMaxPieces.
void append_read(std::uint64_t sequence, const Access& access, std::span<const Piece> pieces,
                 std::vector<std::byte>& out);
// Nothing if it is not well-formed. Offsets are not checked here, but the lengths add up without
// overflow.
[[nodiscard]] std::optional<ReadCall> decode_read(std::span<const std::byte> payload);

// Takes a direction apart, frame by frame, from bytes that come in any portions. The payload of a
// Data frame is not collected here: its owner puts it where it belongs.
//
//   while (there are bytes) {
//     if (frames.data_left() != 0) { place n <= data_left() bytes; frames.placed(n); continue; }
//     copy up to frames.room().size() bytes there, then frames.filled(n);
//     if Got::Frame: look at header() and payload()
//   }
class FrameInput {
 public:
  enum class Got {
    More,    // nothing complete yet
    Frame,   // header() and payload() are complete; for Data: the payload begins
    Broken,  // garbage: close the connection
  };

  explicit FrameInput(Side receiver) : receiver_(receiver) {}

  // Where the next bytes of headers and collected payloads go; never empty unless data_left() != 0.
  // While it is not, the room is that of the next header.
  [[nodiscard]] std::span<std::byte> room();
  [[nodiscard]] Got filled(std::size_t bytes);

  [[nodiscard]] std::uint32_t data_left() const { return data_left_; }
  void placed(std::uint32_t bytes) { data_left_ -= bytes; }

  // Of the frame that was completed last.
  [[nodiscard]] const FrameHeader& header() const { return header_; }
  [[nodiscard]] std::span<const std::byte> payload() const { return payload_; }

 private:
  Side receiver_;
  std::array<std::byte, kHeaderBytes> head_{};
  std::size_t have_ = 0;     // of the header, or of the payload if in_payload_
  bool in_payload_ = false;  // collecting
  std::uint32_t data_left_ = 0;
  FrameHeader header_;
  std::vector<std::byte> payload_;
};

}  // namespace holdfast::real
