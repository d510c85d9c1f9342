// Transport over TCP, on one machine or between several.
//
//   TcpTransport transport(WorkerId(3U), {});
//   publish(transport.address());            // "127.0.0.1:40123#9f..."
//   const RegionId region = transport.add_region(memory, Bytes(memory.size()));
//   const PeerId peer = transport.open({WorkerId(0U), {}, its_address}, session);
//
// Each `open` is a connection of its own, from the reader to the source: it carries reads, their
// bytes, and messages from the reader. What goes over it is in wire.hpp.
//
// Identity. An address ends in the instance of its transport, 64 random bits; a source that was
// restarted on the same port has another one and refuses who asks for its former self. A source
// refuses readers of an incarnation older than one it has seen, and cuts their connections when the
// newer one comes. Reads and messages wait until the source has been recognised. Nothing is
// authenticated or encrypted: who can connect can claim to be any worker (but has no tokens).
// Therefore only loopback addresses are listened on and connected to, unless the options say so.
//
// Access. `allow` draws 128 random bits for (reader, version, region); a read that does not show
// them on a connection of that reader ends with AccessDenied.
//
// Revoke. After Revoked neither the region nor the source's send buffers can give another byte to
// that reader and version. What was not yet handed to the kernel is dropped (a frame under way is
// filled up with zeros and its read fails). What was, is waited for: the source sends a fence, and
// the reader answers when it has taken in all that came before, so that no read of it succeeds any
// more. A reader that does not answer within `revoke` has its connection reset, which throws away
// what the kernel had not sent. What had left the machine before may still be taken in there.
//
// Sharing. A source sends to its readers in turn, one frame of at most 256 KiB each. With `rate`,
// all it sends stays below that.
//
// Loss. A peer is lost when its connection breaks, when it sends nothing for `silence` (both sides
// ask after half a `heartbeat` of quiet), or when it sends what it must not; `loss` says which. A
// worker must therefore call `poll` or `wait` more often than once a `silence`, or its peers take
// it for dead. Everything that waits has a deadline: connecting and recognising (`handshake`),
// reads (their own), revokes, peers.
//
// Reads go from the socket straight into their range. After a read has completed, what still comes
// for it is thrown away elsewhere. Errors of the system never throw once the transport is built.
// One thread uses it, and its WakeUp is the only part that others may touch.
#pragma once

#include <memory>

#include "core/engine/transport.hpp"
#include "real/region_table.hpp"
#include "real/wake_up.hpp"

namespace holdfast::real {

struct TcpOptions {
  std::string listen = "127.0.0.1:0";
  // Listen on and connect to addresses other than loopback, in the clear and with anyone.
  bool anywhere = false;
  std::uint64_t incarnation = 0;  // of this worker; rises with each start
  Time handshake = seconds(5);
  Time heartbeat = seconds(1);
  Time silence = seconds(5);
  Time revoke = seconds(1);
  // bytes_per_read: any; reads_in_flight: at most 4096; pieces_per_read: at most 1024. The same for
  // all workers: a source leaves a reader that has more reads in flight than it takes itself.
  PeerLimits limits{Bytes(std::uint64_t{1} << 30), 64, 256};
  Rate rate;                           // of all that is served together; zero: no limit
  std::uint32_t frame_bytes = 262144;  // of data; at most that
  std::uint32_t connections = 4096;    // accepted at a time; further ones are closed
};

// Why a peer is gone.
enum class PeerLoss {
  None,              // it is not
  Closed,            // by us
  BadAddress,        // not an address, or not a loopback one
  Unreachable,       // the connection was refused, or broke before the peer was recognised
  Reset,             // the connection broke
  Silent,            // nothing came for too long
  HandshakeTimeout,  // it did not say in time who it is
  BadFrame,          // it sent something that makes no sense
  WrongWorker,       // another worker has the address
  StaleInstance,     // the peer was restarted since the address was published
  StaleIncarnation,  // we were: a later incarnation of this worker has been there
};
[[nodiscard]] const char* to_string(PeerLoss loss);

class TcpTransport final : public Transport {
 public:
  // Listens at once. Throws Error(BadValue) for an address that may not be used or limits beyond
  // what is said above, Error(Unsupported) if the system refuses.
  explicit TcpTransport(WorkerId self, const TcpOptions& options = {});
  ~TcpTransport() override;

  // What to tell others: address, real port, instance.
  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] const RegionTable& regions() const;
  // Ends `wait` while it is raised; for this worker's Memory.
  [[nodiscard]] WakeUp& wake_up();
  // `wait` also returns while `descriptor` is readable (a control channel's, say). It must outlive
  // the transport or be unwatched. Throws Error(Unsupported) if the system refuses.
  void watch(int descriptor);
  void unwatch(int descriptor);
  [[nodiscard]] PeerLoss loss(PeerId peer) const;
  // Readers that are connected and recognised now.
  [[nodiscard]] std::size_t readers() const;

  RegionId add_region(std::span<std::byte> memory, Bytes size) override;
  PeerId open(const Endpoint& endpoint, std::uint64_t nonce) override;
  void close(PeerId peer) override;
  [[nodiscard]] PeerLimits limits(PeerId peer) const override;
  Access allow(WorkerId reader, Version version, RegionId region) override;
  void revoke(WorkerId reader, Version version) override;
  Posted read(const ReadRequest& request) override;
  void cancel(OpId id) override;
  bool send(PeerId peer, std::span<const std::byte> payload) override;
  std::size_t poll(std::span<TransportEvent> out) override;
  void wait(Time until) override;
  [[nodiscard]] Time now() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::real
