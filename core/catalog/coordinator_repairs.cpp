// Running plans that are mended: sources that are lost or slow, and new parents.
#include <algorithm>
#include <utility>

#include "core/catalog/coordinator_state.hpp"

namespace holdfast {

void Coordinator::State::on(WorkerId worker, const Switched& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end() || !found->second.ref ||
      message.stripe.index() >= found->second.plan->stripes.size() ||
      message.to.index() >= workers.size()) {
    return;
  }
  Transfer& transfer = found->second;
  const auto reader = transfer.readers.find(worker);
  bool there = false;
  LiveEdge edge = edge_of(transfer, worker, message.stripe, there);
  if (reader == transfer.readers.end() || !there || edge.parent != message.from) return;
  edge.parent = message.to;
  edge.alternate = WorkerId();
  if (edge.alternate_path != Path{}) edge.path = edge.alternate_path;
  edge.parent_has_all = edge.alternate_has_all;
  reader->second.edges[message.stripe] = edge;
  if (transfer.lost.contains(message.to)) dirty_transfers.insert(message.plan);
}

void Coordinator::State::on(WorkerId worker, const ParentWanted& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end() || !found->second.ref ||
      message.stripe.index() >= found->second.plan->stripes.size() ||
      message.lost.index() >= workers.size()) {
    return;
  }
  if (!found->second.readers.contains(worker)) return;
  found->second.orphans[{worker, message.stripe}] = message.lost;
  dirty_transfers.insert(message.plan);
}

void Coordinator::State::on(WorkerId /*worker*/, const SourceIsSlow& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end() || message.source.index() >= workers.size()) return;
  // Each move cancels reads in flight: where everybody seems slow, it is the plan that hoped for
  // too much, and moving on would never end.
  constexpr std::uint32_t kMostMoves = 2;
  if (found->second.slow_moves[message.source] >= kMostMoves) return;
  found->second.slow.insert(message.source);
  dirty_transfers.insert(message.plan);
}

void Coordinator::State::lose_source(PlanNumber id, WorkerId source) {
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  found->second.lost.insert(source);
  dirty_transfers.insert(id);
}

// The plan as it is carried out now: with what readers changed by themselves or were told.
std::shared_ptr<const Plan> Coordinator::State::live_plan(const Transfer& transfer) {
  auto plan = std::make_shared<Plan>(*transfer.plan);
  for (const auto& [worker, reader] : transfer.readers) {
    for (const auto& [stripe, live] : reader.edges) {
      std::vector<Edge>& edges = plan->stripes[stripe.index()].edges;
      const auto at =
          std::lower_bound(edges.begin(), edges.end(), worker,
                           [](const Edge& edge, WorkerId id) { return edge.child < id; });
      const Edge edge{worker, live.parent, live.alternate, live.path, live.window};
      if (at != edges.end() && at->child == worker) {
        *at = edge;
      } else {
        edges.insert(at, edge);
      }
    }
  }
  return plan;
}

bool Coordinator::State::needs_repair(const Transfer& transfer) const {
  if (!transfer.orphans.empty() || !transfer.slow.empty()) return true;
  if (transfer.lost.empty()) return false;
  // Joiners have edges that the plan does not name.
  for (const auto& [worker, reader] : transfer.readers) {
    if (reader.phase == ReaderPhase::Stopping) continue;
    for (const auto& [stripe, edge] : reader.edges) {
      if (transfer.lost.contains(edge.parent)) return true;
    }
  }
  for (std::uint32_t s = 0; s < transfer.plan->stripes.size(); ++s) {
    for (const Edge& planned : transfer.plan->stripes[s].edges) {
      const auto reader = transfer.readers.find(planned.child);
      if (reader == transfer.readers.end() || reader->second.phase == ReaderPhase::Stopping) {
        continue;
      }
      if (!reader->second.edges.contains(StripeId(s)) && transfer.lost.contains(planned.parent)) {
        return true;
      }
    }
  }
  return false;
}

