// Which state met which event: a table of (state x event) cells, to see what a fuzzer never tries.
//
// Of the coordinator: the phase of the group of the worker that spoke, and what it said. Of agents:
// what their first buffer held, and what they heard.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/storm/watch.hpp"

namespace holdfast::storm {

struct Cells {
  std::map<std::pair<std::string, std::string>, std::uint64_t> coordinator;  // phase, event
  std::map<std::pair<std::string, std::string>, std::uint64_t> agent;        // buffer, event
  void add(const Cells& other);
};

// Names of all rows and columns, reached or not.
[[nodiscard]] std::vector<std::string> coordinator_states();
[[nodiscard]] std::vector<std::string> coordinator_events();
[[nodiscard]] std::vector<std::string> agent_states();
[[nodiscard]] std::vector<std::string> agent_events();

class Coverage final : public Watcher {
 public:
  explicit Coverage(const World& world) : world_(world) {}

  [[nodiscard]] const Cells& cells() const { return cells_; }

  void started(const Stage& stage, WorkerId worker) override;
  void died(const Stage& stage, WorkerId worker) override;
  void coordinator_started(const Stage& stage) override;
  void coordinator_died(const Stage& stage) override;
  void broke(const Stage& stage, const Fault& fault, const std::string& what) override;
  void call_made(const Stage& stage, const CallSight& call) override;
  void call_ended(const Stage& stage, const CallSight& call, const CallResult& result) override;
  void wrote(const Stage& stage, WorkerId worker, SlotNumber slot, const Content* content) override;
  void before_agent(const Stage& stage, const AgentSight& sight) override;
  void after_agent(const Stage& stage, const AgentSight& sight) override;
  void after_coordinator(const Stage& stage, const CoordinatorSight& sight) override;
  void sent(const Stage& stage, WorkerId worker, const ToCoordinator& frame,
            const Fate& fate) override;
  void sent(const Stage& stage, WorkerId worker, const ToWorker& frame, const Fate& fate) override;
  void read(const Stage& stage, const ReadSight& sight) override;
  void calmed(const Stage& stage) override;
  void ended(const Stage& stage) override;

 private:
  const World& world_;
  Cells cells_;
  bool rebuilding_ = true;
  std::map<GroupId, std::string> phase_;  // before the coordinator's step
};

}  // namespace holdfast::storm
