#include <algorithm>

#include <fmt/format.h>

#include "core/catalog/coordinator_state.hpp"
#include "core/error.hpp"
#include "core/mutant.hpp"

namespace holdfast {
namespace {

std::vector<BlockSpan> spans_of(const ModelSpace& space, ShardId shard, const BlockSet& blocks) {
  if (blocks.all()) return {space.spans(shard).begin(), space.spans(shard).end()};
  std::vector<BlockSpan> result;
  std::uint32_t number = 0;
  for (const BlockSpan& span : space.spans(shard)) {
    for (std::uint32_t i = 0; i < span.count; ++i, ++number) {
      if (!blocks.has(number)) continue;
      const BlockId block(span.first.value() + i);
      if (!result.empty() && result.back().first.value() + result.back().count == block.value()) {
        ++result.back().count;
      } else {
        result.push_back({block, 1});
      }
    }
  }
  return result;
}

}  // namespace

// Everyone who waits for the version is planned together.
void Coordinator::State::gather(VersionKey key) {
  VersionState* version = find(key);
  if (version == nullptr || version->gather_at > now) return;
  version->gather_at = Time::never();
  if (!fetchable(*version) && version->offloads.empty()) return;
  std::map<WorkerId, BlockSet> wants;
  const std::set<GroupId> waiting =
      fetchable(*version) ? std::exchange(version->waiting, {}) : std::set<GroupId>{};
  for (const GroupId id : waiting) {
    Group& group = groups[id.index()];
    group.phase = Phase::Filling;
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const WorkerId member = group.members[rank];
      const Holder* holder = holder_of(member, key);
      if (holder != nullptr && holder->verified.all()) continue;
      if (!workers[member.index()].plans.empty()) continue;
      wants.emplace(member, BlockSet::full(space(key.first).blocks({group.layout, rank})));
    }
  }
  for (const auto& [worker, blocks] : version->offloads) {
    if (workers[worker.index()].plans.empty()) wants.emplace(worker, blocks);
  }
  if (wants.empty()) {
    for (const GroupId id : waiting) dirty_groups.insert(id);
    return;
  }
  if (join_running(key, wants)) return;
  const PlanNumber id = (epoch << 32U) | next_plan++;
  Transfer transfer;
  transfer.version = key;
  transfer.asked = now;
  try {
    transfer.demand = demand_for(key, wants);
  } catch (const Error& error) {
    // Some block is with nobody who may be read from: what is covered is judged again when a holder
    // comes or goes, or in a while.
    for (const GroupId group : waiting) {
      groups[group.index()].phase = Phase::Waiting;
      groups[group.index()].trouble = error.message();
      version->waiting.insert(group);
    }
    version->gather_at = now + config.retry_interval;
    return arm(version->gather_at, TimerKind::Gather, 0, key);
  }
  for (const auto& [worker, blocks] : wants) {
    transfer.wanted.insert(worker);
    workers[worker.index()].plans.insert(id);
  }
  out->push_back(MakePlan{id, key.first, transfer.demand, version->digests});
  arm(now + config.plan_deadline, TimerKind::Plan, id);
  transfers.emplace(id, std::move(transfer));
}

