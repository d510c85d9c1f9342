// One life of a worker's process in the simulation: its agent, and the loop that carries out what
// the agent says over a SimNetwork. What it ends with is gone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/catalog/agent_loop.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {

// Where a life's words go. Called from inside its functions; must not call back.
struct LifeWays {
  std::function<void(ToCoordinator)> send;
  std::function<void(CallId, const CallResult&)> finished;
  std::function<void(const std::optional<Version>&)> runs;
  std::function<void(BlockId, WorkerId source)> delivered;
};

class WorkerLife final : private ControlChannel, private SlotRegions, private AgentObserver {
 public:
  // Network, space and placements must outlive it. The worker must be alive in the network; destroy
  // the life after it was killed there.
  WorkerLife(SimNetwork& network, WorkerId worker, Incarnation incarnation, const WorkerCard& card,
             const std::shared_ptr<const ModelSpace>& space, Placements& placements,
             const AgentConfig& config, const EngineConfig& engine, LifeWays ways);
  ~WorkerLife() override = default;

  [[nodiscard]] AgentLoop& loop() { return loop_; }
  [[nodiscard]] const Agent& agent() const { return agent_; }

 private:
  void send(ToCoordinator frame) override;
  RegionId region(SlotNumber slot) override;
  void allocate(SlotNumber slot, Bytes bytes) override;
  void release(SlotNumber slot) override;
  std::string address(WorkerId worker) override;
  void call_finished(CallId id, const CallResult& result, Time now) override;
  void runs_changed(const std::optional<Version>& version, SlotNumber slot, Time now) override;
  void block_verified(const PlannedTransfer& transfer, BlockId block, WorkerId source,
                      Time now) override;
  void transfer_failed(const PlannedTransfer& transfer, const EngineFailure& failure,
                       Time now) override;

  LifeWays ways_;
  Transport& transport_;
  std::vector<RegionId> regions_;  // by slot
  Agent agent_;
  AgentLoop loop_;
};

}  // namespace holdfast::sim
