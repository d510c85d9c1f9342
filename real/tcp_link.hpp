// One connection of a TcpTransport: its socket, what waits to be sent, what is being received.
// Internal to real.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "real/descriptor.hpp"
#include "real/socket.hpp"
#include "real/tcp_transport.hpp"
#include "real/wire.hpp"

namespace holdfast::real {

// Who an epoll event is for.
enum class LinkKind : std::uint8_t { Listener, WakeUp, Watched, Peer, Accepted };

// What all parts of one transport share.
struct TcpCore {
  TcpCore(WorkerId worker, const TcpOptions& given);

  // Throws Error(Unsupported) on failure if `must`, else returns false.
  bool watch(int descriptor, LinkKind kind, std::uint32_t number, bool must);
  void tell(TransportEvent event) { inbox.push_back(std::move(event)); }
  // 64 random bits from the system.
  [[nodiscard]] static std::uint64_t random();

  WorkerId self;
  TcpOptions options;
  std::uint64_t instance = 0;
  RegionTable regions;
  Descriptor epoll;
  std::deque<TransportEvent> inbox;
  std::vector<std::byte> scratch;  // for input that has no other place
};

class Link {
 public:
  Link(TcpCore& core, Descriptor socket, LinkKind kind, std::uint32_t number);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  // Closes; what the kernel was given still goes out.
  ~Link() { forget(); }

  // Whether epoll took the socket.
  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  // Closes and throws away what the kernel has not sent.
  void reset() {
    forget();
    cut(socket_);
  }

  // Frames that go out after the payload under way; append whole ones.
  [[nodiscard]] std::vector<std::byte>& out() { return next_; }
  // Nothing but payload is under way or waits.
  [[nodiscard]] bool drained() const { return sent_ == staged_.size() && next_.empty(); }
  [[nodiscard]] bool staged_done() const { return sent_ == staged_.size(); }
  // Bytes of frames that wait: whoever makes us answer must also take the answers.
  [[nodiscard]] bool overfull() const { return staged_.size() + next_.size() > kMostWaiting; }
  // Takes what `out` has collected as what is sent next. staged_done() must hold.
  void stage();
  // What is sent before the payload; to append to before it begins.
  [[nodiscard]] std::vector<std::byte>& staged() { return staged_; }

  enum class Result { Done, Blocked, Failed };
  struct Sent {
    Result result = Result::Done;
    std::uint64_t payload = 0;  // bytes of it that are gone
  };
  // Sends what is staged and then the payload, as much as the kernel takes. Done: all of it.
  Sent send(std::span<const iovec> payload);

  // Epoll interests.
  void want_output(bool on) { want(reading_, on); }
  void want_input(bool on) { want(on, writing_); }
  [[nodiscard]] bool wants_input() const { return reading_; }

  FrameInput& input() { return input_; }
  Time opened;
  Time heard;  // the last byte
  bool pinged = false;
  bool in_turn = false;

 private:
  static constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
  void want(bool input, bool output);
  // Epoll goes by the open file, which a forked child may keep open.
  void forget();

  TcpCore& core_;
  Descriptor socket_;
  FrameInput input_;
  std::uint64_t tag_ = 0;
  bool valid_ = false;
  bool reading_ = true;
  bool writing_ = false;
  std::vector<std::byte> staged_;
  std::size_t sent_ = 0;  // of staged_
  std::vector<std::byte> next_;
};

// What epoll gives back.
[[nodiscard]] constexpr std::uint64_t link_tag(LinkKind kind, std::uint32_t number) {
  return (std::uint64_t{static_cast<std::uint8_t>(kind)} << 32U) | number;
}

// Heartbeats of one link: asks after half a heartbeat of quiet. Returns what is wrong, or None.
[[nodiscard]] PeerLoss check_pulse(Link& link, const TcpOptions& options, bool recognised,
                                   Time now);

}  // namespace holdfast::real
