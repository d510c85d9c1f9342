// Grants before reads, reads, and how readers stop.
#include <algorithm>
#include <utility>

#include "core/catalog/coordinator_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {

void Coordinator::State::on(WorkerId worker, const Granted& message) {
  const auto found = transfers.find(message.plan);
  Worker& w = workers[worker.index()];
  for (std::size_t i = 0; i < message.readers.size(); ++i) {
    const GrantKey key{message.readers[i], message.plan};
    const auto grant = w.readers.find(key);
    if (grant == w.readers.end()) continue;
    if (grant->second.state != GrantState::Asked) continue;
    if (found == transfers.end()) {
      end_grant(worker, key);
      continue;
    }
    grant->second.state = GrantState::Held;
    const auto reader = found->second.readers.find(key.reader);
    if (reader == found->second.readers.end()) continue;
    reader->second.awaited.erase(worker);
    reader->second.access[worker] = message.access[i];
  }
  for (const WorkerId refused : message.refused) {
    const GrantKey key{refused, message.plan};
    if (!w.readers.contains(key)) continue;
    end_grant(worker, key);  // it may have let the reader in before, and is asked once more
    if (found == transfers.end()) continue;
    const auto reader = found->second.readers.find(refused);
    if (reader == found->second.readers.end()) continue;
    reader->second.awaited.erase(worker);
    found->second.lost.insert(worker);
    dirty_transfers.insert(message.plan);
  }
  if (found == transfers.end()) return;
  for (const WorkerId reader : message.readers)
    start_if_granted(message.plan, found->second, reader);
  for (const WorkerId reader : message.refused) {
    start_if_granted(message.plan, found->second, reader);
  }
}

LiveEdge Coordinator::State::edge_of(const Transfer& transfer, WorkerId child, StripeId stripe,
                                     bool& found) const {
  found = true;
  if (const auto reader = transfer.readers.find(child); reader != transfer.readers.end()) {
    const auto live = reader->second.edges.find(stripe);
    if (live != reader->second.edges.end()) return live->second;
  }
  const std::vector<Edge>& edges = transfer.plan->stripes[stripe.index()].edges;
  const auto at = std::lower_bound(edges.begin(), edges.end(), child,
                                   [](const Edge& edge, WorkerId id) { return edge.child < id; });
  if (at == edges.end() || at->child != child) {
    found = false;
    return {};
  }
  LiveEdge live;
  live.stripe = stripe;
  live.child = child;
  live.parent = at->parent;
  live.alternate = at->alternate;
  live.path = at->path;
  live.window = at->window;
  return live;
}

// Begin, or Change, once every source that the reader is to read from has let it in.
void Coordinator::State::start_if_granted(PlanNumber id, Transfer& transfer, WorkerId worker) {
  const auto found = transfer.readers.find(worker);
  if (found == transfer.readers.end()) return;
  Reader& reader = found->second;
  if (!reader.awaited.empty() || reader.phase == ReaderPhase::Stopping) return;
  std::vector<SourceAccess> access;
  for (const auto& [source, key] : reader.access) access.push_back({source, key});
  if (reader.phase == ReaderPhase::Granting) {
    // A parent that is lost before the reader has begun: the repair comes first.
    for (std::uint32_t s = 0; s < transfer.plan->stripes.size(); ++s) {
      bool there = false;
      const LiveEdge edge = edge_of(transfer, worker, StripeId(s), there);
      if (there && transfer.lost.contains(edge.parent)) return;
    }
    reader.phase = ReaderPhase::Begun;
    std::vector<LiveEdge> edges;
    for (const auto& [stripe, edge] : reader.edges) edges.push_back(edge);
    const WorkerCard& card = workers[worker.index()].card;
    const Destination destination =
        card.host_memory ? Destination::Shadow : groups[card.group.index()].call.destination;
    send(worker, Begin{transfer.ref, destination, std::move(access), std::move(edges)});
  } else if (!reader.untold.empty()) {
    Change change;
    change.plan = id;
    for (const StripeId stripe : reader.untold) {
      change.drops.push_back(stripe);
      change.edges.push_back(reader.edges[stripe]);
    }
    change.sources = std::move(access);
    send(worker, std::move(change));
  }
  reader.untold.clear();
  reader.access.clear();
}

