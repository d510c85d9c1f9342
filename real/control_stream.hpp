// The framing of the control channel on one socket. Internal to real.
//
// A frame is a header of 8 bytes (length of the payload u32, type u32; little-endian) and the
// payload. Only Payload frames may have up to 4 MiB; anything else that is not as it must be breaks
// the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "real/socket.hpp"

namespace holdfast::real {

inline constexpr std::size_t kMaxControl = std::size_t{4} << 20;

struct ControlHello {
  WorkerId worker;
  std::uint64_t incarnation = 0;
};

class ControlStream {
 public:
  enum class Type : std::uint32_t { Hello = 1, Welcome, Payload, Ping, Pong };
  struct Frame {
    Type type = Type::Ping;
    std::span<const std::byte> payload;  // until the next call
  };
  enum class State { Good, Broken };

  // The socket is connecting or connected, and not blocking.
  explicit ControlStream(Descriptor socket);

  [[nodiscard]] int descriptor() const { return socket_.get(); }

  void add(Type type, std::span<const std::byte> payload);
  void add_hello(const ControlHello& hello);
  [[nodiscard]] static std::optional<ControlHello> decode_hello(std::span<const std::byte> payload);
  [[nodiscard]] std::size_t waiting() const { return output_.size() - sent_; }
  // Sends what it can.
  State flush();

  // One system call; what came is then taken by next_frame.
  State receive(Time now);
  // The next whole frame; nothing: more must come, or broken().
  std::optional<Frame> next_frame();
  [[nodiscard]] bool broken() const { return broken_; }

  // Asks if it has been quiet for half a heartbeat. Broken after `silence`, or if it is not
  // recognised within `handshake` from its beginning.
  State check_pulse(Time now, Time heartbeat, Time silence, Time handshake, bool recognised);

 private:
  Descriptor socket_;
  std::vector<std::byte> input_;
  std::size_t taken_ = 0;  // of input_
  std::vector<std::byte> output_;
  std::size_t sent_ = 0;  // of output_
  bool broken_ = false;
  bool pinged_ = false;
  Time opened_;
  Time heard_;
};

}  // namespace holdfast::real
