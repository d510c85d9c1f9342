#include <algorithm>

#include "core/catalog/coordinator_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {

// A card that does not fit the roster or the spaces would break everything that relies on it.
bool Coordinator::State::acceptable(WorkerId worker, const Hello& hello) const {
  if (hello.incarnation == 0 || !hello.report) return false;
  const WorkerCard& card = hello.report->card;
  if (card.node != roster[worker.index()] || card.space.index() >= spaces.size()) return false;
  if (card.host_memory) return card.shard == kWholeModel && !card.group.valid();
  if (card.shard == kWholeModel || !space(card.space).valid(card.shard)) return false;
  if (!card.group.valid() || card.slots == 0 || card.group.index() >= roster.size()) return false;
  if (card.group.index() >= groups.size() || !groups[card.group.index()].known) return true;
  const Group& group = groups[card.group.index()];
  if (group.space != card.space || group.layout != card.shard.layout) return false;
  const WorkerId other = group.members[card.shard.rank];
  return !other.valid() || other == worker || !alive(other);
}

void Coordinator::State::on(WorkerId worker, const Hello& hello) {
  if (!acceptable(worker, hello)) return;
  Worker& w = workers[worker.index()];
  if (rebuilding) {
    const auto latest = std::pair(w.reported, w.greeting);
    if (std::pair(hello.incarnation, hello.greeting) < latest) return;
    w.reported = hello.incarnation;
    w.greeting = hello.greeting;
    w.heard = now;
    w.report = hello.report;
    reported_epoch = std::max(reported_epoch, hello.report->epoch);
    return;
  }
  const bool checked = !mutated(Mutant::SkipIncarnationCheck);
  if (hello.incarnation <= w.fenced && checked) {
    return frame(worker, FencedOff{epoch, hello.incarnation, w.fenced});
  }
  if (hello.incarnation == w.incarnation) {
    // It was taken in by what it had said long before, and has never heard of this session: what it
    // does since is not known here, and cannot be taken in any more.
    const bool outdated = hello.greeting > w.greeting && hello.report->epoch < epoch;
    if (!outdated) return welcome(worker);
    bury(worker);
    return frame(worker, FencedOff{epoch, hello.incarnation, w.fenced});
  }
  if (hello.incarnation < w.incarnation && checked) return;
  if (w.incarnation != 0) bury(worker);
  // Someone was cut off from this coordinator while another one, since gone, took an epoch that we
  // may be using too: all sessions must start anew, under a larger one.
  if (hello.report->epoch > epoch || (hello.report->epoch == epoch && !w.welcomed)) {
    reported_epoch = std::max(reported_epoch, hello.report->epoch);
    start_again = true;
    return;
  }
  if (!hello.report->transfers.empty() || !hello.report->grants.empty()) {
    w.fenced = std::max(w.fenced, hello.incarnation);
    return frame(worker, FencedOff{epoch, hello.incarnation, w.fenced});
  }
  const bool was_there = w.known;
  w.greeting = hello.greeting;
  admit(worker, hello.incarnation, *hello.report);
  if (!w.card.host_memory) {
    // Who comes back cannot know how many fetches the others have counted.
    Group& group = groups[w.card.group.index()];
    const Generation reported = hello.report->generation;
    const bool higher = reported > group.generation;
    if (higher) group.generation = reported;
    // Nor does this coordinator know what one decided from whom it had no report.
    const Decision& decision = hello.report->decision;
    const bool knows_more = reported == group.generation &&
                            (hello.report->over > group.last.n ||
                             (decision.generation == reported && decision.n > group.last.n));
    if (higher || knows_more ||
        (reported != group.generation &&
         (was_there || group.last.n > 0 || group.phase != Phase::Idle))) {
      break_group(w.card.group, worker);
    }
  }
  welcome(worker);
  if (!w.card.host_memory) {
    const Group& group = groups[w.card.group.index()];
    if (hello.report->generation != group.generation) {
      send(worker, GenerationIs{group.generation});
    }
  }
}

