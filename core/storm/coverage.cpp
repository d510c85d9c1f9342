#include "core/storm/coverage.hpp"

namespace holdfast::storm {
namespace {

const char* state_of(const Agent& agent) {
  if (!agent.connected()) return "Lost";
  const auto holdings = agent.holdings();
  if (holdings.empty() || !holdings[0]) return "Empty";
  switch (holdings[0]->state) {
    case HoldingState::Published:
      return "Published";
    case HoldingState::Filling:
      return "Filling";
    case HoldingState::Complete:
      return "Complete";
    case HoldingState::Hidden:
      return "Hidden";
  }
  return "Empty";
}

}  // namespace

std::vector<std::string> coordinator_states() {
  return {"Rebuilding", "Idle", "Collecting", "Securing", "Clearing", "Waiting", "Filling"};
}

std::vector<std::string> coordinator_events() {
  return {"Hello",      "Heartbeat",    "Publish",     "AskUnpublish", "AskFetch",
          "AskCancel",  "AskWithdraw",  "AskRetain",   "AskRelease",   "AskInstalled",
          "AskLineage", "AskLeave",     "CallEnded",   "Cleared",      "ClearFailed",
          "Granted",    "GrantsGone",   "Progress",    "Filled",       "TransferStopped",
          "Switched",   "ParentWanted", "SourceIsSlow"};
}

std::vector<std::string> agent_states() {
  return {"Lost", "Empty", "Published", "Filling", "Complete", "Hidden"};
}

std::vector<std::string> agent_events() {
  return {"Call",      "Welcome",      "FencedOff", "UnknownSession", "Answer",     "Decided",
          "FetchDone", "GenerationIs", "Clear",     "Unhide",         "GrantReads", "EndReads",
          "Begin",     "Change",       "Stop",      "Tell",           "Note",       "LeaveNow"};
}

void Cells::add(const Cells& other) {
  for (const auto& [cell, count] : other.coordinator) coordinator[cell] += count;
  for (const auto& [cell, count] : other.agent) agent[cell] += count;
}

void Coverage::before_agent(const Stage& stage, const AgentSight& sight) {
  ++cells_.agent[{state_of(*stage.agent(sight.worker)), sight.event}];
}

void Coverage::after_coordinator(const Stage& stage, const CoordinatorSight& sight) {
  if (sight.zombie) return;
  if (sight.worker.valid()) {
    const GroupId group = world_.cards[sight.worker.index()].group;
    const auto before = phase_.find(group);
    const char* missing = "Idle";
    ++cells_.coordinator[{rebuilding_              ? "Rebuilding"
                          : before == phase_.end() ? missing
                                                   : before->second,
                          sight.event}];
  }
  rebuilding_ = stage.coordinator()->rebuilding();
  for (const Coordinator::GroupView& view : stage.coordinator()->groups()) {
    phase_[view.group] = view.phase;
  }
}

void Coverage::coordinator_started(const Stage& /*stage*/) {
  rebuilding_ = true;
  phase_.clear();
}

void Coverage::started(const Stage& /*stage*/, WorkerId /*worker*/) {}
void Coverage::died(const Stage& /*stage*/, WorkerId /*worker*/) {}
void Coverage::coordinator_died(const Stage& /*stage*/) {}
void Coverage::broke(const Stage& /*stage*/, const Fault& /*fault*/, const std::string& /*what*/) {}
void Coverage::call_made(const Stage& /*stage*/, const CallSight& /*call*/) {}
void Coverage::call_ended(const Stage& /*stage*/, const CallSight& /*call*/,
                          const CallResult& /*result*/) {}
void Coverage::wrote(const Stage& /*stage*/, WorkerId /*worker*/, SlotNumber /*slot*/,
                     const Content* /*content*/) {}
void Coverage::after_agent(const Stage& /*stage*/, const AgentSight& /*sight*/) {}
void Coverage::sent(const Stage& /*stage*/, WorkerId /*worker*/, const ToCoordinator& /*frame*/,
                    const Fate& /*fate*/) {}
void Coverage::sent(const Stage& /*stage*/, WorkerId /*worker*/, const ToWorker& /*frame*/,
                    const Fate& /*fate*/) {}
void Coverage::read(const Stage& /*stage*/, const ReadSight& /*sight*/) {}
void Coverage::calmed(const Stage& /*stage*/) {}
void Coverage::ended(const Stage& /*stage*/) {}

}  // namespace holdfast::storm
