// The one loop between an agent and the outside: polls the worker's Transport and Memory once,
// hands each event to the transfer it belongs to, steps the agent, carries its commands out.
// Simulation (one event handler a worker) and real threads use it alike; nothing else posts reads
// or lets readers in.
//
//   AgentLoop loop({agent, transport, memory, placements, slots, control, engine, observer});
//   loop.pump();                       // to begin with
//   for (;;) {                         // one thread a worker; or pump from an event handler
//     transport.wait(loop.next_deadline());
//     loop.pump();
//   }
//
// From outside come frames of the coordinator (`receive`) and the user's calls (`call`), in the
// same thread. Nothing blocks.
//
// A transfer in which this worker reads has an engine and a TransferLoop, until the agent stops it
// and its last read is done. A worker that holds blocks of a version and is given children which
// the plan's tables do not name has no engine in that transfer: HaveTeller tells them.
//
// A parent may say what it has before the coordinator's word to begin has reached its child: such
// messages are kept for a second, a few of them, until the transfer begins.
//
// Destroy it after Transport and Memory, or when `idle`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/catalog/have_teller.hpp"
#include "core/catalog/shard_placement.hpp"
#include "core/engine/transfer_loop.hpp"

namespace holdfast {

// The way to the coordinator. May lose, double, delay and reorder; must not call back.
class ControlChannel {
 public:
  ControlChannel() = default;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;
  virtual ~ControlChannel() = default;
  virtual void send(ToCoordinator frame) = 0;
};

// The worker's buffers as regions of its transport.
class SlotRegions {
 public:
  SlotRegions() = default;
  SlotRegions(const SlotRegions&) = delete;
  SlotRegions& operator=(const SlotRegions&) = delete;
  virtual ~SlotRegions() = default;
  // Of a slot that is there from the start, or was allocated.
  [[nodiscard]] virtual RegionId region(SlotNumber slot) = 0;
  // Host memory: a new buffer of that size. What is never written need not be there.
  virtual void allocate(SlotNumber slot, Bytes bytes) = 0;
  // Nobody reads or writes it any more.
  virtual void release(SlotNumber slot) = 0;
  // Endpoint::address of a worker; empty where the transport goes by worker and path.
  [[nodiscard]] virtual std::string address(WorkerId worker) = 0;
};

// Hears what the user would. Must not call back.
class AgentObserver {
 public:
  AgentObserver() = default;
  AgentObserver(const AgentObserver&) = delete;
  AgentObserver& operator=(const AgentObserver&) = delete;
  virtual ~AgentObserver() = default;
  virtual void call_finished(CallId id, const CallResult& result, Time now) = 0;
  virtual void runs_changed(const std::optional<Version>& version, SlotNumber slot, Time now) = 0;
  virtual void block_verified(const PlannedTransfer& transfer, BlockId block, WorkerId source,
                              Time now) = 0;
  // An engine gave up; its fetch goes on until its deadline or the coordinator's word.
  virtual void transfer_failed(const PlannedTransfer& transfer, const EngineFailure& failure,
                               Time now) = 0;
};

// All of it is borrowed and must outlive the loop.
struct AgentSetup {
  Agent& agent;
  const ModelSpace& space;  // the agent's
  SpaceId space_id;
  Transport& transport;
  Memory& memory;
  Placements& placements;
  SlotRegions& slots;
  ControlChannel& control;
  EngineConfig engine;
  AgentObserver* observer = nullptr;
  bool verify = true;  // false: what is published has digests of zero, which nobody checks
};

class AgentLoop {
 public:
  explicit AgentLoop(const AgentSetup& setup);
  ~AgentLoop();
  AgentLoop(const AgentLoop&) = delete;
  AgentLoop& operator=(const AgentLoop&) = delete;

  // Polls, steps and posts until nothing more can be done now. Never blocks.
  void pump();
  // When to pump again at the latest if nothing happens.
  [[nodiscard]] Time next_deadline() const;

  void call(CallId id, const Call& call, Time deadline);
  void receive(const ToWorker& frame);
  // Ends everything: see Agent::shutdown. Pump on until `idle`.
  void shutdown();
  // After shutdown or leaving: nothing is read, nobody reads.
  [[nodiscard]] bool idle() const;

  // Transfers with an engine.
  [[nodiscard]] std::size_t transfers() const { return transfers_.size(); }
  // Of this worker's engines, those of transfers that are over included.
  [[nodiscard]] const LoopStats& stats() const { return stats_; }

 private:
  class Transfer;
  // Of DigestSlot: jobs of no transfer.
  struct Digesting {
    SlotNumber slot = 0;
    ShardId shard;
    std::uint32_t posted = 0;
    std::uint32_t done = 0;
    std::shared_ptr<std::vector<std::uint64_t>> digests;
  };
  struct EarlyMessage {
    Time at;
    MessageReceived message;
  };
  static constexpr std::size_t kMostEarly = 16;
  static constexpr Time kEarly = seconds(1);
  static constexpr std::uint16_t kOwnJobs = 0xffff;  // never a transfer's slot
  static constexpr std::uint32_t kOpenDigests = 64;

  void post(AgentEvent event) { events_.push_back(std::move(event)); }
  void settle();
  void pump_transfers();
  void take(const TransportEvent& event);
  void take(const JobDone& job);
  void take_message(const MessageReceived& message);
  void take_digest(const JobDone& job);
  void post_digests(Digesting& digesting);
  void carry_out(const AgentCommand& command);
  void on(const SendToCoordinator& command);
  void on(const FinishCall& command);
  void on(const DigestSlot& command);
  void on(const AllowReader& command);
  void on(const RevokeReader& command);
  void on(const StartTransfer& command);
  void on(const ChangeTransfer& command);
  void on(const AddChildren& command);
  void on(const StopTransfer& command);
  void on(const AllocateSlot& command);
  void on(const FreeSlot& command);
  void on(const Runs& command);
  Transfer* find(PlanNumber plan);
  std::uint16_t free_slot();
  [[nodiscard]] EngineConfig engine_config() const;

  AgentSetup setup_;
  Time next_;  // of the agent
  std::deque<AgentEvent> events_;
  std::vector<AgentCommand> commands_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<Digesting> digesting_;
  HaveTeller teller_;
  std::deque<EarlyMessage> early_;  // of transfers that are not here, oldest first
  std::uint16_t last_slot_ = kOwnJobs;
  // Of the next transfer: where the last ones, which got not everything, had arrived.
  std::optional<Time> read_deadline_;
  std::vector<Extent> extents_;  // scratch
  LoopStats stats_;
};

}  // namespace holdfast