void Coordinator::State::welcome(WorkerId worker) {
  Worker& w = workers[worker.index()];
  w.welcomed = true;
  const Generation generation = w.card.host_memory ? 0 : groups[w.card.group.index()].generation;
  frame(worker, Welcome{epoch, w.incarnation, generation});
}

void Coordinator::State::on(WorkerId worker, const WorkerFrame& frame_in) {
  Worker& w = workers[worker.index()];
  const Incarnation incarnation = frame_in.key.incarnation;
  if (mutated(Mutant::SkipIncarnationCheck) && w.session && incarnation < w.incarnation &&
      frame_in.key.epoch == epoch) {
    WorkerFrame renamed = frame_in;
    renamed.key = w.session->key();
    return on(worker, renamed);
  }
  if (incarnation <= w.fenced && !mutated(Mutant::SkipIncarnationCheck)) {
    return frame(worker, FencedOff{epoch, incarnation, w.fenced});
  }
  if (!w.session || frame_in.key != w.session->key()) {
    if (frame_in.key.epoch <= epoch && incarnation >= w.incarnation) {
      frame(worker, UnknownSession{epoch, incarnation});
    } else if (rebuilding || frame_in.key.epoch > epoch) {
      // Larger than ours: nobody was reachable while we rebuilt. Its Hello says what it knows.
      frame(worker, UnknownSession{0, incarnation});
    }
    return;
  }
  w.heard = now;
  received.clear();
  if (w.session->receive(frame_in, now, received) != FrameAnswer::Taken) return;
  if (!w.touched) {
    w.touched = true;
    touched.push_back(worker);
  }
  // `received` is used again by nobody before this ends: messages cause no receiving.
  for (const auto& message : received) {
    if (!alive(worker)) break;
    take(worker, *message);
  }
}

Coordinator::State::Group& Coordinator::State::group_of(const WorkerCard& card, WorkerId worker) {
  if (card.group.index() >= groups.size()) groups.resize(card.group.index() + 1);
  Group& group = groups[card.group.index()];
  if (!group.known) {
    group.known = true;
    group.space = card.space;
    group.layout = card.shard.layout;
    group.members.resize(space(card.space).ranks(card.shard.layout));
    group.asked.resize(group.members.size());
  }
  group.members[card.shard.rank] = worker;
  return group;
}

void Coordinator::State::admit(WorkerId worker, Incarnation incarnation,
                               const WorkerReport& report) {
  Worker& w = workers[worker.index()];
  w.incarnation = incarnation;
  w.card = report.card;
  w.known = true;
  w.leaving = report.leaving;
  w.gone = false;
  w.heard = now;
  w.armed = Time::never();
  w.session = std::make_unique<WorkerSession>(SessionKey{epoch, incarnation}, config.session);
  arm(now + config.detection, TimerKind::Expiry, worker.value());
  std::uint64_t& lineage = largest_lineage[w.card.space.index()];
  lineage = std::max(lineage, report.lineage);
  if (!w.card.host_memory) group_of(w.card, worker);
  if (!rebuilding) adopt_holdings(worker, report, [](const Holding&) { return true; });
  for (auto& [key, version] : versions) {
    if (key.first == w.card.space && version.retention.copies != 0) judge_soon(key);
  }
}

