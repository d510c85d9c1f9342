// The narrow interface through which an engine reaches other workers. Implemented by SimGrid, by
// the in-process virtual network, and later by verbs, TCP and shared memory; one contract suite
// (tests/engine/transport_contract.hpp) runs on all of them.
//
// Contract
//   1. One calling thread. Nothing throws, nothing calls back; what happens is told by `poll`.
//   2. `wait` is the only call that may block.
//   3. Each read that was Posted completes exactly once, with ReadDone; a read that was refused
//      (WouldBlock, PeerGone) never does.
//   4. Status Ok means: all bytes are there and visible to the memory that will verify them. Only a
//      positive completion is Ok; anything else leaves the local range in an unknown state.
//   5. After ReadDone, whatever its status, the transport never touches the local range again.
//   6. A local range has at most one read at a time: the caller's duty.
//   7. Reads of one peer complete in the order they were posted, unless they fail.
//   8. Messages may be lost, doubled and reordered; a transport says what it really does.
//   9. A read that is not done at its deadline completes with DeadlineExceeded.
//  10. After `close`, or once PeerLost was reported, each open read of that peer still completes
//      (Cancelled or PeerGone), and no later event names that peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/topology/router.hpp"
#include "core/units.hpp"

namespace holdfast {

using PeerId = Id<struct PeerTag>;      // one connection, chosen by the transport
using RegionId = Id<struct RegionTag>;  // registered local memory

// Chosen by the caller; unique among its open reads.
using OpId = std::uint64_t;

// Whom to connect to and how. `address` is for transports over real networks; simulation and the
// virtual network go by worker and path.
struct Endpoint {
  WorkerId worker;
  Path path;  // from the other worker's port to ours: the way the data comes
  std::string address;
};

// Permission to read one region of one version: key and token, opaque to everyone but the
// transport that issued it. Travels in the grant.
struct Access {
  static constexpr std::size_t kCapacity = 64;
  std::array<std::byte, kCapacity> bytes{};
  std::uint8_t size = 0;
};

// `bytes` from `remote_offset` of the source's region to `local_offset` of ours.
struct Piece {
  std::uint64_t remote_offset = 0;
  std::uint64_t local_offset = 0;
  std::uint64_t bytes = 0;
};

struct ReadRequest {
  OpId id = 0;
  PeerId peer;
  Access access;
  RegionId region;                // local
  std::span<const Piece> pieces;  // only needed during the call
  Time deadline = Time::never();  // absolute
};

enum class Posted { Posted, WouldBlock, PeerGone };

enum class ReadStatus {
  Ok,
  DeadlineExceeded,
  Cancelled,     // by `cancel` or `close`
  PeerGone,      // the source died or is out of reach
  AccessDenied,  // no such permission, or revoked
  OutOfRange,    // a piece lies outside the local or the remote region
};
[[nodiscard]] const char* to_string(ReadStatus status);

struct ReadDone {
  OpId id = 0;
  ReadStatus status = ReadStatus::Ok;
  Bytes bytes;  // moved, also by a read that failed (an upper limit where it is not known)
};
struct MessageReceived {
  WorkerId from;
  std::vector<std::byte> payload;
};
// No further byte can leave for that reader and version.
struct Revoked {
  WorkerId reader;
  Version version;
};
struct PeerLost {
  PeerId peer;
  WorkerId worker;
};
using TransportEvent = std::variant<ReadDone, MessageReceived, Revoked, PeerLost>;

struct PeerLimits {
  Bytes bytes_per_read;           // a larger one must be split by the caller
  std::uint32_t reads_in_flight;  // further ones are WouldBlock
  std::uint32_t pieces_per_read;
};

class Transport {
 public:
  static constexpr std::size_t kMaxMessage = 4096;

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  // Bounded: closes everything; open reads are forgotten, never completed later.
  virtual ~Transport() = default;

  // Makes local memory available to `read` and `allow`. `memory` may be empty in simulation, where
  // only its size counts; elsewhere it must outlive the transport and be `size` long.
  virtual RegionId add_region(std::span<std::byte> memory, Bytes size) = 0;

  // Starts to connect; returns at once. A failure comes as PeerLost. `nonce` differs for each
  // session of a worker, so that an endpoint that restarted is not taken for its earlier self.
  virtual PeerId open(const Endpoint& endpoint, std::uint64_t nonce) = 0;
  virtual void close(PeerId peer) = 0;
  [[nodiscard]] virtual PeerLimits limits(PeerId peer) const = 0;

  // Lets `reader` read `region` as `version` until revoked.
  virtual Access allow(WorkerId reader, Version version, RegionId region) = 0;
  // Completes with Revoked when no further byte can leave.
  virtual void revoke(WorkerId reader, Version version) = 0;

  virtual Posted read(const ReadRequest& request) = 0;
  // The read still completes, with Cancelled unless it was already done.
  virtual void cancel(OpId id) = 0;

  // At most kMaxMessage bytes. False if the peer is gone; true promises nothing.
  virtual bool send(PeerId peer, std::span<const std::byte> payload) = 0;

  // Moves up to out.size() events, oldest first; returns how many. Never blocks.
  virtual std::size_t poll(std::span<TransportEvent> out) = 0;
  // Returns when an event is there to poll, when a job of this worker's Memory has completed, or at
  // `until`, whichever is first.
  virtual void wait(Time until) = 0;
  [[nodiscard]] virtual Time now() const = 0;
};

}  // namespace holdfast
