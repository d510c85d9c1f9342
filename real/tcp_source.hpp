// The half of a TcpTransport that serves: permissions, accepted connections, revokes. Internal to
// real.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "real/tcp_link.hpp"

namespace holdfast::real {

class TcpSource {
 public:
  TcpSource(TcpCore& core, Descriptor listener);

  [[nodiscard]] std::string listening_address() const {
    return to_string(bound_address(listener_));
  }
  Access allow(WorkerId reader, Version version, RegionId region);
  void revoke(WorkerId reader, Version version, Time now);

  // The listener is readable.
  void accept_all();
  // A socket is readable or writable; unknown numbers are of connections that are gone.
  void ready(std::uint32_t number, bool input, bool output, Time now);
  // Sends to each connection that waits at most one frame.
  void send_round(Time now);
  // Something could be sent at once.
  [[nodiscard]] bool busy(Time now) const { return !turns_.empty() && !paced(now); }
  // When to call `send_round` or `on_time` again if nothing else happens.
  [[nodiscard]] Time next_time() const;
  // Deadlines of revokes.
  void on_time(Time now);
  // Heartbeats; accepts again if the system had no descriptors left.
  void check_pulses(Time now);
  [[nodiscard]] std::size_t readers() const;

 private:
  using Token = std::array<std::byte, 16>;
  struct Grant {
    WorkerId reader;
    Version version;
    RegionId region;
    Token token{};
  };
  // A read that waits or is being served.
  struct Call {
    std::uint64_t sequence = 0;
    std::uint64_t grant = 0;
    RegionId region;
    std::vector<Extent> extents;
    std::size_t extent = 0;     // the next byte: this extent ...
    std::uint64_t within = 0;   // ... and this offset in it
    std::uint64_t not_yet = 0;  // bytes that no frame has taken
  };
  struct Connection {
    Connection(TcpCore& core, Descriptor socket, std::uint32_t number)
        : link(core, std::move(socket), LinkKind::Accepted, number) {}
    Link link;
    Hello hello;
    bool recognised = false;
    bool refused = false;  // closes once it is drained
    std::deque<Call> calls;
    std::uint32_t frame_left = 0;  // of the frame under way
    bool frame_void = false;       // its read has failed: filled up with zeros
    std::uint64_t fence = 0;       // sequence of the last one sent
  };
  struct Revoke {
    Revoked event;
    Time deadline;
    std::set<std::pair<std::uint32_t, std::uint64_t>> fences;  // connection and sequence
  };
  enum class Turn { Idle, More, Paced, Blocked, Broken, Finished };

  void feed(std::uint32_t number, Time now);
  bool take(std::uint32_t number);
  bool greet(std::uint32_t number);
  void refuse(Connection& connection, Refusal why);
  bool take_read(Connection& connection);
  void take_cancel(Connection& connection, std::uint64_t sequence);
  void take_fenced(std::uint32_t number, std::uint64_t sequence);
  [[nodiscard]] ReadStatus admit(const Connection& connection, const ReadCall& call,
                                 std::uint64_t& grant) const;
  // The call is out of the queue with that status.
  void end_call(Connection& connection, std::size_t at, ReadStatus status);
  Turn serve(Connection& connection, Time now);
  bool start_frame(Connection& connection, Time now);
  void gather(const Connection& connection, std::vector<iovec>& out) const;
  void sent_payload(Connection& connection, std::uint64_t bytes);
  void want_turn(std::uint32_t number, Connection& connection);
  void drop(std::uint32_t number);
  void finish_revokes();
  [[nodiscard]] bool paced(Time now) const { return core_.options.rate > Rate{} && pace_ > now; }

  TcpCore& core_;
  Descriptor listener_;
  bool listening_ = true;
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::uint32_t, std::uint64_t> incarnations_;  // the largest seen, by worker
  std::unordered_map<std::uint64_t, Grant> grants_;
  std::uint64_t next_grant_ = 0;
  std::vector<Revoke> revokes_;
  std::deque<std::uint32_t> turns_;  // connections that have something to send
  Time pace_;                        // when the next frame may begin
  std::vector<iovec> vectors_;       // scratch
  std::vector<std::byte> zeros_;
};

}  // namespace holdfast::real
