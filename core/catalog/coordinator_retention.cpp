#include <algorithm>

#include "core/catalog/coordinator_state.hpp"
#include "core/catalog/holder_choice.hpp"
#include "core/mutant.hpp"

namespace holdfast {

// What holder choice needs to know of one version.
struct Coordinator::State::RetentionView {
  std::vector<RetentionWorker> workers;
  std::vector<RetainedShard> shards;
  std::vector<ShardId> ids;  // of shards
  std::vector<ShardHolding> holdings;
  Retained retained;
};

// `leavers_count`: of those who are to leave, the copies that they have not been let go with yet.
void Coordinator::State::view_retention(VersionKey key, RetentionView& view, bool leavers_count) {
  const VersionState& version = *find(key);
  const ModelSpace& model = space(key.first);
  std::set<LayoutNumber> layouts;
  for (const WorkerId worker : version.holders) {
    const Holder* holder = holder_of(worker, key);
    if (holder->shard != kWholeModel) layouts.insert(holder->shard.layout);
  }
  if (layouts.empty() && model.layouts() != 0) layouts.insert(0);
  std::map<LayoutNumber, std::uint32_t> first;
  for (const LayoutNumber layout : layouts) {
    first[layout] = static_cast<std::uint32_t>(view.shards.size());
    for (std::uint32_t rank = 0; rank < model.ranks(layout); ++rank) {
      view.shards.push_back({model.bytes({layout, rank}), layout});
      view.ids.push_back({layout, rank});
    }
  }
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const Worker& w = workers[i];
    if (w.incarnation == 0 || w.card.space != key.first) continue;
    Bytes used;
    if (w.card.host_memory) used = used_of(WorkerId(i));
    const Bytes free = w.card.budget > used ? w.card.budget - used : Bytes(0);
    const Holder* held = holder_of(WorkerId(i), key);
    const bool bound = leavers_count && held != nullptr && !held->hidden;
    view.workers.push_back({WorkerId(i), roster[i], w.card.host_memory && !w.leaving,
                            w.card.reliable, true, (w.leaving && !bound) || w.gone, free});
  }
  for (const WorkerId worker : version.holders) {
    const Holder* holder = holder_of(worker, key);
    if (holder->hidden || holder->returning) continue;
    if (holder->shard != kWholeModel) {
      const std::uint32_t shard = first[holder->shard.layout] + holder->shard.rank;
      const CopyState state = holder->broken           ? CopyState::Broken
                              : holder->verified.all() ? CopyState::Complete
                                                       : CopyState::Partial;
      view.holdings.push_back({shard, worker, state});
      continue;
    }
    const auto offload = version.offloads.find(worker);
    for (std::uint32_t s = 0; s < view.shards.size(); ++s) {
      const bool complete = covers(model, view.ids[s], holder->verified);
      const bool coming =
          offload != version.offloads.end() && covers(model, view.ids[s], offload->second);
      if (complete || coming) {
        view.holdings.push_back(
            {s, worker, complete ? CopyState::Complete : CopyState::Offloading});
      }
    }
  }
  for (const auto& [worker, blocks] : version.offloads) {
    if (holder_of(worker, key) != nullptr) continue;
    for (std::uint32_t s = 0; s < view.shards.size(); ++s) {
      if (covers(model, view.ids[s], blocks)) {
        view.holdings.push_back({s, worker, CopyState::Offloading});
      }
    }
  }
  view.retained = {view.workers, view.shards, view.holdings, version.retention.copies,
                   version.retention.level};
}

// Whether all blocks of a shard are in a set over the whole model.
bool Coordinator::State::covers(const ModelSpace& model, ShardId shard, const BlockSet& blocks) {
  for (const BlockSpan& span : model.spans(shard)) {
    for (std::uint32_t i = 0; i < span.count; ++i) {
      if (!blocks.has(span.first.value() + i)) return false;
    }
  }
  return true;
}

