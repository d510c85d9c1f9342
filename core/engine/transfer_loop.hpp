// Carries out what one engine says: posts its reads, digests its blocks, sends its messages, and
// hands back what becomes of them. Decides nothing and never polls: whoever owns the worker's
// Transport and Memory polls them once and hands each event to the transfer that it belongs to. A
// worker that takes part in one transfer only has WorkerLoop (loop.hpp) do that.
//
// Several transfers of one worker, each with its engine, share Transport and Memory:
//
//   TransferLoop a({engine_a, transport, memory, ...}, 0);  // a slot of its own each
//   TransferLoop b({engine_b, transport, memory, ...}, 1);
//   for (;;) {
//     a.pump(), b.pump();                                   // after assign, drop, ... too
//     n = transport.poll(events);  for each: a.take(event) || b.take(event);
//     n = memory.poll(jobs);       for each: a.take(job) || b.take(job);
//     if (nothing came) transport.wait(min(a.next_deadline(), b.next_deadline()));
//   }
//
// Ids: the top 16 bits of an OpId and of a JobId are the slot (slot_of), so that an owner of many
// transfers may keep them in a table. Other jobs of the owner need a slot of their own. Messages
// are told apart by version and transfer (UpdateTables::transfer).
//
// Connections: one Transport peer for each assignment, along the edge's path (so that an edge is
// one stream, and reads of different edges do not queue behind each other; assignments with one
// parent and path share theirs), and one for each child that is sent a message, along the edge's
// path turned around. They are opened when they are first needed, closed when the last assignment
// has turned away from the parent or the transfer stops, and not shared between transfers.
//
// A block larger than the peer's bytes_per_read, or in more pieces than pieces_per_read, takes
// several reads; the engine hears when the last is done. Where the transport has no room for the
// rest of a block, the rest waits here for the next completion.
//
// End: `stop` cancels; once `idle` says that all reads and jobs are done (keep handing events on
// until then), the region's ranges are nobody's and the object may be destroyed. Without that it
// must outlive its Transport and Memory. One thread. O(1) an event beside the engine,
// O(assignments) for a new connection, a cancellation or a lost peer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/placement.hpp"
#include "core/engine/transport.hpp"
#include "core/engine/worker_engine.hpp"

namespace holdfast {

// Where the loop gets what came with the plan: permissions and addresses.
class Grants {
 public:
  Grants() = default;
  Grants(const Grants&) = delete;
  Grants& operator=(const Grants&) = delete;
  virtual ~Grants() = default;
  // What the source's Transport::allow(reader, ...) answered. Asked once for each connection, and
  // again after a read over it was denied.
  [[nodiscard]] virtual Access access(WorkerId reader, WorkerId source) = 0;
  // Endpoint::address of a worker; empty where the transport goes by worker and path.
  [[nodiscard]] virtual std::string address(WorkerId worker) = 0;
};

// Hears what happens, for traces and results. Must not call back into the loop.
class LoopObserver {
 public:
  LoopObserver() = default;
  LoopObserver(const LoopObserver&) = delete;
  LoopObserver& operator=(const LoopObserver&) = delete;
  virtual ~LoopObserver() = default;
  virtual void block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block,
                              Time now) = 0;
  virtual void completed(const WorkerEngine& engine, Time now) = 0;
  virtual void failed(const EngineFailure& failure, Time now) = 0;
};

// Hears how an engine fares with its sources: what a coordinator wants to know. Must not call back
// into the loop.
class SourceObserver {
 public:
  SourceObserver() = default;
  SourceObserver(const SourceObserver&) = delete;
  SourceObserver& operator=(const SourceObserver&) = delete;
  virtual ~SourceObserver() = default;
  virtual void reparented(const WorkerEngine& engine, const Reparented& what, Time now) = 0;
  virtual void parent_needed(const WorkerEngine& engine, const NeedParent& what, Time now) = 0;
  virtual void slow_source(const WorkerEngine& engine, const SlowSource& what, Time now) = 0;
  virtual void bad_digest(const WorkerEngine& engine, const BadDigest& what, Time now) = 0;
};

// All of it is borrowed and must outlive the loop.
struct LoopSetup {
  WorkerEngine& engine;
  Transport& transport;
  Memory& memory;
  const Placement& placement;
  RegionId region;  // where the worker's blocks lie, in `transport`
  Grants& grants;
  std::uint64_t nonce = 0;
  LoopObserver* observer = nullptr;
  SourceObserver* sources = nullptr;
};

