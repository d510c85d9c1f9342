// One life of a worker's process: its buffers, its agent, and the loop that carries out what the
// agent says over the network of the run. What it ends with is gone.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/storm/data_network.hpp"

namespace holdfast::storm {

// Where a life's words go.
struct LifeWays {
  std::function<void(const ToCoordinator&)> send;
  std::function<void(CallId, const CallResult&)> finished;
};

class Life {
 public:
  Life(const World& world, WorkerId worker, Incarnation incarnation, DataNetwork& network,
       LifeWays ways);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void call(CallId id, const Call& call, Time deadline);
  void receive(const ToWorker& frame);
  // Takes what the transport has to tell and what is due.
  void pump();
  [[nodiscard]] Time next_deadline() const;

  [[nodiscard]] const Agent& agent() const;
  // Empty: there is no such buffer.
  [[nodiscard]] std::span<std::byte> memory(SlotNumber slot);
  [[nodiscard]] SlotNumber slot_of(RegionId region) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast::storm
