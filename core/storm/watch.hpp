// How a run shows itself to those who judge it (oracle.hpp), tell it (story.hpp) and count what it
// reached (coverage.hpp). None of them knows on which network it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/catalog/coordinator.hpp"
#include "core/engine/read_sight.hpp"
#include "core/storm/control_network.hpp"
#include "core/storm/script.hpp"
#include "core/storm/world.hpp"

namespace holdfast::storm {

// The state of a run, to look at.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  [[nodiscard]] virtual const World& world() const = 0;
  [[nodiscard]] virtual Time now() const = 0;
  // Null while the worker is dead or was never started.
  [[nodiscard]] virtual const Agent* agent(WorkerId worker) const = 0;
  // The bytes of one of its buffers; empty: there is none.
  [[nodiscard]] virtual std::span<const std::byte> memory(WorkerId worker,
                                                          SlotNumber slot) const = 0;
  // The buffer that a region of the worker's transport is.
  [[nodiscard]] virtual SlotNumber slot_of(WorkerId worker, RegionId region) const = 0;
  // Null while it is down.
  [[nodiscard]] virtual const Coordinator* coordinator() const = 0;
  // Frames get through both ways between it and the coordinator.
  [[nodiscard]] virtual bool reachable(WorkerId worker) const = 0;
};

struct CallSight {
  WorkerId worker;
  CallId id = 0;
  const Call* call = nullptr;
  Time deadline;
};
// What an agent was given.
struct AgentSight {
  WorkerId worker;
  const char* event = "";  // kind of call or message, "Time", "Transfers"
  bool from_coordinator = false;
};
struct CoordinatorSight {
  const char* event = "";
  WorkerId worker;  // who caused it, if anybody
  std::span<const CoordinatorCommand> commands;
  bool zombie = false;
};

class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  virtual void started(const Stage& stage, WorkerId worker) = 0;
  // Before its agent is gone.
  virtual void died(const Stage& stage, WorkerId worker) = 0;
  virtual void coordinator_started(const Stage& stage) = 0;
  virtual void coordinator_died(const Stage& stage) = 0;
  virtual void broke(const Stage& stage, const Fault& fault, const std::string& what) = 0;
  virtual void call_made(const Stage& stage, const CallSight& call) = 0;
  virtual void call_ended(const Stage& stage, const CallSight& call, const CallResult& result) = 0;
  // The owner has written into its buffer: `content` of a version, or (null) anything.
  virtual void wrote(const Stage& stage, WorkerId worker, SlotNumber slot,
                     const Content* content) = 0;
  virtual void before_agent(const Stage& stage, const AgentSight& sight) = 0;
  virtual void after_agent(const Stage& stage, const AgentSight& sight) = 0;
  // Before its commands are carried out.
  virtual void after_coordinator(const Stage& stage, const CoordinatorSight& sight) = 0;
  virtual void sent(const Stage& stage, WorkerId worker, const ToCoordinator& frame,
                    const Fate& fate) = 0;
  virtual void sent(const Stage& stage, WorkerId worker, const ToWorker& frame,
                    const Fate& fate) = 0;
  virtual void read(const Stage& stage, const ReadSight& sight) = 0;
  // All faults are over, the network is whole.
  virtual void calmed(const Stage& stage) = 0;
  // Nothing more will be asked: everything must have come to rest.
  virtual void ended(const Stage& stage) = 0;
};

}  // namespace holdfast::storm