// Who wants, wholly, what a running plan carries to others of the same shard is attached to it.
bool Coordinator::State::join_running(VersionKey key, const std::map<WorkerId, BlockSet>& wants) {
  for (auto& [id, transfer] : transfers) {
    if (transfer.version != key || !transfer.ref || !transfer.takes_joiners ||
        transfer.repair != 0 || transfer.readers.empty()) {
      continue;
    }
    const auto joiners = joiners_of(transfer, wants);
    if (!joiners) continue;
    MakeJoin request;
    request.id = id;
    request.request = transfer.repair = next_request++;
    // Those who come feed each other: who wanted nothing when the plan was made may not serve
    // there.
    auto demand = std::make_shared<Demand>(*transfer.demand);
    for (const Joiner& joiner : *joiners) {
      demand->workers[joiner.worker.index()].may_serve =
          workers[joiner.worker.index()].card.reliable || config.serve_from_spot;
    }
    request.demand = std::move(demand);
    request.plan = live_plan(transfer);
    request.tables = transfer.ref->tables;
    request.joiners = *joiners;
    std::set<WorkerId> closed = transfer.lost;
    auto verified = std::make_shared<Holdings>();
    for (const WorkerId holder : find(key)->holders) {
      const Holder* held = holder_of(holder, key);
      if (!serves(*held)) closed.insert(holder);
      for (const BlockSpan& span : spans_of(space(key.first), held->shard, held->verified)) {
        verified->add(holder, span);
      }
    }
    request.closed.assign(closed.begin(), closed.end());
    for (const auto& [worker, reader] : transfer.readers) request.receiving.push_back(worker);
    request.verified = std::move(verified);
    for (const auto& [worker, blocks] : wants) {
      transfer.wanted.insert(worker);
      workers[worker.index()].plans.insert(id);
    }
    transfer.repair_asked = now;
    arm(now + config.plan_deadline, TimerKind::Plan, id);
    out->push_back(std::move(request));
    return true;
  }
  return false;
}

// The classes of the plan that make up what each of them wants; nothing if it does not fit.
std::optional<std::vector<Joiner>> Coordinator::State::joiners_of(
    const Transfer& transfer, const std::map<WorkerId, BlockSet>& wants) {
  std::map<ShardId, std::vector<ClassId>> of_shard;
  std::vector<Joiner> joiners;
  for (const auto& [worker, blocks] : wants) {
    const WorkerCard& card = workers[worker.index()].card;
    const Holder* holder = holder_of(worker, transfer.version);
    if (card.host_memory || (holder != nullptr && !holder->verified.none())) return std::nullopt;
    if (!of_shard.contains(card.shard)) {
      // Somebody who wanted the same, wholly, when the plan was made.
      std::vector<ClassId>& classes = of_shard[card.shard];
      WorkerId like;
      for (const auto& [reader, state] : transfer.readers) {
        if (workers[reader.index()].card.shard == card.shard && !state.offload) like = reader;
      }
      if (!like.valid()) return std::nullopt;
      std::uint32_t covered = 0;
      for (std::uint32_t c = 0; c < transfer.demand->classes.size(); ++c) {
        const BlockClass& block_class = transfer.demand->classes[c];
        const auto& receivers = block_class.receivers;
        if (!std::binary_search(receivers.begin(), receivers.end(), like)) continue;
        classes.emplace_back(c);
        covered += block_count(block_class);
      }
      if (covered != space(transfer.version.first).blocks(card.shard)) return std::nullopt;
    }
    for (const BlockClass& c : transfer.demand->classes) {
      if (std::binary_search(c.receivers.begin(), c.receivers.end(), worker) ||
          std::binary_search(c.holders.begin(), c.holders.end(), worker)) {
        return std::nullopt;  // has been in this plan before
      }
    }
    joiners.push_back({worker, of_shard[card.shard]});
  }
  return joiners;
}

// They become readers; what the later ones are told knows of them.
void Coordinator::State::admit_joiners(Transfer& transfer, const RepairMade& made) {
  auto ref = std::make_shared<PlannedTransfer>(*transfer.ref);
  ++ref->revision;
  ref->demand = made.demand;
  transfer.demand = made.demand;
  const std::set<WorkerId> wanted = std::exchange(transfer.wanted, {});
  for (const WorkerId worker : wanted) {
    Worker& w = workers[worker.index()];
    if (std::binary_search(made.unmended.begin(), made.unmended.end(), worker)) {
      // No room: planned on its own.
      transfer.takes_joiners = false;
      w.plans.erase(made.id);
      Group& group = groups[w.card.group.index()];
      if (group.phase == Phase::Filling) group.phase = Phase::Waiting;
      dirty_groups.insert(w.card.group);
      continue;
    }
    Reader reader;
    reader.incarnation = w.incarnation;
    transfer.readers.emplace(worker, std::move(reader));
    transfer.joined.insert(worker);
    add_holder(worker, transfer.version, w.card.shard);
    ref->shards[worker.index()] = w.card.shard;
    if (!ref->addresses.empty()) ref->addresses[worker.index()] = w.card.address;
  }
  transfer.ref = std::move(ref);
}