// Host memory that is filled or promised.
Bytes Coordinator::State::used_of(WorkerId worker) {
  const Worker& w = workers[worker.index()];
  Bytes used;
  std::map<VersionKey, BlockSet> blocks;
  for (const Holder& holder : w.holders) {
    BlockSet& set = blocks.try_emplace(holder.version, holder.verified.size()).first->second;
    set.add(holder.verified);
  }
  for (const auto& [key, version] : versions) {
    const auto offload = version.offloads.find(worker);
    if (offload == version.offloads.end()) continue;
    BlockSet& set = blocks.try_emplace(key, offload->second.size()).first->second;
    set.add(offload->second);
  }
  for (const auto& [key, set] : blocks) {
    const auto bytes = space(key.first).block_bytes();
    for (std::uint32_t b = 0; b < set.size(); ++b) {
      if (set.has(b)) used += bytes[b];
    }
  }
  return used;
}

void Coordinator::State::judge_soon(VersionKey key) {
  VersionState* version = find(key);
  if (version == nullptr || version->judging) return;
  version->judging = true;
  arm(now + config.judge_interval, TimerKind::Judge, 0, key);
}

// Starts what the version needs to be safe, and tells those who wait for it.
void Coordinator::State::judge(VersionKey key) {
  VersionState* found = find(key);
  if (found == nullptr) return;
  VersionState& version = *found;
  version.judging = false;
  if (version.retention.copies == 0) return;
  RetentionView view;
  view_retention(key, view, false);
  version.safe = safety(domains, view.retained).domains;
  version.reason.clear();
  const HolderChoice choice = choose_holders(domains, view.retained);
  order_offloads(key, view, choice.offloads);
  if (choice.shortfall) version.reason = to_string(*choice.shortfall);
  std::erase_if(version.retain_waits, [&](const RetainWait& wait) {
    if (workers[wait.worker.index()].incarnation != wait.incarnation) return true;
    if (version.safe < version.retention.copies) return false;
    CallResult result;
    result.version = key.second;
    result.root = version.root;
    result.safe = version.safe;
    answer(wait.worker, wait.call, std::move(result));
    return true;
  });
  note_holders(key);
  secure_all(key);
}

void Coordinator::State::order_offloads(VersionKey key, const RetentionView& view,
                                        const std::vector<Offload>& offloads) {
  VersionState& version = *find(key);
  const ModelSpace& model = space(key.first);
  for (const Offload& offload : offloads) {
    BlockSet& blocks = version.offloads.try_emplace(offload.to, model.blocks()).first->second;
    for (const BlockSpan& span : model.spans(view.ids[offload.shard])) {
      for (std::uint32_t i = 0; i < span.count; ++i) blocks.add(span.first.value() + i);
    }
  }
  if (version.offloads.empty() || version.gather_at != Time::never()) return;
  const bool idle = std::any_of(
      version.offloads.begin(), version.offloads.end(),
      [&](const auto& offload) { return workers[offload.first.index()].plans.empty(); });
  if (!idle) return;
  version.gather_at = now + config.gather;
  arm(version.gather_at, TimerKind::Gather, 0, key);
}

// Whether the worker may be rid of the version now; if so it is told to.
void Coordinator::State::secure(WorkerId worker, ClearJob& job) {
  VersionState& version = *find(job.version);
  if (job.phase != ClearPhase::Securing) return;
  if (version.retention.copies == 0 || job.reason == ClearReason::Forget ||
      mutated(Mutant::InPlaceBeforeOffload)) {
    return send_clear(worker, job);
  }
  RetentionView view;
  // What is present is what must remain: who leaves is bound as long as it has not been let go.
  view_retention(job.version, view, true);
  const std::vector<WorkerId> leaving{worker};
  // Shards come and go with the layouts of the holders; then the answer is a first one again.
  if (job.floor.size() != view.shards.size()) job.floor.clear();
  const LeaveAnswer answer_to = may_leave(domains, view.retained, leaving, job.floor);
  if (job.floor.empty()) job.floor = answer_to.floor;
  if (answer_to.now()) return send_clear(worker, job);
  job.blocked =
      answer_to.shortfall ? to_string(*answer_to.shortfall) : "an offload is not complete";
  order_offloads(job.version, view, answer_to.start);
}

