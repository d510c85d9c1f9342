#include <algorithm>

#include "core/catalog/coordinator_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {

Coordinator::State::ClearJob* Coordinator::State::clear_of(WorkerId worker, VersionKey key) {
  for (ClearJob& job : clears[worker.index()]) {
    if (job.version == key) return &job;
  }
  return nullptr;
}

// Hides a version at a worker and waits for its readers, as soon as what is retained stays safe.
// Precondition: the worker holds it, and no clear of it is open.
void Coordinator::State::start_clear(WorkerId worker, ClearJob job) {
  Holder* holder = holder_of(worker, job.version);
  set_serving(worker, *holder, holder->hidden, true);
  const VersionKey key = job.version;
  arm(job.deadline, TimerKind::ClearDeadline, worker.value(), key);
  clears[worker.index()].push_back(std::move(job));
  secure(worker, *clear_of(worker, key));
}

void Coordinator::State::send_clear(WorkerId worker, ClearJob& job) {
  job.phase = ClearPhase::Draining;
  Holder* holder = holder_of(worker, job.version);
  set_serving(worker, *holder, true, true);
  const WorkerCard& card = workers[worker.index()].card;
  if (!card.host_memory) {
    Group& group = groups[card.group.index()];
    if (group.runs == job.version.second) group.runs.reset();
  }
  // Host memory that is forgotten has no user who could be told of a reader that will not end.
  const OnDeadline on_deadline =
      job.reason == ClearReason::Forget ? OnDeadline::Revoke : OnDeadline::Fail;
  send(worker, Clear{job.version.second, job.reason, on_deadline, job.deadline});
  const VersionKey key = job.version;
  if (find(key)->retention.copies != 0) judge_soon(key);
  if (!drains_at_once(worker, job)) return;
  // Whatever the worker is told next, it has taken the version out of its buffer by then.
  drop_clear(worker, key);
  drop_holder(worker, key);
  find(key)->releasing.insert(worker);
}

// Nobody reads from the worker's buffer and nothing is read into it, by tables that never know of
// less than the worker's own; and no earlier Clear of it is unanswered. Only of a fetch: the other
// clears end a call, or memory.
bool Coordinator::State::drains_at_once(WorkerId worker, const ClearJob& job) const {
  const Worker& w = workers[worker.index()];
  const auto returning = [&](const Holder& holder) {
    return holder.version == job.version && holder.returning;
  };
  return job.reason == ClearReason::Fetch && w.plans.empty() &&
         std::none_of(w.holders.begin(), w.holders.end(), returning) &&
         std::none_of(w.readers.begin(), w.readers.end(), [&](const auto& reader) {
           return reader.second.version == job.version.second;
         });
}

// Something changed for a version that workers wait to be rid of.
void Coordinator::State::secure_all(VersionKey key) {
  const std::set<WorkerId> holders = find(key)->holders;
  for (const WorkerId worker : holders) {
    ClearJob* job = clear_of(worker, key);
    if (job == nullptr || job->phase != ClearPhase::Securing) continue;
    secure(worker, *job);
    if (!workers[worker.index()].card.host_memory) {
      dirty_groups.insert(workers[worker.index()].card.group);
    }
  }
}

void Coordinator::State::drop_clear(WorkerId worker, VersionKey key) {
  std::erase_if(clears[worker.index()], [&](const ClearJob& job) { return job.version == key; });
}

// The fetch or call that wanted it is over: offer the version again.
void Coordinator::State::call_off_clear(WorkerId worker, VersionKey key) {
  const ClearJob* job = clear_of(worker, key);
  if (job == nullptr) return;
  const bool draining = job->phase == ClearPhase::Draining;
  drop_clear(worker, key);
  Holder* holder = holder_of(worker, key);
  if (holder == nullptr) return;
  if (draining) return offer_again(worker, *holder);
  set_serving(worker, *holder, false, false);
}

// The worker was told Clear, and may be rid of the version before it hears that it is to offer it
// again: until it says what it has, the copy is read from but nobody relies on it.
void Coordinator::State::offer_again(WorkerId worker, Holder& holder) {
  set_serving(worker, holder, false, false);
  holder.returning = true;
  send(worker, Unhide{holder.version.second});
  ask_to_tell(worker, holder.version, 0);
}