// Throws Error(BadValue) if a wanted block is with nobody who may be read from.
std::shared_ptr<const Demand> Coordinator::State::demand_for(
    VersionKey key, const std::map<WorkerId, BlockSet>& wants) {
  const ModelSpace& model = space(key.first);
  DemandBuilder builder(model.model(), key.second, model.block_size(),
                        {model.block_bytes().begin(), model.block_bytes().end()});
  builder.set_verify(config.verify);
  const bool offloading = std::any_of(wants.begin(), wants.end(), [&](const auto& want) {
    return workers[want.first.index()].card.host_memory;
  });
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const Worker& w = workers[i];
    const Holder* holder = holder_of(WorkerId(i), key);
    // What is to be cleared goes on serving as far as that makes the clearing possible; who is to
    // be filled passes on what it has.
    const bool served = holder != nullptr ? !holder->hidden && (!holder->pending || offloading)
                                          : wants.count(WorkerId(i)) != 0;
    const bool may_serve =
        w.incarnation != 0 && served && (w.card.reliable || config.serve_from_spot);
    // A number of its own for who is in no group, above those of all groups.
    const std::uint32_t group = w.known && w.card.group.valid()
                                    ? w.card.group.value()
                                    : static_cast<std::uint32_t>(roster.size()) + i;
    builder.add_worker({roster[i], group, topology.node(roster[i]).memory, may_serve});
  }
  for (const WorkerId worker : find(key)->holders) {
    const Holder* holder = holder_of(worker, key);
    for (const BlockSpan& span : spans_of(model, holder->shard, holder->verified)) {
      builder.holds(worker, span);
    }
  }
  for (const auto& [worker, blocks] : wants) {
    const WorkerCard& card = workers[worker.index()].card;
    for (const BlockSpan& span : spans_of(model, card.shard, blocks)) builder.wants(worker, span);
  }
  return std::make_shared<const Demand>(std::move(builder).build());
}

void Coordinator::State::on(const PlanMade& made) {
  const auto found = transfers.find(made.id);
  if (found == transfers.end() || found->second.ref) return;
  Transfer& transfer = found->second;
  const VersionKey key = transfer.version;
  if (made.plan && made.tables) return begin_plan(made.id, transfer, made);
  const std::set<WorkerId> wanted = transfer.wanted;
  for (const WorkerId worker : wanted) workers[worker.index()].plans.erase(made.id);
  transfers.erase(found);
  VersionState* version = find(key);
  for (const WorkerId worker : wanted) {
    const WorkerCard& card = workers[worker.index()].card;
    if (card.host_memory) {
      version->reason = made.problem;
      continue;
    }
    Group& group = groups[card.group.index()];
    if (group.phase != Phase::Filling) continue;
    group.phase = Phase::Waiting;
    group.trouble = made.problem;
    version->waiting.insert(card.group);
  }
  version->gather_at = now + config.retry_interval;
  arm(version->gather_at, TimerKind::Gather, 0, key);
}

