#include "core/storm/life.hpp"

#include <utility>

#include "core/catalog/agent_loop.hpp"

namespace holdfast::storm {
namespace {

// Real buffers, poisoned before anything comes.
class Buffers final : public SlotRegions {
 public:
  explicit Buffers(Transport& transport) : transport_(transport) {}

  [[nodiscard]] RegionId region(SlotNumber slot) override { return regions_[slot]; }
  void allocate(SlotNumber slot, Bytes bytes) override {
    if (slot >= memory_.size()) {
      memory_.resize(slot + 1);
      regions_.resize(slot + 1);
    }
    constexpr std::byte kPoison{0x5a};
    memory_[slot] =
        std::make_unique<std::vector<std::byte>>(static_cast<std::size_t>(bytes.count()), kPoison);
    regions_[slot] = transport_.add_region(*memory_[slot], bytes);
  }
  // The transport may still name it: kept until the life ends.
  void release(SlotNumber slot) override { released_.push_back(std::move(memory_[slot])); }
  [[nodiscard]] std::string address(WorkerId /*worker*/) override { return {}; }

  [[nodiscard]] std::span<std::byte> memory(SlotNumber slot) const {
    if (slot >= memory_.size() || !memory_[slot]) return {};
    return *memory_[slot];
  }
  [[nodiscard]] SlotNumber slot_of(RegionId region) const {
    SlotNumber slot = 0;
    while (slot < regions_.size() && regions_[slot] != region) ++slot;
    return slot;
  }

 private:
  Transport& transport_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> released_;
  std::vector<RegionId> regions_;
};

class Line final : public ControlChannel {
 public:
  explicit Line(const LifeWays& ways) : ways_(ways) {}
  void send(ToCoordinator frame) override { ways_.send(frame); }

 private:
  const LifeWays& ways_;
};

class Ear final : public AgentObserver {
 public:
  explicit Ear(const LifeWays& ways) : ways_(ways) {}
  void call_finished(CallId id, const CallResult& result, Time /*now*/) override {
    ways_.finished(id, result);
  }
  void runs_changed(const std::optional<Version>& /*version*/, SlotNumber /*slot*/,
                    Time /*now*/) override {}
  void block_verified(const PlannedTransfer& /*transfer*/, BlockId /*block*/, WorkerId /*source*/,
                      Time /*now*/) override {}
  void transfer_failed(const PlannedTransfer& /*transfer*/, const EngineFailure& /*failure*/,
                       Time /*now*/) override {}

 private:
  const LifeWays& ways_;
};

}  // namespace

struct Life::Parts {
  Parts(const World& world, WorkerId worker, Incarnation incarnation, DataNetwork& network,
        LifeWays to)
      : ways(std::move(to)),
        line(ways),
        ear(ways),
        buffers(network.transport(worker)),
        placements(world.spaces),
        card(world.cards[worker.index()]),
        space(world.spaces[card.space.index()]),
        agent(worker, incarnation, card, space, world.agent),
        loop(setup(world, worker, network)) {}

  AgentSetup setup(const World& world, WorkerId worker, DataNetwork& network) {
    if (!card.host_memory) {
      for (SlotNumber slot = 0; slot < card.slots; ++slot) {
        buffers.allocate(slot, space->bytes(card.shard));
      }
    }
    return {agent,
            *space,
            card.space,
            network.transport(worker),
            network.memory(worker),
            placements,
            buffers,
            line,
            world.engine,
            &ear,
            true};
  }

  LifeWays ways;
  Line line;
  Ear ear;
  Buffers buffers;
  ShardPlacements placements;
  const WorkerCard& card;
  std::shared_ptr<const ModelSpace> space;
  Agent agent;
  AgentLoop loop;
};

Life::Life(const World& world, WorkerId worker, Incarnation incarnation, DataNetwork& network,
           LifeWays ways)
    : parts_(std::make_unique<Parts>(world, worker, incarnation, network, std::move(ways))) {}
Life::~Life() = default;

void Life::call(CallId id, const Call& call, Time deadline) {
  parts_->loop.call(id, call, deadline);
}
void Life::receive(const ToWorker& frame) {
  parts_->loop.receive(frame);
}
void Life::pump() {
  parts_->loop.pump();
}
Time Life::next_deadline() const {
  return parts_->loop.next_deadline();
}
const Agent& Life::agent() const {
  return parts_->agent;
}
std::span<std::byte> Life::memory(SlotNumber slot) {
  return parts_->buffers.memory(slot);
}
SlotNumber Life::slot_of(RegionId region) const {
  return parts_->buffers.slot_of(region);
}

}  // namespace holdfast::storm