// By worker. Whoever joined is not known to those who began before: they could not find its blocks.
std::vector<bool> Coordinator::State::known_to_all(const Transfer& transfer) const {
  std::vector<bool> known(workers.size());
  for (const BlockClass& c : transfer.first->demand->classes) {
    for (const WorkerId holder : c.holders) known[holder.index()] = true;
    for (const WorkerId receiver : c.receivers) known[receiver.index()] = true;
  }
  return known;
}

// Asks for new parents, one request at a time.
void Coordinator::State::repair(PlanNumber id) {
  const auto found = transfers.find(id);
  if (found == transfers.end() || !found->second.ref || found->second.repair != 0) return;
  Transfer& transfer = found->second;
  // Whoever waited only for sources that are lost, and does not read from them at first.
  std::vector<WorkerId> waiting;
  for (const auto& [worker, reader] : transfer.readers) {
    if (reader.phase == ReaderPhase::Granting && reader.awaited.empty()) waiting.push_back(worker);
  }
  for (const WorkerId worker : waiting) start_if_granted(id, transfer, worker);
  if (!needs_repair(transfer)) return;
  MakeRepair request;
  request.id = id;
  request.request = transfer.repair = next_request++;
  request.demand = transfer.demand;
  request.plan = live_plan(transfer);
  request.tables = transfer.ref->tables;
  RepairTask& task = request.task;
  task.lost.assign(transfer.lost.begin(), transfer.lost.end());
  const std::vector<bool> known = known_to_all(transfer);
  for (const WorkerId holder : find(transfer.version)->holders) {
    const Holder* held = holder_of(holder, transfer.version);
    if (!serves(*held) || !known[holder.index()]) {
      task.closed.push_back(holder);
    } else if (held->verified.all() && !transfer.lost.contains(holder)) {
      task.complete.push_back(holder);
    }
  }
  for (const auto& [orphan, from] : transfer.orphans) {
    task.orphans.push_back({orphan.first, orphan.second, from});
  }
  for (const auto& [worker, reader] : transfer.readers) {
    if (reader.phase != ReaderPhase::Stopping) task.readers.push_back(worker);
  }
  task.slow.assign(transfer.slow.begin(), transfer.slow.end());
  for (const WorkerId source : transfer.slow) ++transfer.slow_moves[source];
  transfer.orphans.clear();
  transfer.slow.clear();
  transfer.repair_asked = now;
  arm(now + config.plan_deadline, TimerKind::Plan, id);
  out->push_back(std::move(request));
}

void Coordinator::State::on(const RepairMade& made) {
  const auto found = transfers.find(made.id);
  if (found == transfers.end() || found->second.repair != made.request) return;
  Transfer& transfer = found->second;
  transfer.repair = 0;
  if (made.demand) admit_joiners(transfer, made);
  GrantRequests asked;
  for (const LiveEdge& edge : made.edges) {
    const auto reader = transfer.readers.find(edge.child);
    if (reader == transfer.readers.end() || reader->second.phase == ReaderPhase::Stopping) continue;
    reader->second.edges[edge.stripe] = edge;
    reader->second.untold.insert(edge.stripe);
    for (const WorkerId source : {edge.parent, edge.alternate}) {
      if (!source.valid()) continue;
      GrantedReader& granted =
          asked[source]
              .try_emplace(edge.child, GrantedReader{edge.child, reader->second.incarnation, {}})
              .first->second;
      // An alternate that has not everything must know whom to answer.
      if (source == edge.parent || !edge.alternate_has_all) granted.edges.push_back(edge);
    }
  }
  ask_grants(made.id, transfer, asked);
  dirty_transfers.insert(made.id);
  std::vector<WorkerId> waiting;
  for (const auto& [worker, reader] : transfer.readers) waiting.push_back(worker);
  for (const WorkerId worker : waiting) start_if_granted(made.id, transfer, worker);
  replan(made.id, {made.unmended.begin(), made.unmended.end()});
  forget_transfer_if_done(made.id);  // the last reader was done while the joiners were planned
}

}  // namespace holdfast