// The version is no longer at the worker, nor anything that was read of it. What it was about to
// read was planned with what it had: that is planned anew.
void Coordinator::State::forget_cleared(WorkerId worker, VersionKey key) {
  workers[worker.index()].refused.erase(key.second);
  drop_holder(worker, key);
  const std::set<PlanNumber> plans = workers[worker.index()].plans;
  for (const PlanNumber plan : plans) {
    const auto transfer = transfers.find(plan);
    if (transfer != transfers.end() && transfer->second.version == key) stop_reader(plan, worker);
  }
  const WorkerCard& card = workers[worker.index()].card;
  if (card.host_memory) {
    VersionState* version = find(key);
    if (version != nullptr && version->offloads.erase(worker) != 0) judge_soon(key);
    return;
  }
  Group& group = groups[card.group.index()];
  if (group.runs == key.second) group.runs.reset();
  if (!mutated(Mutant::LoseWakeUp)) wait_again(worker);
}

void Coordinator::State::clear_deadline(WorkerId worker, VersionKey key) {
  const ClearJob* job = clear_of(worker, key);
  if (job == nullptr || job->deadline > now || job->phase != ClearPhase::Securing) return;
  CallResult result;
  result.status = CallStatus::RetentionBlocked;
  result.version = key.second;
  result.reason = job->blocked;
  switch (job->reason) {
    case ClearReason::Unpublish:
      answer(worker, job->call, std::move(result));
      call_off_clear(worker, key);
      break;
    case ClearReason::Leave:  // continue_leave says what is lost
      dirty_leaves.insert(worker);
      break;
    case ClearReason::Fetch:
    case ClearReason::Forget:
      break;  // the fetch has a deadline of its own; nobody waits for what is forgotten
  }
}

void Coordinator::State::on(WorkerId worker, const AskUnpublish& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  const Holder* holder = holder_of(worker, key);
  CallResult result;
  result.version = message.version;
  if (holder == nullptr) {
    // Said twice: the first time may have been answered by a coordinator that is gone.
    return answer(worker, message.call, std::move(result));
  }
  if (ClearJob* job = clear_of(worker, key)) {
    if (job->reason == ClearReason::Unpublish) {
      job->call = message.call;
      job->deadline = message.deadline;
      arm(job->deadline, TimerKind::ClearDeadline, worker.value(), key);
      if (job->phase == ClearPhase::Draining) send_clear(worker, *job);
      return;
    }
    result.status = CallStatus::BufferBusy;
    result.reason = "a fetch or leave is clearing it";
    return answer(worker, message.call, std::move(result));
  }
  start_clear(
      worker,
      {key, ClearReason::Unpublish, ClearPhase::Securing, message.call, message.deadline, {}});
}

void Coordinator::State::on(WorkerId worker, const AskLeave& message) {
  Worker& w = workers[worker.index()];
  w.leaving = true;
  w.leave_call = message.call;
  w.leave_deadline = message.deadline;
  w.leave_blocked_by.clear();
  for (Holder& holder : w.holders) {
    if (find(holder.version)->retention.copies != 0) judge_soon(holder.version);
  }
  std::vector<VersionKey> keys;
  for (const Holder& holder : w.holders) keys.push_back(holder.version);
  for (const VersionKey& key : keys) {
    if (clear_of(worker, key) != nullptr) continue;
    start_clear(worker, {key, ClearReason::Leave, ClearPhase::Securing, 0, message.deadline, {}});
  }
  dirty_leaves.insert(worker);
}

// Goes when nothing is held any more. What a notice was too short for is said by the answer.
void Coordinator::State::continue_leave(WorkerId worker) {
  Worker& w = workers[worker.index()];
  if (!w.leave_call) return;
  CallResult result;
  if (!w.holders.empty()) {
    if (w.leave_deadline > now) return;
    result.status = CallStatus::RetentionBlocked;
    for (const ClearJob& job : clears[worker.index()]) {
      if (job.phase == ClearPhase::Draining) result.status = CallStatus::DrainTimeout;
      if (!job.blocked.empty()) result.reason = job.blocked;
    }
    result.who = std::move(w.leave_blocked_by);
  }
  answer(worker, *w.leave_call, std::move(result));
  w.leave_call.reset();
  if (!w.holders.empty()) return call_off_leave(worker);
  send(worker, LeaveNow{});
  w.gone = true;
  if (w.card.host_memory) return;
  break_group(w.card.group, worker);
  groups[w.card.group.index()].members[w.card.shard.rank] = WorkerId();
}