struct LoopStats {
  std::uint64_t reads = 0;    // posted
  std::uint64_t refused = 0;  // answered with WouldBlock
  std::uint64_t messages_sent = 0;
  Bytes bytes_read;  // as completions told, failed ones included
};

class TransferLoop {
 public:
  explicit TransferLoop(const LoopSetup& setup, std::uint16_t slot = 0);

  // The slot of the transfer that chose an OpId or JobId.
  [[nodiscard]] static constexpr std::uint16_t slot_of(std::uint64_t id) {
    return static_cast<std::uint16_t>(id >> 48);
  }
  [[nodiscard]] std::uint16_t slot() const { return slot_; }

  // Steps the engine if it has been given something or its deadline has come. False once it has
  // failed: stop then.
  bool pump();
  // When to pump again at the latest if nothing happens.
  [[nodiscard]] Time next_deadline() const { return next_; }

  // True if the event was this transfer's. A message's payload is only read.
  bool take(const TransportEvent& event);
  bool take(const JobDone& job);
  // Somebody who knows says that the worker is gone: like the loss of a connection to it.
  void lose(WorkerId worker);

  // Steps the engine no more, cancels every open read, closes its peers when those are done.
  void stop();
  [[nodiscard]] bool stopped() const { return stopped_; }
  // No read is open: after `stop`, nothing writes to the region any more.
  [[nodiscard]] bool quiet() const { return open_blocks_ == 0; }
  // No read and no job is open.
  [[nodiscard]] bool idle() const { return open_blocks_ == 0 && jobs_ == 0; }

  [[nodiscard]] const std::optional<EngineFailure>& failure() const { return failure_; }
  [[nodiscard]] const LoopStats& stats() const { return stats_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  // Between tries to post the rest of a block while no completion comes.
  static constexpr Time kRestInterval = microseconds(100);

  // A block being read, maybe in several reads.
  struct OpenBlock {
    EdgeBlock at;
    BlockId block;
    Time deadline;
    std::uint64_t posted = 0;   // bytes
    std::uint32_t reads = 0;    // posted and not done
    std::uint32_t next_op = 0;  // the lowest part of the next OpId
    bool in_use = false;
    bool rest_waits = false;  // some of it is not posted
    ReadStatus status = ReadStatus::Ok;
  };
  // Connection and permission of an assignment.
  struct Source {
    PeerId peer;  // invalid: none yet, or lost
    WorkerId parent;
    Path path;
    Access access;
    std::uint32_t waiting = kNone;  // slot of the open block whose rest waits
    bool refusing = false;          // refused a read of this step: refuse what follows
    bool denied = false;            // ask for another permission
  };
  struct Connection {
    WorkerId worker;
    PeerId peer;
  };

  void step(const EngineEvent& event);
  void step_once(const EngineEvent& event);
  void carry_out(const EngineCommand& command);
  void observe(const EngineCommand& command);
  void start_block(const ReadBlock& command);
  Posted post(std::uint32_t open_slot);
  void post_rests();
  void read_done(const ReadDone& done);
  void peer_lost(const PeerLost& lost);
  void finish_if_done(std::uint32_t open_slot);
  void free_slot(std::uint32_t open_slot);
  void drop_rest(OpenBlock& open, ReadStatus status);
  void cancel(const CancelReads& command);
  void cancel_block(std::uint32_t open_slot);
  void digest(const DigestBlock& command);
  void send(const SendMessage& message);
  Source& source_of(EdgeNumber edge);
  void connect(EdgeNumber edge, WorkerId parent, const Path& path);
  void leave(EdgeNumber edge);
  void close_all();
  PeerId peer_of_child(const SendMessage& message);
  [[nodiscard]] bool owns(PeerId peer) const;

  LoopSetup setup_;
  std::uint16_t slot_;
  Time next_;
  std::vector<Source> sources_;          // by edge number
  std::vector<Connection> connections_;  // to children, ascending by worker
  std::vector<OpenBlock> open_;          // by open slot: the middle part of an OpId
  std::vector<std::uint32_t> free_;      // open slots
  std::uint32_t open_blocks_ = 0;
  std::uint64_t jobs_ = 0;
  std::uint32_t rests_ = 0;  // sources with a waiting rest
  bool stopped_ = false;
  std::vector<EngineCommand> commands_;
  std::vector<EngineEvent> at_once_;  // what carrying out a step's commands brought about
  std::vector<Extent> remote_;        // scratch
  std::vector<Extent> local_;
  std::vector<Piece> pieces_;
  std::vector<Piece> part_;
  std::optional<EngineFailure> failure_;
  LoopStats stats_;
};

}  // namespace holdfast
