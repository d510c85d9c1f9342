#include <algorithm>

#include "core/catalog/coordinator_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {

// From what the workers said to a state. Those who said nothing are not there; if they come later
// with work that nobody knows of, they are fenced.
void Coordinator::State::finish_rebuild() {
  epoch = reported_epoch + 1;
  std::vector<WorkerId> reported;
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    Worker& w = workers[i];
    if (!w.report) continue;
    const WorkerId worker(i);
    if (!acceptable(worker, Hello{w.reported, w.report})) {
      w.report.reset();
      continue;
    }
    reported.push_back(worker);
    const Time heard = w.heard;
    admit(worker, w.reported, *w.report);
    // Who has been silent since its report may have died in the meantime: it gets half of the usual
    // time to answer Welcome. (Hellos come less and less often, so not less than that.)
    w.heard = std::max(heard, now - config.detection / 2);
    arm(w.heard + config.detection, TimerKind::Expiry, worker.value());
  }
  rebuilding = false;
  // What has a root first, and all digests of it that anybody knows: a publish that was not
  // answered yet may differ from it.
  for (const bool rooted : {true, false}) {
    if (!rooted) rebuild_digests(reported);
    for (const WorkerId worker : reported) {
      adopt_holdings(worker, *workers[worker.index()].report, [rooted](const Holding& holding) {
        return (holding.root != Hash128{}) == rooted;
      });
    }
  }
  rebuild_generations(reported);
  for (const WorkerId worker : reported) welcome(worker);
  rebuild_transfers(reported);
  rebuild_grants(reported);
  rebuild_groups();
  for (const WorkerId worker : reported) workers[worker.index()].report.reset();
  for (auto& [key, version] : versions) {
    dirty_versions.insert(key);
    if (version.retention.copies != 0) judge_soon(key);
  }
  for (auto& [id, transfer] : transfers) dirty_transfers.insert(id);
}

void Coordinator::State::rebuild_generations(const std::vector<WorkerId>& reported) {
  for (const WorkerId worker : reported) {
    const WorkerReport& report = *workers[worker.index()].report;
    if (report.card.host_memory) continue;
    Group& group = groups[report.card.group.index()];
    if (report.generation > group.generation) {
      group.generation = report.generation;
      group.last = Decision{};
    }
    if (report.generation != group.generation) continue;
    const Decision& decision = report.decision;
    if (decision.generation != group.generation) continue;
    if (mutated(Mutant::RedecideAfterRestart) && decision.n > group.last.n && !decision.finished) {
      group.last.n = decision.n - 1;
      group.last.generation = decision.generation;
      group.last.finished = true;
      continue;
    }
    if (decision.n > group.last.n || (decision.n == group.last.n && decision.finished)) {
      group.last = decision;
    }
  }
}

// A transfer whose ids are those of this coordinator's workers and of the reporter's model.
bool Coordinator::State::fits(const OpenTransfer& open, WorkerId worker) const {
  const TransferRef& ref = open.transfer;
  if (!ref || !ref->demand || !ref->plan || !ref->tables) return false;
  if (ref->space != workers[worker.index()].card.space) return false;
  const auto is_worker = [&](WorkerId id) { return id.index() < workers.size(); };
  const std::size_t stripes = ref->plan->stripes.size();
  if (ref->demand->workers.size() != workers.size() || ref->tables->stripes() != stripes ||
      ref->demand->block_bytes.size() != space(ref->space).blocks() ||
      ref->shards.size() != workers.size()) {
    return false;
  }
  for (const BlockClass& c : ref->demand->classes) {
    for (const auto* list : {&c.holders, &c.receivers}) {
      if (!std::all_of(list->begin(), list->end(), is_worker)) return false;
    }
  }
  for (const Stripe& stripe : ref->plan->stripes) {
    for (const Edge& edge : stripe.edges) {
      if (!is_worker(edge.parent) || !is_worker(edge.child)) return false;
    }
  }
  return std::all_of(open.edges.begin(), open.edges.end(), [&](const LiveEdge& edge) {
    return edge.stripe.index() < stripes && edge.child == worker && is_worker(edge.parent) &&
           (!edge.alternate.valid() || is_worker(edge.alternate));
  });
}

