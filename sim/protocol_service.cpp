#include "sim/protocol_service.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "sim/protocol_state.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kMostBroken = 20;

NodeId home_of(const ServiceSetup& setup, const ProtocolOptions& options) {
  if (options.coordinator_at.valid()) return options.coordinator_at;
  if (setup.groups.empty() || setup.groups.front().members.empty()) {
    throw Error(ErrorCode::BadValue, "a service needs a group with a member");
  }
  return setup.groups.front().members.front();
}

bool is_for_everyone(const Call& call) {
  return std::holds_alternative<PublishCall>(call) || std::holds_alternative<UnpublishCall>(call) ||
         std::holds_alternative<FetchCall>(call) || std::holds_alternative<CancelCall>(call) ||
         std::holds_alternative<LeaveCall>(call);
}

void check_group(const ServiceSetup& setup, const ServiceGroup& group) {
  if (!group.space.valid() || group.space.index() >= setup.spaces.size()) {
    throw Error(ErrorCode::BadValue, fmt::format("group '{}' names no known space", group.name));
  }
  const ModelSpace& space = *setup.spaces[group.space.index()];
  if (group.layout >= space.layouts() || group.members.size() != space.ranks(group.layout)) {
    throw Error(ErrorCode::BadValue,
                fmt::format("group '{}' has {} members; its layout has another number of ranks",
                            group.name, group.members.size()));
  }
}

}  // namespace

ProtocolService::State::State(const Router& machine, ServiceSetup service,
                              const ProtocolOptions& settings)
    : router(machine),
      setup(std::move(service)),
      options(settings),
      worker_at(machine.topology().nodes().size()),
      placements(setup.spaces),
      ways(machine, home_of(setup, settings)),
      faults(machine.topology()) {
  const auto add = [this](NodeId node, const WorkerCard& card) {
    if (!node.valid() || node.index() >= worker_at.size() || worker_at[node.index()].valid()) {
      throw Error(ErrorCode::BadValue, "an endpoint is unknown or has two workers");
    }
    worker_at[node.index()] = WorkerId(workers.size());
    roster.push_back(node);
    workers.emplace_back();
    workers.back().node = node;
    workers.back().card = card;
    workers.back().card.node = node;
  };
  for (std::size_t g = 0; g < setup.groups.size(); ++g) {
    const ServiceGroup& group = setup.groups[g];
    check_group(setup, group);
    groups.emplace_back();
    groups.back().trainer = group.trainer;
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      groups.back().members.emplace_back(workers.size());
      WorkerCard card;
      card.space = group.space;
      card.reliable = group.reliable;
      card.group = GroupId(g);
      card.shard = {group.layout, rank};
      card.slots = group.slots;
      add(group.members[rank], card);
    }
  }
  for (const ServiceMemory& memory : setup.memories) {
    WorkerCard card;
    card.space = memory.space;
    card.host_memory = true;
    card.reliable = memory.reliable;
    card.shard = kWholeModel;
    card.slots = 0;
    card.budget = memory.budget;
    add(memory.node, card);
    workers.back().wanted = true;
  }
  NetworkOptions ports = options.network;
  ports.links = PlatformLinks::All;
  for (const auto& space : setup.spaces) ports.block = std::max(ports.block, space->block_size());
  network.emplace(router, roster, std::span<const DataPath>{}, options.meters, ports);
  for (std::size_t w = 0; w < workers.size(); ++w) network->kill(WorkerId(w));
}

// --- Members -------------------------------------------------------------------------------------

void ProtocolService::State::begin(std::function<void()> users) {
  network->call_at(Time(0), [this, users = std::move(users)] {
    start_coordinator();
    for (std::size_t w = 0; w < workers.size(); ++w) {
      if (workers[w].wanted) start_worker(WorkerId(w));
    }
    users();
    settle();
  });
}

void ProtocolService::State::start_worker(WorkerId id) {
  Worker& worker = workers[id.index()];
  worker.wanted = true;
  if (worker.life || faults.stopped(worker.node)) return;
  network->restart(id);
  worker.missed.clear();
  LifeWays out;
  out.send = [this, id](ToCoordinator frame) { send_up(id, std::move(frame)); };
  out.finished = [this, id](CallId call, const CallResult& result) {
    told(calls.finished(id, call, result));
  };
  out.runs = [this, id](const std::optional<Version>& version) { look_at_runs(id, version); };
  out.delivered = [this, id](BlockId block, WorkerId source) {
    notify([=](ServiceObserver& to) { to.block_delivered(id, block, source); });
  };
  worker.life = std::make_unique<WorkerLife>(*network, id, ++worker.incarnation, worker.card,
                                             setup.spaces[worker.card.space.index()], placements,
                                             options.agent, options.engine, std::move(out));
  std::erase(suspects, id);
  network->wake_at(id, network->now());
}