void Coordinator::State::begin_plan(PlanNumber id, Transfer& transfer, const PlanMade& made) {
  const VersionKey key = transfer.version;
  VersionState& version = *find(key);
  auto ref = std::make_shared<PlannedTransfer>();
  ref->id = id;
  ref->space = key.first;
  ref->version = key.second;
  ref->root = version.root;
  ref->retention = version.retention;
  ref->demand = transfer.demand;
  ref->plan = made.plan;
  ref->tables = made.tables;
  ref->shards.reserve(workers.size());
  for (const Worker& w : workers) {
    ref->shards.push_back(w.known ? w.card.shard : kWholeModel);
  }
  // In simulation nobody has an address, and nobody needs the list.
  if (std::any_of(workers.begin(), workers.end(),
                  [](const Worker& w) { return !w.card.address.empty(); })) {
    ref->addresses.reserve(workers.size());
    for (const Worker& w : workers) ref->addresses.push_back(w.card.address);
  }
  transfer.plan = made.plan;
  transfer.ref = std::move(ref);
  const std::set<WorkerId> wanted = std::exchange(transfer.wanted, {});
  for (const WorkerId worker : wanted) {
    Worker& w = workers[worker.index()];
    Reader reader;
    reader.incarnation = w.incarnation;
    reader.offload = w.card.host_memory;
    transfer.readers.emplace(worker, std::move(reader));
    add_holder(worker, key, w.card.shard);
  }
  std::map<WorkerId, std::map<WorkerId, GrantedReader>> asked;
  std::set<WorkerId> sources;
  const auto ask = [&](WorkerId source, WorkerId child) {
    sources.insert(source);
    if (!transfer.readers.contains(child)) return;
    asked[source].try_emplace(child, GrantedReader{child, transfer.readers[child].incarnation, {}});
  };
  for (const Stripe& stripe : transfer.plan->stripes) {
    for (const Edge& edge : stripe.edges) {
      ask(edge.parent, edge.child);
      if (edge.alternate.valid()) ask(edge.alternate, edge.child);
    }
  }
  std::map<WorkerId, std::vector<GrantedReader>> by_source;
  for (auto& [source, readers] : asked) {
    for (auto& [reader, granted] : readers) by_source[source].push_back(std::move(granted));
  }
  ask_grants(id, transfer, by_source);
  // What died or was hidden while the plan was made.
  for (const WorkerId source : sources) {
    const Holder* holder = holder_of(source, key);
    const bool reads = transfer.readers.contains(source);
    const bool was_reader =
        holder == nullptr ||
        (!reads && !holder->verified.all() && !transfer.demand->workers[source.index()].may_serve);
    if (!alive(source) || was_reader) transfer.lost.insert(source);
  }
  if (!transfer.lost.empty()) dirty_transfers.insert(id);
  for (const WorkerId worker : wanted) start_if_granted(id, transfer, worker);
}

void Coordinator::State::ask_grants(
    PlanNumber id, Transfer& transfer,
    const std::map<WorkerId, std::vector<GrantedReader>>& by_source) {
  for (const auto& [source, readers] : by_source) {
    if (!alive(source)) {
      transfer.lost.insert(source);
      dirty_transfers.insert(id);
      continue;
    }
    Worker& w = workers[source.index()];
    for (const GrantedReader& reader : readers) {
      transfer.readers[reader.reader].awaited.insert(source);
      Grant& grant = w.readers[{reader.reader, id}];
      if (grant.incarnation == 0) ++grants;
      grant.incarnation = reader.incarnation;
      grant.state = GrantState::Asked;
      grant.version = transfer.version.second;
      workers[reader.reader.index()].sources.insert({id, source});
    }
    send(source, GrantReads{transfer.ref, readers});
  }
}

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
    // Taken away by the source itself: it revokes who does not finish before its deadline.
    if (!asked_for) lose_source(gone.plan, worker);
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
    // Stopped to be planned anew.
    group.phase = Phase::Waiting;
    dirty_groups.insert(id);
    return;
  }
  // The worker gave up by itself: its deadline came, or it has no memory.
  CallResult result;
  result.status = CallStatus::DeadlineExceeded;
  result.who = {worker};
  finish_fetch(id, result);
}

void Coordinator::State::on(WorkerId worker, const Switched& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end() || message.stripe.index() >= found->second.plan->stripes.size()) {
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
  if (message.cause == FailureKind::DigestMismatch) return;
  if (transfer.lost.contains(message.to)) dirty_transfers.insert(message.plan);
}

