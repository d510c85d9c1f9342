#include "sim/worker_life.hpp"

#include <utility>

namespace holdfast::sim {

WorkerLife::WorkerLife(SimNetwork& network, WorkerId worker, Incarnation incarnation,
                       const WorkerCard& card, const std::shared_ptr<const ModelSpace>& space,
                       Placements& placements, const AgentConfig& config,
                       const EngineConfig& engine, LifeWays ways)
    : ways_(std::move(ways)),
      transport_(network.transport(worker)),
      agent_(worker, incarnation, card, space, config),
      loop_({agent_, *space, card.space, transport_, network.memory(worker), placements, *this,
             *this, engine, this}) {
  if (card.host_memory) return;  // it allocates as it needs
  for (SlotNumber slot = 0; slot < card.slots; ++slot) allocate(slot, space->bytes(card.shard));
}

void WorkerLife::send(ToCoordinator frame) {
  ways_.send(std::move(frame));
}

RegionId WorkerLife::region(SlotNumber slot) {
  return regions_[slot];
}

void WorkerLife::allocate(SlotNumber slot, Bytes bytes) {
  if (regions_.size() <= slot) regions_.resize(slot + 1);
  regions_[slot] = transport_.add_region({}, bytes);
}

// Bytes are not real: a region that nobody uses costs nothing.
void WorkerLife::release(SlotNumber /*slot*/) {}

std::string WorkerLife::address(WorkerId /*worker*/) {
  return {};
}

void WorkerLife::call_finished(CallId id, const CallResult& result, Time /*now*/) {
  ways_.finished(id, result);
}

void WorkerLife::runs_changed(const std::optional<Version>& version, SlotNumber /*slot*/,
                              Time /*now*/) {
  ways_.runs(version);
}

void WorkerLife::block_verified(const PlannedTransfer& /*transfer*/, BlockId block, WorkerId source,
                                Time /*now*/) {
  ways_.delivered(block, source);
}

// Its fetch goes on until its deadline or the coordinator's word: nothing else to hear.
void WorkerLife::transfer_failed(const PlannedTransfer& /*transfer*/,
                                 const EngineFailure& /*failure*/, Time /*now*/) {}

}  // namespace holdfast::sim