void ProtocolService::State::end_life(WorkerId id) {
  Worker& worker = workers[id.index()];
  if (!worker.life) return;
  network->kill(id);
  worker.incarnation = std::max(worker.incarnation, worker.life->agent().incarnation());
  worker.life.reset();
  suspects.push_back(id);
  look_at_runs(id, std::nullopt);
  for (GroupCalls::Ended& ended : calls.gone(id)) told(std::move(ended));
}

void ProtocolService::State::pump(WorkerId id) {
  Worker& worker = workers[id.index()];
  if (!worker.life) return;
  worker.life->loop().pump();
  network->wake_at(id, worker.life->loop().next_deadline());
  if (!options.check_invariants) return;
  check(broken_invariants(worker.life->agent(), network->now()),
        fmt::format("worker {}", id.value()));
}

void ProtocolService::State::look_at_runs(WorkerId id, const std::optional<Version>& version) {
  workers[id.index()].runs = version;
  const GroupId group = workers[id.index()].card.group;
  if (!group.valid()) return;
  Group& whole = groups[group.index()];
  const bool all = std::all_of(whole.members.begin(), whole.members.end(), [&](WorkerId member) {
    return workers[member.index()].runs == version;
  });
  const std::optional<Version> runs = all ? version : std::nullopt;
  if (runs == whole.runs) return;
  whole.runs = runs;
  notify([group, runs](ServiceObserver& to) { to.runs_changed(group, runs); });
}

// --- Calls ---------------------------------------------------------------------------------------

GroupCall ProtocolService::State::call(GroupId group, Call what, Time deadline) {
  std::vector<WorkerId> who;
  for (const WorkerId member : groups[group.index()].members) {
    if (!workers[member.index()].life) continue;
    who.push_back(member);
    if (!is_for_everyone(what)) break;
  }
  if (auto* cancel = std::get_if<CancelCall>(&what)) cancel->fetch = calls.open_fetch(group);
  GroupCalls::Opened opened = calls.open(group, who, what);
  told(std::move(opened.ended));
  if (who.empty()) return opened.call;
  std::vector<HeldCall>& held = groups[group.index()].held;
  held.push_back({opened.call, what, deadline, std::move(who)});
  release_calls(group);
  if (held.empty()) return opened.call;
  network->call_at(deadline, [this, group, number = opened.call] {
    std::vector<HeldCall>& late = groups[group.index()].held;
    const auto at = std::find_if(late.begin(), late.end(),
                                 [number](const HeldCall& c) { return c.number == number; });
    if (at == late.end()) return;
    const HeldCall overdue = std::move(*at);
    late.erase(at);
    make(overdue);
    settle();
  });
  return opened.call;
}

// The members that live have sessions, in one generation of their group.
bool ProtocolService::State::joined(const std::vector<WorkerId>& who) const {
  std::optional<Generation> generation;
  for (const WorkerId worker : who) {
    const auto& life = workers[worker.index()].life;
    if (!life) continue;
    if (!life->agent().connected()) return false;
    const Generation here = life->agent().report().generation;
    if (generation && *generation != here) return false;
    generation = here;
  }
  return true;
}

void ProtocolService::State::release_calls(GroupId group) {
  std::vector<HeldCall>& held = groups[group.index()].held;
  while (!held.empty() && joined(held.front().who)) {
    const HeldCall call = std::move(held.front());
    held.erase(held.begin());
    make(call);
  }
}

void ProtocolService::State::make(const HeldCall& call) {
  for (const WorkerId worker : call.who) {
    const auto& life = workers[worker.index()].life;
    if (!life) continue;
    life->loop().call(call.number, call.what, call.deadline);
    network->wake_at(worker, network->now());
  }
}

void ProtocolService::State::told(std::optional<GroupCalls::Ended> ended) {
  if (!ended) return;
  if (ended->leave && ended->result.status == CallStatus::Ok) {
    const auto& members = groups[ended->group.index()].members;
    leaving.insert(leaving.end(), members.begin(), members.end());
  }
  notify([end = std::move(*ended)](ServiceObserver& to) {
    to.call_ended(end.group, end.call, end.result);
  });
}