// The plans that are carried out have the digests of all blocks with them.
void Coordinator::State::rebuild_digests(const std::vector<WorkerId>& reported) {
  for (const WorkerId worker : reported) {
    for (const OpenTransfer& open : workers[worker.index()].report->transfers) {
      if (!fits(open, worker)) continue;
      const TransferRef& ref = open.transfer;
      VersionState* version = find({ref->space, ref->version});
      if (version == nullptr || ref->root == Hash128{} || version->root != ref->root) continue;
      for (std::uint32_t b = 0; b < space(ref->space).blocks(); ++b) {
        if (version->digest_known[b]) continue;
        version->digest_known[b] = true;
        (*version->digests)[b] = ref->tables->digest(BlockId(b));
        --version->digests_missing;
      }
    }
  }
}

// Plans that are being carried out go on, with the edges that their readers have now.
void Coordinator::State::rebuild_transfers(const std::vector<WorkerId>& reported) {
  for (const WorkerId worker : reported) {
    Worker& w = workers[worker.index()];
    for (const OpenTransfer& open : w.report->transfers) {
      if (!fits(open, worker)) continue;
      const TransferRef& ref = open.transfer;
      const VersionKey key{ref->space, ref->version};
      if (find(key) == nullptr || holder_of(worker, key) == nullptr) continue;
      Transfer& transfer = transfers[ref->id];
      if (!transfer.ref) {
        transfer.version = key;
        transfer.plan = ref->plan;
        transfer.first = transfer.ref = ref;
        VersionState& version = *find(key);
        version.published = true;
        if (version.retention.copies == 0) version.retention = ref->retention;
      }
      // Each join made another revision of it.
      if (ref->revision > transfer.ref->revision) transfer.ref = ref;
      if (ref->revision < transfer.first->revision) transfer.first = ref;
      transfer.demand = transfer.ref->demand;
      Reader reader;
      reader.incarnation = w.incarnation;
      reader.offload = w.card.host_memory;
      reader.phase = open.stopping ? ReaderPhase::Stopping : ReaderPhase::Begun;
      for (const LiveEdge& edge : open.edges) reader.edges[edge.stripe] = edge;
      transfer.readers[worker] = std::move(reader);
      w.plans.insert(ref->id);
      if (w.card.host_memory) {
        BlockSet wanted(space(key.first).blocks());
        for (const BlockClass& c : ref->demand->classes) {
          if (!std::binary_search(c.receivers.begin(), c.receivers.end(), worker)) continue;
          for (const BlockId block : blocks_of(c)) wanted.add(block.value());
        }
        wanted.add(holder_of(worker, key)->verified);
        find(key)->offloads[worker] = wanted;
      }
    }
  }
  // Whoever is in a plan and not here is no parent any more.
  for (auto& [id, transfer] : transfers) {
    for (const Stripe& stripe : transfer.plan->stripes) {
      for (const Edge& edge : stripe.edges) {
        for (const WorkerId parent : {edge.parent, edge.child}) {
          const Holder* holder = alive(parent) ? holder_of(parent, transfer.version) : nullptr;
          if (holder == nullptr ||
              (!holder->verified.all() && !transfer.readers.contains(parent))) {
            transfer.lost.insert(parent);
          }
        }
      }
    }
  }
}

// What sources say that they granted is adopted where the reader still reads; else it ends.
void Coordinator::State::rebuild_grants(const std::vector<WorkerId>& reported) {
  for (const WorkerId source : reported) {
    Worker& w = workers[source.index()];
    for (const ReadGrant& grant : w.report->grants) {
      if (grant.reader.index() >= workers.size()) continue;
      Worker& reader = workers[grant.reader.index()];
      const GrantKey key{grant.reader, grant.plan};
      if (!w.readers.contains(key)) ++grants;
      w.readers[key] = {GrantState::Held, grant.incarnation, grant.version};
      reader.sources.insert({grant.plan, source});
      const auto transfer = transfers.find(grant.plan);
      const bool reads = reader.incarnation == grant.incarnation && transfer != transfers.end() &&
                         transfer->second.readers.contains(grant.reader);
      if (!reads) end_grant(source, key);
    }
  }
  // A source that does not say that it lets a reader in is no source of it.
  for (auto& [id, transfer] : transfers) {
    for (const auto& [worker, reader] : transfer.readers) {
      for (std::uint32_t s = 0; s < transfer.plan->stripes.size(); ++s) {
        bool there = false;
        const LiveEdge edge = edge_of(transfer, worker, StripeId(s), there);
        if (!there || !edge.parent.valid()) continue;
        if (!workers[worker.index()].sources.contains({id, edge.parent})) {
          transfer.orphans[{worker, StripeId(s)}] = edge.parent;
        }
      }
    }
  }
}

