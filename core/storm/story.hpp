// What happened in a run, in words and in the order of time: who asked, what was decided, granted
// and read, who died, which message was lost.
//
//   12.345678 ms  worker 3 asks: fetch the latest, in place, until 2.01 s
//   12.401 ms     lost: Granted from worker 1
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/storm/watch.hpp"

namespace holdfast::storm {

class Story final : public Watcher {
 public:
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

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
  void say(const Stage& stage, const std::string& what);

  std::vector<std::string> lines_;
};

// "fetch the latest, in place", "publish 0.3".
[[nodiscard]] std::string describe(const Call& call);
[[nodiscard]] std::string describe(const WorkerMessage& message);
[[nodiscard]] std::string describe(const CoordinatorMessage& message);
// Who takes part and how, before the first line.
[[nodiscard]] std::vector<std::string> describe(const World& world);

}  // namespace holdfast::storm