void Coordinator::State::note_holders(VersionKey key) {
  VersionState& version = *find(key);
  const Note note{key.second, version.withdrawn, version.retention};
  for (const WorkerId worker : version.holders) {
    Holder* holder = holder_of(worker, key);
    if (holder->noted_withdrawn == note.withdrawn && holder->noted == note.retention) continue;
    holder->noted_withdrawn = note.withdrawn;
    holder->noted = note.retention;
    send(worker, note);
  }
}

void Coordinator::State::on(WorkerId worker, const AskRetain& message) {
  const Worker& w = workers[worker.index()];
  const VersionKey key{w.card.space, message.version};
  VersionState* version = find(key);
  CallResult result;
  result.version = message.version;
  if (version == nullptr || !version->published) {
    result.status = CallStatus::UnknownVersion;
    return answer(worker, message.call, std::move(result));
  }
  if (version->lost) {
    result.status = CallStatus::VersionLost;
    return answer(worker, message.call, std::move(result));
  }
  version->retention = message.retention;
  version->retain_waits.push_back({worker, w.incarnation, message.call, message.deadline});
  arm(message.deadline, TimerKind::Waits);
  judge(key);
}

void Coordinator::State::on(WorkerId worker, const AskRelease& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  CallResult result;
  result.version = message.version;
  if (find(key) == nullptr) {
    result.status = CallStatus::UnknownVersion;
    return answer(worker, message.call, std::move(result));
  }
  find(key)->retention = {};
  note_holders(key);
  secure_all(key);
  forget_on_hosts(key);
  answer(worker, message.call, std::move(result));
}

// Copies that were made for retention go with it.
void Coordinator::State::forget_on_hosts(VersionKey key) {
  VersionState& version = *find(key);
  const auto offloads = version.offloads;
  for (const auto& [worker, blocks] : offloads) {
    const std::set<PlanNumber> plans = workers[worker.index()].plans;
    for (const PlanNumber plan : plans) {
      const auto transfer = transfers.find(plan);
      if (transfer != transfers.end() && transfer->second.version == key) stop_reader(plan, worker);
    }
  }
  version.offloads.clear();
  const std::set<WorkerId> holders = version.holders;
  for (const WorkerId worker : holders) {
    if (!workers[worker.index()].card.host_memory || clear_of(worker, key) != nullptr) continue;
    start_clear(
        worker,
        {key, ClearReason::Forget, ClearPhase::Securing, 0, now + config.forget_deadline, {}});
  }
}

// Calls that wait for a version's safety or installation, beyond their deadlines.
void Coordinator::State::expire_waits() {
  for (auto& entry : versions) {
    const VersionKey& key = entry.first;
    VersionState& version = entry.second;
    std::erase_if(version.retain_waits, [&](const RetainWait& wait) {
      if (wait.deadline > now) return false;
      CallResult result;
      result.status = CallStatus::RetentionBlocked;
      result.version = key.second;
      result.safe = version.safe;
      result.reason = version.reason;
      answer(wait.worker, wait.call, std::move(result));
      return true;
    });
    std::erase_if(version.installed_waits, [&](const InstalledWait& wait) {
      if (wait.deadline > now) return false;
      CallResult result;
      result.status = CallStatus::DeadlineExceeded;
      result.version = key.second;
      for (const Group& group : groups) {
        if (group.known && group.space == key.first && group.runs != key.second) {
          for (const WorkerId member : group.members) {
            if (member.valid()) result.who.push_back(member);
          }
        }
      }
      answer(wait.worker, wait.call, std::move(result));
      return true;
    });
    dirty_versions.insert(key);
  }
}

}  // namespace holdfast