void Coordinator::State::adopt_holdings(WorkerId worker, const WorkerReport& report,
                                        const std::function<bool(const Holding&)>& which) {
  const WorkerCard& card = report.card;
  for (const Holding& holding : report.holdings) {
    if (!which(holding)) continue;
    const VersionKey key{card.space, holding.version};
    if (!space(card.space).valid(holding.shard)) continue;
    const std::uint32_t blocks = space(card.space).blocks(holding.shard);
    if (holding.verified.size() != blocks) continue;
    VersionState& version = version_at(key);
    // Two roots of one version are two versions: the one that is heard of first stands.
    const Hash128 known = version.root;
    if (holding.root != Hash128{}) {
      if (known != Hash128{} && known != holding.root) {
        refuse_copy(worker, holding);
        continue;
      }
      version.root = holding.root;
    }
    if (holding.digests && holding.digests->size() == blocks &&
        !add_digests(version, card.space, holding.shard, *holding.digests)) {
      version.root = known;
      refuse_copy(worker, holding);
      continue;
    }
    note_number(key);
    version.withdrawn = version.withdrawn || holding.withdrawn;
    if (holding.retention.copies != 0) version.retention = holding.retention;
    Holder& holder = add_holder(worker, key, holding.shard);
    holder.published = holding.state == HoldingState::Published;
    holder.broken = holding.state == HoldingState::Filling;
    if (holding.state == HoldingState::Hidden) set_serving(worker, holder, true, false);
    verify_blocks(worker, holder, holding.verified);
    // Nobody is filled with what was not published, whoever published it may be gone.
    if (holding.state == HoldingState::Complete || holding.state == HoldingState::Filling) {
      version.published = true;
    }
    judge_published(key);
    dirty_versions.insert(key);
  }
}

// It is not the version that is known by that name: whoever came by it through a fetch gives it up,
// so that its buffer is free for the version. What an owner offers is the owner's to take back.
void Coordinator::State::refuse_copy(WorkerId worker, const Holding& holding) {
  if (holding.state != HoldingState::Filling && holding.state != HoldingState::Complete) return;
  workers[worker.index()].refused.insert(holding.version);
  send(worker, Clear{holding.version, ClearReason::Forget, OnDeadline::Revoke, now});
}

void Coordinator::State::expire(WorkerId worker) {
  const Worker& w = workers[worker.index()];
  if (w.incarnation == 0) return;
  const Time due = w.heard + config.detection;
  if (due > now) return arm(due, TimerKind::Expiry, worker.value());
  bury(worker);
}

// The incarnation is over. Whoever it reads from must cut it off: it may live on beyond a
// partition.
void Coordinator::State::bury(WorkerId worker) {
  Worker& w = workers[worker.index()];
  w.fenced = std::max(w.fenced, w.incarnation);
  w.incarnation = 0;
  w.session.reset();
  w.leaving = false;
  w.leave_call.reset();
  w.refused.clear();
  clears[worker.index()].clear();
  const std::set<PlanNumber> plans = std::move(w.plans);
  w.plans.clear();
  for (const PlanNumber plan : plans) release_reader(plan, worker);
  std::set<PlanNumber> served;
  const auto readers = std::move(w.readers);
  w.readers.clear();
  for (const auto& [key, grant] : readers) {
    --grants;
    workers[key.reader.index()].sources.erase({key.plan, worker});
    served.insert(key.plan);
    // The answer that the reader waits for will not come.
    const auto transfer = transfers.find(key.plan);
    if (transfer == transfers.end()) continue;
    const auto reader = transfer->second.readers.find(key.reader);
    if (reader != transfer->second.readers.end()) reader->second.awaited.erase(worker);
  }
  for (const PlanNumber plan : served) lose_source(plan, worker);
  while (!w.holders.empty()) {
    const VersionKey key = w.holders.back().version;
    if (const auto found = versions.find(key); found != versions.end()) {
      found->second.doubtful.erase(worker);
      found->second.offloads.erase(worker);
    }
    drop_holder(worker, key);
  }
  for (auto& [key, version] : versions) {
    if (version.offloads.erase(worker) != 0) judge_soon(key);
    if (version.releasing.erase(worker) != 0) dirty_versions.insert(key);
  }
  if (w.known && !w.card.host_memory && !w.gone) break_group(w.card.group, worker);
}

void Coordinator::State::break_group(GroupId id, WorkerId by) {
  Group& group = groups[id.index()];
  group.broken_by = {by};
  group.over = 0;
  if (group.phase != Phase::Idle) {
    CallResult result;
    result.status = CallStatus::GroupBroken;
    result.who = group.broken_by;
    finish_fetch(id, result);
  }
  ++group.generation;
  group.last = Decision{};
  group.runs.reset();
  tell_group(group, GenerationIs{group.generation});
}

}  // namespace holdfast
