// From fetches to plans: who is planned together, who joins what runs, and what comes of an answer.
#include <algorithm>
#include <utility>

#include "core/catalog/coordinator_state.hpp"
#include "core/error.hpp"

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
    request.task.joiners = *joiners;
    std::set<WorkerId> closed = transfer.lost;
    auto verified = std::make_shared<Holdings>();
    for (const WorkerId holder : find(key)->holders) {
      const Holder* held = holder_of(holder, key);
      if (!serves(*held)) closed.insert(holder);
      for (const BlockSpan& span : spans_of(space(key.first), held->shard, held->verified)) {
        verified->add(holder, span);
      }
    }
    request.task.closed.assign(closed.begin(), closed.end());
    for (const auto& [worker, reader] : transfer.readers) {
      request.task.receiving.push_back(worker);
    }
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
      wait_again(worker);
      continue;
    }
    Reader reader;
    reader.incarnation = w.incarnation;
    transfer.readers.emplace(worker, std::move(reader));
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
  transfer.first = transfer.ref = std::move(ref);
  const std::set<WorkerId> wanted = std::exchange(transfer.wanted, {});
  for (const WorkerId worker : wanted) {
    Worker& w = workers[worker.index()];
    Reader reader;
    reader.incarnation = w.incarnation;
    reader.offload = w.card.host_memory;
    transfer.readers.emplace(worker, std::move(reader));
    add_holder(worker, key, w.card.shard);
  }
  GrantRequests asked;
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
  ask_grants(id, transfer, asked);
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

void Coordinator::State::ask_grants(PlanNumber id, Transfer& transfer, const GrantRequests& asked) {
  for (const auto& [source, readers] : asked) {
    if (!alive(source)) {
      transfer.lost.insert(source);
      dirty_transfers.insert(id);
      continue;
    }
    Worker& w = workers[source.index()];
    GrantReads message{transfer.ref, {}};
    for (const auto& [reader, granted] : readers) {
      transfer.readers[reader].awaited.insert(source);
      Grant& grant = w.readers[{reader, id}];
      if (grant.incarnation == 0) ++grants;
      grant.incarnation = granted.incarnation;
      grant.state = GrantState::Asked;
      grant.version = transfer.version.second;
      workers[reader.index()].sources.insert({id, source});
      message.readers.push_back(granted);
    }
    send(source, std::move(message));
  }
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
    if (!begun && !workers[worker.index()].card.host_memory) wait_again(worker);
  }
}

void Coordinator::State::wait_again(WorkerId member) {
  const GroupId id = workers[member.index()].card.group;
  if (groups[id.index()].phase == Phase::Filling) groups[id.index()].phase = Phase::Waiting;
  dirty_groups.insert(id);
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
    wait_again(worker);
  }
  forget_transfer_if_done(id);
}

}  // namespace holdfast
