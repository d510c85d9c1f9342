// Who comes, goes and fails in a workload.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/workload_driver.hpp"

namespace holdfast::sim {

void WorkloadDriver::start(GroupId group) {
  Member& member = at(group);
  service_.start(group);
  member.started = true;
  member.leaving = false;
  member.runs.reset();
  member.attempts = 0;
  member.broken = !service_.running(group);
  if (member.broken) return;
  recorder_.present(group, service_.now());
  if (!is_trainer(group)) consider(group);
}

// Its calls end by themselves.
void WorkloadDriver::end(GroupId group) {
  Member& member = at(group);
  lose_rollouts(group);
  if (member.fetch) {
    close_update(member);
    member.fetch.reset();
    member.asked.reset();
  }
  member.runs.reset();
  member.leaving = false;
  member.holds = false;
  recorder_.gone(group, service_.now());
}

void WorkloadDriver::member_event(const MemberEvent& event) {
  const GroupId group = run_.seats[event.seat];
  Member& member = at(group);
  switch (event.kind) {
    case MemberEventKind::Join:
      return start(group);
    case MemberEventKind::Notice:
      return leave(group, event.gone);
    case MemberEventKind::Leave:
      return leave(group, Time::never());
    case MemberEventKind::Kill: {
      if (!member.started) return;  // it had left
      const std::uint32_t begun = member.slots ? member.slots->open() : 0;
      const char* before = member.leaving ? "before its leave was over" : "without a word";
      recorder_.taken(group, fmt::format("taken away {}; {} rollouts lost", before, begun),
                      service_.now());
      member.started = false;
      end(group);
      service_.kill(group);
      return look_for_end();
    }
  }
}

// What it had begun is lost with it; it stops when it is asked to go.
void WorkloadDriver::leave(GroupId group, Time gone) {
  Member& member = at(group);
  if (!there(member) || member.leaving) return;
  member.leaving = true;
  lose_rollouts(group);
  const Time now = service_.now();
  recorder_.go_on(group, StallPart::Rollout, now);
  recorder_.wait(group, StallPart::Offload, now);
  const Time deadline = std::min(gone, now + run_.retain_deadline);
  call(group, CallKind::Leave, {}, LeaveCall{}, deadline - now);
}

void WorkloadDriver::leave_ended(GroupId group, const CallResult& result) {
  Member& member = at(group);
  if (!member.started || !member.leaving) return;
  if (result.status != CallStatus::Ok) {
    recorder_.failed("leave", recorder_.name(group), to_string(result), service_.now());
    return;  // it stays until it is taken away
  }
  recorder_.taken(group, "left before it was taken away", service_.now());
  member.started = false;
  end(group);
  look_for_end();
}

// --- Faults --------------------------------------------------------------------------------------

void WorkloadDriver::schedule(const std::vector<FaultChange>& changes, Time from) {
  for (const FaultChange& change : changes) {
    service_.call_at(from + change.at, [this, &change] {
      if (!stopped_) apply(change);
    });
  }
}

void WorkloadDriver::apply(const FaultChange& change) {
  std::vector<GroupId> groups;
  for (const NodeId node : change.workers) {
    const std::uint32_t group = group_at_[node.index()];
    if (group < members_.size()) groups.emplace_back(group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  std::vector<GroupId> broken;
  if (change.step == FaultStep::Begin) {
    std::copy_if(groups.begin(), groups.end(), std::back_inserter(broken),
                 [this](GroupId group) { return there(at(group)); });
  }
  recorder_.fault(change, broken, service_.now());
  service_.apply(change);
  for (const GroupId group : groups) look_at_members(group);
  look_for_end();
}

// Rule 2.
void WorkloadDriver::look_at_members(GroupId group) {
  Member& member = at(group);
  if (!member.started) return;
  const bool whole = service_.running(group);
  if (whole == !member.broken) return;
  member.broken = !whole;
  if (member.broken) return end(group);
  recorder_.present(group, service_.now());
  member.attempts = 0;
  if (is_trainer(group)) {
    train_again();
  } else {
    consider(group);
  }
}

// Faults that wait for a share of an update's bytes.
void WorkloadDriver::strike(std::uint32_t number) {
  for (std::size_t f = 0; f < struck_.size(); ++f) {
    const FaultSchedule::Triggered& fault = run_.faults.triggered[f];
    if (struck_[f] != 0 || fault.when.update != number) continue;
    for (const auto& [version, update] : updates_) {
      __extension__ using Wide = unsigned __int128;
      if (update.number != number) continue;
      if (Wide{update.arrived} * 1'000'000 < Wide{update.wanted} * fault.when.share) continue;
      if (struck_[f] != 0) continue;
      struck_[f] = 1;
      // Not within a call of the service.
      schedule(fault.changes, service_.now());
    }
  }
}

}  // namespace holdfast::sim