// It failed: the worker stays, and may try again.
void Coordinator::State::call_off_leave(WorkerId worker) {
  workers[worker.index()].leaving = false;
  std::vector<VersionKey> keys;
  for (const ClearJob& job : clears[worker.index()]) {
    if (job.reason == ClearReason::Leave) keys.push_back(job.version);
  }
  for (const VersionKey& key : keys) call_off_clear(worker, key);
  for (const Holder& holder : workers[worker.index()].holders) {
    if (find(holder.version)->retention.copies != 0) judge_soon(holder.version);
  }
}

void Coordinator::State::on(WorkerId worker, const Cleared& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  VersionState* version = find(key);
  if (version != nullptr && version->releasing.erase(worker) != 0) {
    dirty_versions.insert(key);
    dirty_groups.insert(workers[worker.index()].card.group);
    return;
  }
  const ClearJob* found = clear_of(worker, key);
  if (found == nullptr) {
    // Of a clear that was called off meanwhile, or that a coordinator before us ordered.
    return forget_cleared(worker, key);
  }
  const ClearJob job = *found;
  drop_clear(worker, key);
  forget_cleared(worker, key);
  switch (job.reason) {
    case ClearReason::Unpublish: {
      CallResult result;
      result.version = message.version;
      result.revoked = message.revoked;
      answer(worker, job.call, std::move(result));
      break;
    }
    case ClearReason::Fetch:
      break;
    case ClearReason::Leave:
      dirty_leaves.insert(worker);
      break;
    case ClearReason::Forget:
      break;
  }
  if (workers[worker.index()].leave_call) dirty_leaves.insert(worker);
}

void Coordinator::State::on(WorkerId worker, const ClearFailed& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  const ClearJob* found = clear_of(worker, key);
  if (found == nullptr) return;
  const ClearJob job = *found;
  CallResult result;
  result.status = CallStatus::DrainTimeout;
  result.version = message.version;
  result.who = message.readers;
  // A leave calls off all its clears when it is answered, this one too.
  if (job.reason != ClearReason::Leave) drop_clear(worker, key);
  switch (job.reason) {
    case ClearReason::Unpublish:  // immutable and hidden; the worker has answered its call
      break;
    case ClearReason::Fetch:
      if (Holder* holder = holder_of(worker, key)) offer_again(worker, *holder);
      finish_fetch(workers[worker.index()].card.group, result);
      break;
    case ClearReason::Leave: {
      Worker& w = workers[worker.index()];
      w.leave_deadline = std::min(w.leave_deadline, now);
      w.leave_blocked_by = message.readers;
      dirty_leaves.insert(worker);
      break;
    }
    case ClearReason::Forget:
      break;
  }
}

// The worker gave the call up.
void Coordinator::State::on(WorkerId worker, const CallEnded& message) {
  Worker& w = workers[worker.index()];
  if (w.leave_call == message.call) {
    w.leave_call.reset();
    return call_off_leave(worker);
  }
  for (const ClearJob& job : clears[worker.index()]) {
    if (job.reason != ClearReason::Unpublish || job.call != message.call) continue;
    const VersionKey key = job.version;
    if (job.phase == ClearPhase::Securing) {
      call_off_clear(worker, key);
    } else {
      drop_clear(worker, key);  // stays hidden
    }
    return;
  }
  const auto is_call = [&](const auto& wait) {
    return wait.worker == worker && wait.call == message.call;
  };
  for (auto& [key, version] : versions) {
    if (key.first != w.card.space) continue;
    std::erase_if(version.retain_waits, is_call);
    std::erase_if(version.installed_waits, is_call);
  }
}

}  // namespace holdfast