void Coordinator::State::end_grant(WorkerId source, GrantKey key) {
  Worker& w = workers[source.index()];
  const auto grant = w.readers.find(key);
  if (grant == w.readers.end() || grant->second.state == GrantState::Ending) return;
  grant->second.state = GrantState::Ending;
  send(source,
       EndReads{{{key.reader, grant->second.incarnation, grant->second.version, key.plan}}});
}

void Coordinator::State::forget_grant(WorkerId source, GrantKey key) {
  if (workers[source.index()].readers.erase(key) == 0) return;
  --grants;
  workers[key.reader.index()].sources.erase({key.plan, source});
}

void Coordinator::State::on(WorkerId worker, const GrantsGone& message) {
  for (const ReadGrant& gone : message.grants) {
    const GrantKey key{gone.reader, gone.plan};
    const Worker& w = workers[worker.index()];
    const auto grant = w.readers.find(key);
    if (grant == w.readers.end() || grant->second.incarnation != gone.incarnation) continue;
    const bool asked_for = grant->second.state == GrantState::Ending;
    forget_grant(worker, key);
    if (asked_for) continue;
    // Taken away by the source itself: it revokes who does not finish before its deadline.
    const auto transfer = transfers.find(gone.plan);
    if (transfer == transfers.end()) continue;
    const auto reader = transfer->second.readers.find(gone.reader);
    if (reader != transfer->second.readers.end()) reader->second.awaited.erase(worker);
    lose_source(gone.plan, worker);
  }
}

// The reader is done with the plan, or dead: whoever lets it read is told to end that.
void Coordinator::State::release_reader(PlanNumber id, WorkerId worker) {
  Worker& w = workers[worker.index()];
  w.plans.erase(id);
  std::vector<WorkerId> sources;
  for (auto at = w.sources.lower_bound({id, WorkerId(0U)});
       at != w.sources.end() && at->first == id; ++at) {
    sources.push_back(at->second);
  }
  for (const WorkerId source : sources) {
    if (mutated(Mutant::KeepDeadLease) && w.incarnation == 0) continue;
    end_grant(source, {worker, id});
  }
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  found->second.wanted.erase(worker);
  found->second.readers.erase(worker);
  forget_transfer_if_done(id);
}

void Coordinator::State::forget_transfer_if_done(PlanNumber id) {
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  if (!found->second.readers.empty() || !found->second.wanted.empty()) return;
  transfers.erase(found);
  dirty_transfers.erase(id);
}

// Its reads are given up; its children need someone else.
void Coordinator::State::stop_reader(PlanNumber id, WorkerId worker) {
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  Transfer& transfer = found->second;
  if (transfer.wanted.erase(worker) != 0) {
    workers[worker.index()].plans.erase(id);
    return forget_transfer_if_done(id);
  }
  const auto reader = transfer.readers.find(worker);
  if (reader == transfer.readers.end()) return;
  lose_source(id, worker);
  if (reader->second.phase == ReaderPhase::Stopping) return;
  if (reader->second.phase == ReaderPhase::Granting) return release_reader(id, worker);
  reader->second.phase = ReaderPhase::Stopping;
  send(worker, Stop{id});
}

void Coordinator::State::on(WorkerId worker, const TransferStopped& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  if (Holder* holder = holder_of(worker, key)) verify_blocks(worker, *holder, message.verified);
  const auto found = transfers.find(message.plan);
  if (found == transfers.end()) return;
  const auto reader = found->second.readers.find(worker);
  if (reader == found->second.readers.end()) return;
  const bool asked_for = reader->second.phase == ReaderPhase::Stopping;
  const bool offload = reader->second.offload;
  lose_source(message.plan, worker);
  release_reader(message.plan, worker);
  if (offload) {
    find(key)->offloads.erase(worker);
    judge_soon(key);
    return;
  }
  const GroupId id = workers[worker.index()].card.group;
  Group& group = groups[id.index()];
  if (group.phase != Phase::Filling || group.last.result.version != message.version) return;
  if (asked_for) {
    return wait_again(worker);  // stopped to be planned anew
  }
  // The worker gave up by itself: its deadline came, or it has no memory.
  CallResult result;
  result.status = CallStatus::DeadlineExceeded;
  result.who = {worker};
  finish_fetch(id, result);
}

}  // namespace holdfast
