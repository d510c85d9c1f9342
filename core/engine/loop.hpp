// The one loop between an engine and the outside: wait, poll, step, post. Simulation and hardware
// use it alike; nothing else posts reads or decides anything.
//
//   WorkerLoop loop({engine, transport, memory, placement, region, grants, nonce, nullptr});
//   LoopEnd end = loop.run();  // an actor or a thread per worker
//
// `run` alternates `pump` (never blocks) and Transport::wait. A driver that interleaves many
// workers in one thread calls `pump` itself, whenever a worker has something to poll or its
// `next_deadline` has come.
//
// Connections: one Transport peer for each assignment, along the edge's path (so that an edge is
// one stream, and reads of different edges do not queue behind each other), and one for each child
// that is sent a message, along the edge's path turned around. They are opened when they are first
// needed and closed by the transport's destructor. Serving is passive: the transport of a worker
// must outlive the loops of those who read from it.
//
// A block larger than the peer's bytes_per_read, or in more pieces than pieces_per_read, takes
// several reads; the engine hears when the last is done. Where the transport has no room for the
// rest of a block, the rest waits here for the next completion.
#pragma once

#include <cstdint>
#include <functional>
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
  // What the source's Transport::allow(reader, ...) answered. Asked once for each assignment.
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
};

struct LoopStats {
  std::uint64_t reads = 0;    // posted
  std::uint64_t refused = 0;  // answered with WouldBlock
  std::uint64_t messages_sent = 0;
  Bytes bytes_read;  // as completions told, failed ones included
};

class WorkerLoop {
 public:
  explicit WorkerLoop(const LoopSetup& setup);

  // Polls, steps and posts until nothing more can be done now. Never blocks. False once the engine
  // has failed.
  bool pump();
  // When to pump again at the latest if nothing happens.
  [[nodiscard]] Time next_deadline() const { return next_; }

  // Runs until the engine fails (returns the failure) or `stop`, asked after each pump, says so. By
  // default: when everything assigned is complete and each child was told all of it. Where messages
  // get lost, a worker must stay for as long as children may ask: give a `stop` that knows.
  std::optional<EngineFailure> run(const std::function<bool(const WorkerEngine&)>& stop = {});

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
    std::uint32_t next_op = 0;  // the lower half of the next OpId
    bool in_use = false;
    bool rest_waits = false;  // some of it is not posted
    ReadStatus status = ReadStatus::Ok;
  };
  // Connection and permission of an assignment. Assignments with one parent and path share a
  // connection: its reads are then served in the order in which the blocks became known, and count
  // as one among the flows that share a link.
  struct Source {
    PeerId peer;
    Access access;
    std::uint32_t waiting = kNone;  // slot of the open block whose rest waits
    bool refusing = false;          // refused a read of this step: refuse what follows
  };
  struct Connection {
    WorkerId worker;
    PeerId peer;
  };

  void step(const EngineEvent& event);
  void step_once(const EngineEvent& event);
  void carry_out(const EngineCommand& command);
  void start_block(const ReadBlock& command);
  Posted post(std::uint32_t slot);
  void post_rests();
  void read_done(const ReadDone& done);
  void finish_if_done(std::uint32_t slot);
  void digest(const DigestBlock& command);
  void send(const SendMessage& message);
  Source& source_of(EdgeNumber edge);
  PeerId peer_of_parent(const SendMessage& message);
  PeerId peer_of_child(const SendMessage& message);
  void take(TransportEvent& event);

  LoopSetup setup_;
  Time next_;
  std::vector<Source> sources_;          // by edge number
  std::vector<Connection> connections_;  // to children, ascending by worker
  std::vector<OpenBlock> open_;          // by slot: the upper half of an OpId
  std::vector<std::uint32_t> free_;      // slots
  std::uint32_t rests_ = 0;              // sources with a waiting rest
  std::vector<EngineCommand> commands_;
  std::vector<PostRefused> refused_;
  std::vector<Extent> remote_;  // scratch
  std::vector<Extent> local_;
  std::vector<Piece> pieces_;
  std::vector<Piece> part_;
  std::optional<EngineFailure> failure_;
  LoopStats stats_;
};

// Makes a loop and runs it.
std::optional<EngineFailure> run_worker(const LoopSetup& setup,
                                        const std::function<bool(const WorkerEngine&)>& stop = {});

}  // namespace holdfast