// The observer may call the service, which may bring more news.
void ProtocolService::State::settle() {
  if (settling) return;
  settling = true;
  while (!notices.empty() || !leaving.empty()) {
    for (const WorkerId worker : std::exchange(leaving, {})) {
      workers[worker.index()].wanted = false;
      end_life(worker);
      std::erase(suspects, worker);
    }
    if (notices.empty()) continue;
    const auto notice = std::move(notices.front());
    notices.pop_front();
    notice(*observer);
  }
  settling = false;
}

void ProtocolService::State::check(const std::vector<std::string>& wrong,
                                   const std::string& where) {
  for (const std::string& what : wrong) {
    if (broken.size() == kMostBroken) return;
    broken.push_back(fmt::format("{} {}: {}", to_string(network->now()), where, what));
  }
}

// --- Faults --------------------------------------------------------------------------------------

void ProtocolService::State::apply(const FaultChange& change) {
  faults.apply(change);
  for (const NodeId node : change.workers) {
    const WorkerId id = worker_at[node.index()];
    if (!id.valid()) continue;
    if (faults.stopped(node)) {
      end_life(id);
    } else if (workers[id.index()].wanted) {
      start_worker(id);
    }
  }
  std::vector<LinkShare> shares;
  for (const LinkId link : change.links) shares.push_back({link, faults.share(link)});
  if (!shares.empty()) {
    network->limit(shares);
    ways.look([this](LinkId link) { return faults.share(link) != 0; });
  }
  if (!change.coordinator) return;
  if (faults.coordinator_stopped()) {
    stop_coordinator();
  } else {
    start_coordinator();
  }
}

// --- The service ---------------------------------------------------------------------------------

ProtocolService::ProtocolService(const Router& router, ServiceSetup setup,
                                 const ProtocolOptions& options)
    : state_(std::make_unique<State>(router, std::move(setup), options)) {}
ProtocolService::~ProtocolService() = default;

void ProtocolService::run(ServiceObserver& observer, std::function<void()> begin) {
  state_->observer = &observer;
  state_->begin(std::move(begin));
  state_->network->run(
      [this](WorkerId worker) {
        state_->pump(worker);
        state_->settle();
      },
      [this] { state_->network->stop(); });
}

void ProtocolService::stop() {
  state_->network->stop();
}
Time ProtocolService::now() const {
  return state_->network->now();
}

void ProtocolService::call_at(Time at, std::function<void()> what) {
  state_->network->call_at(at, [this, what = std::move(what)] {
    what();
    state_->settle();
  });
}

void ProtocolService::start(GroupId group) {
  for (const WorkerId member : state_->groups[group.index()].members) start_worker(member);
}

void ProtocolService::kill(GroupId group) {
  for (const WorkerId member : state_->groups[group.index()].members) kill_worker(member);
}

bool ProtocolService::running(GroupId group) const {
  const auto& members = state_->groups[group.index()].members;
  return std::all_of(members.begin(), members.end(), [this](WorkerId member) {
    return state_->workers[member.index()].life != nullptr;
  });
}

GroupCall ProtocolService::call(GroupId group, const Call& call, Time deadline) {
  return state_->call(group, call, deadline);
}
void ProtocolService::apply(const FaultChange& change) {
  state_->apply(change);
}
const SimNetwork::Moved& ProtocolService::moved() const {
  return state_->network->moved();
}
std::vector<SimNetwork::Use> ProtocolService::channel_use(Time makespan) const {
  return state_->network->channel_use(makespan);
}
FlowDriver ProtocolService::driver() const {
  return state_->network->driver();
}

void ProtocolService::kill_worker(WorkerId worker) {
  state_->workers[worker.index()].wanted = false;
  state_->end_life(worker);
}
void ProtocolService::start_worker(WorkerId worker) {
  state_->start_worker(worker);
}
void ProtocolService::stop_coordinator() {
  state_->stop_coordinator();
}
void ProtocolService::start_coordinator() {
  state_->start_coordinator();
}

const Coordinator* ProtocolService::coordinator() const {
  return state_->coordinator.get();
}
const Agent* ProtocolService::agent(WorkerId worker) const {
  const auto& life = state_->workers[worker.index()].life;
  return life ? &life->agent() : nullptr;
}
SimNetwork& ProtocolService::network() {
  return *state_->network;
}
const std::vector<std::string>& ProtocolService::broken() const {
  return state_->broken;
}
const ProtocolService::Traffic& ProtocolService::traffic() const {
  return state_->traffic;
}

}  // namespace holdfast::sim
