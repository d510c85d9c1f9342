#include <algorithm>

#include "core/catalog/coordinator_state.hpp"

namespace holdfast {

void Coordinator::State::tell_group(const Group& group, const CoordinatorMessage& message) {
  const auto shared = std::make_shared<const CoordinatorMessage>(message);
  for (const WorkerId member : group.members) {
    if (!member.valid()) continue;
    Worker& w = workers[member.index()];
    if (!w.session) continue;
    w.session->send(shared, now);
    if (w.touched) continue;
    w.touched = true;
    touched.push_back(member);
  }
}

void Coordinator::State::on(WorkerId worker, const AskFetch& message) {
  const WorkerCard& card = workers[worker.index()].card;
  if (card.host_memory) return;
  Group& group = groups[card.group.index()];
  if (message.generation != group.generation) {
    FetchDone done{message.n, message.generation, {}};
    done.result.status = CallStatus::GroupBroken;
    done.result.who = group.broken_by;
    return send(worker, done);
  }
  if (message.n == group.last.n) {
    send(worker, Decided{group.last});
    if (group.last.finished) {
      send(worker, FetchDone{group.last.n, group.generation, group.last.end});
    }
    return;
  }
  if (message.n < group.last.n) {  // ended while the worker was out of touch
    FetchDone done{message.n, message.generation, {}};
    done.result.status = CallStatus::DeadlineExceeded;
    return send(worker, done);
  }
  skip_to(card.group, message.n);
  if (group.phase == Phase::Idle) {
    group.phase = Phase::Collecting;
    group.call = message.call;
    group.deadline = Time::never();
    group.trouble.clear();
    std::fill(group.asked.begin(), group.asked.end(), false);
  }
  group.asked[card.shard.rank] = true;
  if (message.deadline < group.deadline) {
    group.deadline = message.deadline;
    arm(group.deadline, TimerKind::FetchDeadline, card.group.value());
  }
  if (!(message.call == group.call)) {
    CallResult result;
    result.status = CallStatus::GroupMismatch;
    return finish_fetch(card.group, result);
  }
  if (std::all_of(group.asked.begin(), group.asked.end(), [](bool asked) { return asked; })) {
    decide(card.group);
  }
}

// The next fetch is the n-th: whatever comes before it is over for some member, so for all. It gave
// up by itself, or was answered by nobody before its coordinator was gone.
void Coordinator::State::skip_to(GroupId id, std::uint64_t n) {
  Group& group = groups[id.index()];
  const bool collecting = group.phase == Phase::Collecting;
  CallResult result;
  result.status = CallStatus::DeadlineExceeded;
  if (group.phase != Phase::Idle && group.last.n + (collecting ? 1 : 0) < n) {
    finish_fetch(id, result);
  }
  if (group.last.n + 1 >= n) return;
  group.last = Decision{};
  group.last.n = n - 1;
  group.last.generation = group.generation;
  group.last.result = result;
  group.last.finished = true;
  group.last.end = std::move(result);
  tell_group(group, FetchDone{group.last.n, group.generation, group.last.end});
}

CallResult Coordinator::State::choose(const Group& group) const {
  CallResult result;
  if (!group.call.version) {
    const std::optional<Version> newest = latest(group.space);
    if (!newest) {
      result.status = CallStatus::UnknownVersion;
      result.reason = "no version can be fetched";
    } else if (newest == group.runs) {
      result.status = CallStatus::NothingNewer;
      result.version = *newest;
    } else {
      result.version = *newest;
    }
  } else {
    result.version = *group.call.version;
    const auto found = versions.find({group.space, result.version});
    if (found == versions.end() || !found->second.published) {
      result.status = CallStatus::UnknownVersion;
      result.reason = "not published";
    } else if (found->second.withdrawn) {
      result.status = CallStatus::Withdrawn;
    } else if (found->second.lost) {
      result.status = CallStatus::VersionLost;
    } else if (group.runs != result.version && !fetchable(found->second)) {
      result.status = CallStatus::UnknownVersion;
      result.reason = "no holder offers all of it";
    }
  }
  if (result.status == CallStatus::Ok) {
    result.root = versions.find({group.space, result.version})->second.root;
  }
  return result;
}

void Coordinator::State::decide(GroupId id) {
  Group& group = groups[id.index()];
  Decision decision;
  decision.n = group.last.n + 1;
  decision.generation = group.generation;
  decision.call = group.call;
  decision.result = choose(group);
  group.last = decision;
  group.phase = Phase::Waiting;
  group.stopped.clear();
  group.asked_to_stop.clear();
  if (decision.result.status == CallStatus::Ok) {
    ++find({group.space, decision.result.version})->leases;
    tell_group(group, Decided{decision});
    dirty_groups.insert(id);
    return;
  }
  tell_group(group, Decided{decision});
  group.last.finished = true;
  group.last.end = decision.result;
  group.phase = Phase::Idle;
  tell_group(group, FetchDone{decision.n, decision.generation, decision.result});
}

// The version that must leave a buffer before the decided one can come; nothing if a buffer is
// free, or holds a part of it already.
std::optional<Version> Coordinator::State::victim_of(WorkerId worker, const Group& group) const {
  const Worker& w = workers[worker.index()];
  if (w.holders.size() < w.card.slots) return std::nullopt;
  const Holder* victim = nullptr;
  for (const Holder& holder : w.holders) {
    if (holder.version.second == group.last.result.version) return std::nullopt;
    const bool runs = group.runs == holder.version.second;
    const bool wanted = (group.call.destination == Destination::InPlace) == runs;
    if (victim == nullptr || wanted) victim = &holder;
  }
  return victim->version.second;
}

// Goes as far as can be gone now. Called whenever something that a fetch waits for has changed.
void Coordinator::State::advance(GroupId id) {
  Group& group = groups[id.index()];
  if (group.phase == Phase::Idle || group.phase == Phase::Collecting) return;
  if (group.phase == Phase::Filling) return check_filled(id);
  const VersionKey key{group.space, group.last.result.version};
  bool securing = false;
  bool clearing = false;
  bool missing = false;
  for (const WorkerId member : group.members) {
    Holder* holder = holder_of(member, key);
    // An unpublish that failed left it hidden: now it is wanted again.
    if (holder != nullptr && holder->hidden && clear_of(member, key) == nullptr) {
      offer_again(member, *holder);
    }
    if (holder != nullptr && holder->verified.all() && !holder->hidden) continue;
    missing = true;
    // The member is giving up the very version.
    if ((holder != nullptr && holder->hidden) || find(key)->releasing.contains(member)) {
      clearing = true;
      continue;
    }
    if (!workers[member.index()].refused.empty()) {
      clearing = true;
      continue;
    }
    const std::optional<Version> victim = victim_of(member, group);
    if (!victim) continue;
    const VersionKey old{group.space, *victim};
    ClearJob* job = clear_of(member, old);
    if (job == nullptr) {
      start_clear(member, {old, ClearReason::Fetch, ClearPhase::Securing, 0, group.deadline, {}});
      job = clear_of(member, old);
    }
    if (job == nullptr) continue;
    (job->phase == ClearPhase::Securing ? securing : clearing) = true;
    if (job->phase == ClearPhase::Securing) group.trouble = job->blocked;
  }
  if (!missing) {
    group.phase = Phase::Filling;
    return check_filled(id);
  }
  if (securing || clearing) {
    group.phase = securing ? Phase::Securing : Phase::Clearing;
    return;
  }
  group.phase = Phase::Waiting;
  VersionState& version = *find(key);
  if (!version.waiting.insert(id).second) return;
  dirty_versions.insert(key);
}

void Coordinator::State::on(WorkerId worker, const AskCancel& message) {
  const WorkerCard& card = workers[worker.index()].card;
  if (card.host_memory) return;
  const Group& group = groups[card.group.index()];
  const std::uint64_t open = group.phase == Phase::Collecting ? group.last.n + 1 : group.last.n;
  if (group.phase == Phase::Idle || message.n != open) return;
  CallResult result;
  result.status = CallStatus::Cancelled;
  finish_fetch(card.group, result);
}

void Coordinator::State::on(WorkerId worker, const Filled& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  Holder* holder = holder_of(worker, key);
  const auto found = transfers.find(message.plan);
  if (holder == nullptr || found == transfers.end()) return;
  const auto reader = found->second.readers.find(worker);
  if (reader == found->second.readers.end()) return;
  const bool offload = reader->second.offload;
  // Only what this plan brought: more may be wanted by now.
  BlockSet brought = holder->verified;
  if (offload) {
    for (const BlockClass& c : found->second.demand->classes) {
      if (!std::binary_search(c.receivers.begin(), c.receivers.end(), worker)) continue;
      for (const BlockId block : blocks_of(c)) brought.add(block.value());
    }
  }
  if (!offload) verify_blocks(worker, *holder, BlockSet::full(holder->verified.size()));
  release_reader(message.plan, worker);
  if (offload) {
    VersionState& version = *find(key);
    if (const auto wanted = version.offloads.find(worker); wanted != version.offloads.end()) {
      verify_blocks(worker, *holder, brought);
      if (holder->verified.includes(wanted->second)) version.offloads.erase(wanted);
    }
    judge(key);
  } else {
    groups[workers[worker.index()].card.group.index()].stopped.insert(worker);
    dirty_groups.insert(workers[worker.index()].card.group);
  }
  dirty_versions.insert(key);
}

void Coordinator::State::check_filled(GroupId id) {
  Group& group = groups[id.index()];
  const VersionKey key{group.space, group.last.result.version};
  for (const WorkerId member : group.members) {
    const Holder* holder = holder_of(member, key);
    if (holder == nullptr || !holder->verified.all()) return;
    if (holder->hidden || holder->returning) return;  // is giving it up, or may have
    if (!workers[member.index()].plans.empty()) return;
  }
  // Nobody may run the new version while another still runs the old one: whoever has not been
  // filled by this fetch, and could be running something else, is asked whether it has stopped.
  bool all_stopped = true;
  for (const WorkerId member : group.members) {
    if (group.stopped.contains(member) || workers[member.index()].holders.size() < 2) continue;
    all_stopped = false;
    if (group.asked_to_stop.insert(member).second) {
      ask_to_tell(member, key, group.last.n);
    }
  }
  if (!all_stopped) return;
  CallResult result;
  result.version = group.last.result.version;
  result.root = group.last.result.root;
  finish_fetch(id, result);
}

// Ends the open fetch for all members alike.
void Coordinator::State::finish_fetch(GroupId id, const CallResult& result) {
  Group& group = groups[id.index()];
  const bool decided = group.phase != Phase::Collecting;
  if (!decided) {
    const std::uint64_t n = group.last.n + 1;
    group.last = Decision{};
    group.last.n = n;
    group.last.generation = group.generation;
    group.last.call = group.call;
    group.last.result = result;
  }
  group.last.finished = true;
  group.last.end = result;
  group.phase = Phase::Idle;
  group.deadline = Time::never();
  const bool ok = result.status == CallStatus::Ok;
  if (decided) {
    const VersionKey key{group.space, group.last.result.version};
    VersionState& version = *find(key);
    --version.leases;
    version.waiting.erase(id);
    for (const WorkerId member : group.members) {
      if (!member.valid() || !alive(member)) continue;
      const std::set<PlanNumber> plans = workers[member.index()].plans;
      for (const PlanNumber plan : plans) stop_reader(plan, member);
      if (Holder* holder = holder_of(member, key)) holder->broken = !ok;
      std::vector<VersionKey> called_off;
      for (const ClearJob& job : clears[member.index()]) {
        if (job.reason == ClearReason::Fetch) called_off.push_back(job.version);
      }
      for (const VersionKey& old : called_off) call_off_clear(member, old);
    }
    if (ok) group.runs = key.second;
    dirty_versions.insert(key);
    if (version.retention.copies != 0) judge_soon(key);
  } else {
    tell_group(group, Decided{group.last});
  }
  tell_group(group, FetchDone{group.last.n, group.last.generation, result});
  if (group.over > group.last.n) skip_to(id, group.over + 1);
  if (!ok) return;
  for (auto& [key, version] : versions) {
    if (key.first == group.space && !version.installed_waits.empty()) answer_installed(key);
  }
}

}  // namespace holdfast
