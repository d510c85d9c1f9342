// The way between the coordinator's process and those of its workers: opaque messages of at most
// 4 MiB, one connection a worker.
//
// Length-prefixed frames over the sockets of real, not gRPC: its libraries come without thread
// sanitizer instrumentation, its threads do not go with fork, and of what it offers only the
// framing would be used here.
//
//   coordinator:  ControlServer server({});                     worker:  ControlClient client(
//                 server.wait(next_deadline);                               self, incarnation,
//                 address, {}); for (n = server.poll(events)) ... client.send(payload);
//                 server.send(worker, payload); transport.watch(client.descriptor());
//
// Promises. Messages of one connection arrive in order, each once, or not at all: what was under
// way when a connection breaks is lost, which Disconnected tells on both sides. So a message may be
// lost, and the protocol above repairs it. Nothing is sent while there is no connection.
//
// Connections. A client connects anew by itself, after a pause that doubles from `retry` to
// `retry_most`; if it has not been connected for `give_up`, it says Unreachable (again after each
// such time) and goes on trying. Both sides ask after half a `heartbeat` of quiet and take a
// connection from which nothing came for `silence` for broken. A new connection of a worker
// replaces its former one, unless it is of an earlier incarnation, which is refused.
//
// Nothing is encrypted or authenticated: loopback only, unless `anywhere`.
//
// Each object belongs to one thread, which alone waits, polls and sends; `wake_up` ends a server's
// wait from any other (a planner that has finished). Errors of the system never throw once it is
// built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "real/control_stream.hpp"
#include "real/wake_up.hpp"

namespace holdfast::real {

struct ControlOptions {
  std::string listen = "127.0.0.1:0";  // of a server
  bool anywhere = false;
  Time handshake = seconds(5);
  Time heartbeat = seconds(1);
  Time silence = seconds(5);
  Time retry = milliseconds(20);
  Time retry_most = seconds(1);
  Time give_up = seconds(30);
  std::uint32_t connections = 20'000;              // at a server
  Bytes waiting = Bytes(std::uint64_t{64} << 20);  // unsent for one peer; more is refused
};

struct ControlEvent {
  enum class Kind { Connected, Message, Disconnected, Unreachable };
  Kind kind = Kind::Message;
  WorkerId worker;                // whose connection
  std::uint64_t incarnation = 0;  // of the worker
  std::vector<std::byte> payload;
};

class ControlServer {
 public:
  // Listens at once. Throws Error(BadValue) for an address that may not be used, Error(Unsupported)
  // if the system refuses.
  explicit ControlServer(const ControlOptions& options);
  ~ControlServer();

  // With the real port.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] WakeUp& wake_up() { return wake_; }
  // False if the worker is not connected, or does not take what it is sent, or the payload is
  // larger than kMaxControl.
  bool send(WorkerId worker, std::span<const std::byte> payload);
  // Breaks a worker's connection; Disconnected follows.
  void disconnect(WorkerId worker);
  [[nodiscard]] bool connected(WorkerId worker) const;

  // Moves up to out.size() events, oldest first; returns how many. Never blocks.
  std::size_t poll(std::span<ControlEvent> out);
  // Returns when there is an event to poll, when `wake_up` was raised (which lowers it), or at
  // `until`.
  void wait(Time until);

 private:
  struct Connection;
  void progress(Time until);
  void accept_all();
  void receive(std::uint32_t number);
  bool take(std::uint32_t number, ControlStream::Type type, std::span<const std::byte> payload);
  bool greet(std::uint32_t number, std::span<const std::byte> payload);
  void drop(std::uint32_t number);
  void check_pulses();

  ControlOptions options_;
  Descriptor listener_;
  std::string address_;
  WakeUp wake_;
  Descriptor epoll_;
  bool listening_ = true;
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::uint32_t, std::uint32_t> workers_;       // their connections
  std::unordered_map<std::uint32_t, std::uint64_t> incarnations_;  // the largest seen, by worker
  std::deque<ControlEvent> events_;
  Time next_pulse_;
};

class ControlClient {
 public:
  // Begins to connect. `address` as ControlServer::address. Throws Error(BadValue) for one that may
  // not be used, Error(Unsupported) if the system refuses.
  ControlClient(WorkerId self, std::uint64_t incarnation, const std::string& address,
                const ControlOptions& options);
  ~ControlClient();

  [[nodiscard]] bool connected() const { return recognised_; }
  // False while there is no connection, if too much waits, or if the payload is too large.
  bool send(std::span<const std::byte> payload);

  // As ControlServer.
  std::size_t poll(std::span<ControlEvent> out);
  void wait(Time until);
  // To wait for more than this: readable when `poll` has something to do; and poll at `next_time`.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  [[nodiscard]] Time next_time() const;

 private:
  void progress(Time until);
  void connect();
  void receive();
  bool take(ControlStream::Type type, std::span<const std::byte> payload);
  void lose();
  void flush();

  WorkerId self_;
  std::uint64_t incarnation_;
  SocketAddress address_;
  ControlOptions options_;
  Descriptor epoll_;
  std::unique_ptr<ControlStream> stream_;  // null between two tries
  bool recognised_ = false;
  Time pause_;
  Time next_try_;
  Time next_pulse_;
  Time give_up_at_;
  std::deque<ControlEvent> events_;
};

}  // namespace holdfast::real