void Coordinator::State::on(WorkerId worker, const ParentWanted& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end()) return;
  const auto reader = found->second.readers.find(worker);
  if (reader == found->second.readers.end()) return;
  found->second.orphans[{worker, message.stripe}] = message.lost;
  dirty_transfers.insert(message.plan);
}

void Coordinator::State::on(WorkerId /*worker*/, const SourceIsSlow& message) {
  const auto found = transfers.find(message.plan);
  if (found == transfers.end()) return;
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
  request.lost.assign(transfer.lost.begin(), transfer.lost.end());
  for (const WorkerId holder : find(transfer.version)->holders) {
    const Holder* held = holder_of(holder, transfer.version);
    // Whoever joined is not known to those who began before: they could not find its blocks.
    if (!serves(*held) || transfer.joined.contains(holder)) {
      request.closed.push_back(holder);
    } else if (held->verified.all() && !transfer.lost.contains(holder)) {
      request.complete.push_back(holder);
    }
  }
  for (const auto& [orphan, from] : transfer.orphans) {
    request.orphans.push_back({orphan.first, orphan.second, from});
  }
  for (const auto& [worker, reader] : transfer.readers) {
    if (reader.phase != ReaderPhase::Stopping) request.readers.push_back(worker);
  }
  request.slow.assign(transfer.slow.begin(), transfer.slow.end());
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
  std::map<WorkerId, std::map<WorkerId, GrantedReader>> asked;
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
  std::map<WorkerId, std::vector<GrantedReader>> by_source;
  for (auto& [source, readers] : asked) {
    for (auto& [reader, granted] : readers) by_source[source].push_back(std::move(granted));
  }
  ask_grants(made.id, transfer, by_source);
  dirty_transfers.insert(made.id);
  std::vector<WorkerId> waiting;
  for (const auto& [worker, reader] : transfer.readers) waiting.push_back(worker);
  for (const WorkerId worker : waiting) start_if_granted(made.id, transfer, worker);
  replan(made.id, {made.unmended.begin(), made.unmended.end()});
}

// These readers cannot go on in this plan: what they miss is planned anew, from whoever has it.
void Coordinator::State::replan(PlanNumber id, const std::set<WorkerId>& readers) {
  for (const WorkerId worker : readers) {
    const auto found = transfers.find(id);
    if (found == transfers.end()) return;
    const auto reader = found->second.readers.find(worker);
    if (reader == found->second.readers.end()) continue;
    const bool begun = reader->second.phase == ReaderPhase::Begun;
    stop_reader(id, worker);
    const WorkerCard& card = workers[worker.index()].card;
    if (begun || card.host_memory) continue;
    Group& group = groups[card.group.index()];
    if (group.phase != Phase::Filling) continue;
    group.phase = Phase::Waiting;
    dirty_groups.insert(card.group);
  }
}

void Coordinator::State::plan_overdue(PlanNumber id) {
  const auto found = transfers.find(id);
  if (found == transfers.end()) return;
  Transfer& transfer = found->second;
  if (!transfer.ref) {
    if (transfer.asked + config.plan_deadline > now) return;
    return on(PlanMade{id, nullptr, nullptr, "the planner did not answer"});
  }
  if (transfer.repair == 0 || transfer.repair_asked + config.plan_deadline > now) return;
  transfer.repair = 0;
  dirty_transfers.insert(id);
  const std::set<WorkerId> joiners = std::exchange(transfer.wanted, {});
  for (const WorkerId worker : joiners) {
    workers[worker.index()].plans.erase(id);
    const GroupId group = workers[worker.index()].card.group;
    if (groups[group.index()].phase == Phase::Filling) {
      groups[group.index()].phase = Phase::Waiting;
    }
    dirty_groups.insert(group);
  }
}

}  // namespace holdfast