void Coordinator::State::rebuild_groups() {
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    if (!group.known) continue;
    const GroupId id(g);
    std::vector<WorkerId> missing;
    bool known = group.last.n > 0;  // to somebody: the generation
    std::optional<Version> runs;
    bool all_run = true;
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const WorkerId member = group.members[rank];
      if (!member.valid() || !alive(member)) {
        missing.push_back(member);
        all_run = false;
        continue;
      }
      const WorkerReport& report = *workers[member.index()].report;
      known = known || report.generation == group.generation;
      // One that starts anew, or has missed that another one did.
      if (report.generation != group.generation) {
        send(member, GenerationIs{group.generation});
        missing.push_back(member);
      }
      std::optional<Version> its;
      for (const Holding& holding : report.holdings) {
        const bool taken = holder_of(member, {group.space, holding.version}) != nullptr;
        if (holding.runs && taken) its = holding.version;
      }
      if (rank == 0) runs = its;
      all_run = all_run && its && its == runs;
    }
    if (all_run) group.runs = runs;
    resume_fetch(id);
    skip_what_is_over(id);
    if (missing.empty() || !known) continue;
    std::erase_if(missing, [](WorkerId worker) { return !worker.valid(); });
    break_group(id, missing.empty() ? WorkerId() : missing.front());
  }
}

// Fetches that ended at some member by themselves, and that no coordinator heard of: each member
// may have counted others.
void Coordinator::State::skip_what_is_over(GroupId id) {
  Group& group = groups[id.index()];
  for (const WorkerId member : group.members) {
    if (!member.valid() || !alive(member)) continue;
    const WorkerReport& report = *workers[member.index()].report;
    if (report.generation == group.generation) group.over = std::max(group.over, report.over);
  }
  // A fetch that is resumed comes first: the group may make it yet.
  if (group.phase == Phase::Idle) skip_to(id, group.over + 1);
}

// The last decision stands; a fetch that it opened goes on where its members are.
void Coordinator::State::resume_fetch(GroupId id) {
  Group& group = groups[id.index()];
  if (group.last.n == 0) return;
  group.call = group.last.call;
  if (group.last.finished) {
    // Ended for some of the members: for all.
    tell_group(group, Decided{group.last});
    tell_group(group, FetchDone{group.last.n, group.generation, group.last.end});
    const VersionKey key{group.space, group.last.end.version};
    if (group.last.end.status == CallStatus::Ok) {
      bool all_hold = true;
      for (const WorkerId member : group.members) {
        Holder* holder = member.valid() && alive(member) ? holder_of(member, key) : nullptr;
        all_hold = all_hold && holder != nullptr && holder->verified.all() && !holder->hidden;
        if (holder != nullptr) holder->broken = false;
      }
      if (all_hold) group.runs = key.second;
    }
    return;
  }
  const VersionKey key{group.space, group.last.result.version};
  ++version_at(key).leases;
  group.deadline = Time::never();
  for (const WorkerId member : group.members) {
    if (!member.valid() || !alive(member)) continue;
    const WorkerReport& report = *workers[member.index()].report;
    if (report.fetch && report.fetch->n == group.last.n) {
      group.deadline = std::min(group.deadline, report.fetch->deadline);
    }
    for (Holder& holder : workers[member.index()].holders) {
      if (holder.hidden && holder.version != key) {
        clears[member.index()].push_back(
            {holder.version, ClearReason::Fetch, ClearPhase::Draining, 0, Time::never(), {}});
      }
      if (holder.version == key) holder.broken = false;
    }
  }
  group.phase = Phase::Waiting;
  group.stopped.clear();
  group.asked_to_stop.clear();
  arm(group.deadline, TimerKind::FetchDeadline, id.value());
  tell_group(group, Decided{group.last});
  for (const WorkerId member : group.members) {
    if (!member.valid() || !alive(member)) continue;
    for (ClearJob& job : clears[member.index()]) {
      job.deadline = group.deadline;
      if (job.reason == ClearReason::Fetch) send_clear(member, job);
    }
  }
  dirty_groups.insert(id);
}

}  // namespace holdfast
