#include "sim/greedy_service.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/plan/greedy.hpp"

namespace holdfast::sim {
namespace {

constexpr Time kRetry = milliseconds(100);  // where the server cannot be reached

NodeId home_of(const ServiceSetup& setup, NodeId wanted) {
  if (wanted.valid() || setup.groups.empty() || setup.groups.front().members.empty()) return wanted;
  return setup.groups.front().members.front();
}

}  // namespace

// A version on its way.
struct GreedyService::Session {
  // Who was given a piece, in that order: a reader's source is always before it.
  struct Given {
    WorkerId worker;
    bool has = false;
  };

  Session(const Router& router, DirectTransfer& moves)
      : transfer(moves), space(router, moves.demand()), paths(space) {
    given.resize(moves.plan().stripes.size());
    wants.resize(moves.demand().workers.size());
    for (std::size_t s = 0; s < given.size(); ++s) {
      const ClassId c = moves.plan().stripes[s].block_class;
      for (const WorkerId w : moves.demand().classes[c.index()].receivers) {
        wants[w.index()].emplace_back(s);
      }
    }
  }

  [[nodiscard]] const BlockClass& class_of(StripeId stripe) const {
    const ClassId c = transfer.plan().stripes[stripe.index()].block_class;
    return transfer.demand().classes[c.index()];
  }
  [[nodiscard]] bool has(StripeId stripe, WorkerId worker) const {
    const auto& list = given[stripe.index()];
    return std::any_of(list.begin(), list.end(),
                       [worker](const Given& g) { return g.worker == worker && g.has; });
  }
  [[nodiscard]] bool complete(WorkerId worker) const {
    const auto& list = wants[worker.index()];
    return std::all_of(list.begin(), list.end(),
                       [&](StripeId stripe) { return has(stripe, worker); });
  }

  DirectTransfer& transfer;
  PlanSpace space;
  PathChooser paths;
  std::vector<std::vector<Given>> given;     // by stripe
  std::vector<std::vector<StripeId>> wants;  // by worker
};

GreedyService::GreedyService(const Router& router, ServiceSetup setup, const GreedyOptions& options)
    : DirectService(router, std::move(setup), options.direct),
      cap_(options.reader_cap),
      ways_(router, home_of(setup_, options.server_at)),
      open_(members_.size()),
      readers_(members_.size()),
      life_(members_.size()) {}
GreedyService::~GreedyService() = default;

GreedyService::Session* GreedyService::session_of(const DirectTransfer& transfer) {
  for (const auto& [version, session] : sessions_) {
    if (&session->transfer == &transfer) return session.get();
  }
  return nullptr;
}

GreedyService::Session& GreedyService::session(const Version& version, SpaceId space) {
  const auto known = sessions_.find(version);
  if (known != sessions_.end()) return *known->second;
  // Versions that nobody waits for any more go.
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    const Version& old = at->first;
    const bool wanted = std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
      return group.fetch && group.fetch->version == old;
    });
    if (wanted || old > version) {
      ++at;
      continue;
    }
    end_transfer(at->second->transfer);
    at = sessions_.erase(at);
  }
  std::vector<GroupId> holders;
  std::vector<GroupId> receivers;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (setup_.groups[g].space != space) continue;
    (holds(GroupId(g), version) ? holders : receivers).emplace_back(g);
  }
  Demand demand = demand_for(version, holders, receivers);
  Plan plan = greedy_outline(router_.topology(), demand);
  DirectTransfer& transfer = add_transfer(std::move(demand), std::move(plan));
  for (const GroupId group : holders) {
    for (const WorkerId worker : groups_[group.index()].members) join(transfer, worker);
  }
  return *sessions_.emplace(version, std::make_unique<Session>(router_, transfer)).first->second;
}

// --- Requests ------------------------------------------------------------------------------------

bool GreedyService::reachable(WorkerId worker) const {
  return !faults_.coordinator_stopped() && ways_.reaches(members_[worker.index()].node);
}

// One latency there; the answer takes another one back.
void GreedyService::ask(WorkerId reader) {
  const Time latency = ways_.latency(members_[reader.index()].node);
  call_at(now() + latency, [this, reader, life = life_[reader.index()]] {
    if (life == life_[reader.index()]) look_again(reader);
  });
}

void GreedyService::look_again(WorkerId reader) {
  ways_.look([this](LinkId link) { return faults_.share(link) != 0; });
  if (!reachable(reader)) {
    call_at(now() + kRetry, [this, reader, life = life_[reader.index()]] {
      if (life == life_[reader.index()]) look_again(reader);
    });
    return;
  }
  if (!decide(reader)) waiting_.push_back(reader);
}

void GreedyService::serve_waiting() {
  for (bool served = true; served;) {
    served = false;
    for (auto at = waiting_.begin(); at != waiting_.end() && !served; ++at) {
      const WorkerId reader = *at;
      if (!decide(reader)) continue;
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), reader));
      served = true;
    }
  }
}

// True if the reader needs no more waiting: it was given a source, or wants nothing.
bool GreedyService::decide(WorkerId reader) {
  const Group& group = groups_[members_[reader.index()].group.index()];
  if (!group.fetch || !group.fetch->moving) return true;
  const auto found = sessions_.find(group.fetch->version);
  if (found == sessions_.end()) return true;
  Session& at = *found->second;
  std::optional<Request>& open = open_[reader.index()];
  if (open && open->again) return decide_for(at, reader, open->stripe);
  if (open) return true;
  bool wants = false;
  for (const StripeId stripe : at.wants[reader.index()]) {
    if (at.has(stripe, reader)) continue;
    wants = true;
    if (decide_for(at, reader, stripe)) return true;
  }
  return !wants;
}

bool GreedyService::usable(const Session& at, StripeId stripe, WorkerId source) const {
  const Member& member = members_[source.index()];
  if (!member.runs || !at.transfer.joined(source)) return false;
  const Group& group = groups_[member.group.index()];
  if (group.hidden || (cap_ && readers_[source.index()] >= *cap_)) return false;
  if (!at.transfer.tables().holds(source, stripe)) return true;
  return holds(member.group, at.transfer.demand().version);
}

bool GreedyService::decide_for(Session& at, WorkerId reader, StripeId stripe) {
  using Rank = std::tuple<std::uint32_t, std::uint32_t, WorkerId>;
  std::optional<std::pair<Rank, bool>> best;
  const auto consider = [&](WorkerId source, bool has_all) {
    if (source == reader || !usable(at, stripe, source)) return;
    const Rank rank{at.space.distance(source, reader), readers_[source.index()], source};
    if (!best || rank < best->first) best = {rank, has_all};
  };
  for (const WorkerId holder : at.class_of(stripe).holders) consider(holder, true);
  bool before = true;
  for (const Session::Given& other : at.given[stripe.index()]) {
    if (other.worker == reader) before = false;
    if (before || other.has) consider(other.worker, other.has);
  }
  if (!best) return false;
  give(at, reader, stripe, std::get<2>(best->first), best->second);
  return true;
}

void GreedyService::give(Session& at, WorkerId reader, StripeId stripe, WorkerId source,
                         bool has_all) {
  auto& given = at.given[stripe.index()];
  if (std::none_of(given.begin(), given.end(),
                   [reader](const Session::Given& g) { return g.worker == reader; })) {
    given.push_back({reader, false});
  }
  ++readers_[source.index()];
  open_[reader.index()] = Request{stripe, source, false};
  Assignment work;
  work.stripe = stripe;
  work.parent = source;
  work.to = static_cast<std::uint32_t>(at.transfer.tables().blocks(stripe).size());
  work.parent_has_all = has_all;
  work.path = at.paths.any(source, reader, Bytes());
  const auto route =
      router_.route(members_[source.index()].node, members_[reader.index()].node, work.path);
  if (!route) throw Error(ErrorCode::Unsupported, route.error());
  const Bytes block = at.transfer.demand().block_size;
  const Rate rate = router_.bottleneck(*route);
  work.window = window_for(router_.latency(*route) * 2, rate, block);
  const Time block_time = transfer_time(block, rate);
  work.have_interval = block_time == Time::never() ? Time() : block_time / 4;
  call_at(now() + ways_.latency(members_[reader.index()].node),
          [this, &at, work, reader, life = life_[reader.index()]]() mutable {
            if (life != life_[reader.index()]) return;
            if (!at.transfer.joined(work.parent)) {
              close_request(reader);
              open_[reader.index()] = Request{work.stripe, {}, true};
              ask(reader);
              return;
            }
            work.from = at.transfer.first_missing(reader, work.stripe);
            at.transfer.assign(reader, work);
          });
}

void GreedyService::close_request(WorkerId reader) {
  std::optional<Request>& open = open_[reader.index()];
  if (!open) return;
  if (open->source.valid()) --readers_[open->source.index()];
  open.reset();
}

// --- What happens to transfers -------------------------------------------------------------------

void GreedyService::assigned_done(DirectTransfer& transfer, WorkerId reader) {
  Session* at = session_of(transfer);
  std::optional<Request>& open = open_[reader.index()];
  if (at == nullptr || !open || open->again) return;
  for (Session::Given& given : at->given[open->stripe.index()]) {
    if (given.worker == reader) given.has = true;
  }
  const GroupId id = members_[reader.index()].group;
  const Group& group = groups_[id.index()];
  const bool all = group.fetch && group.fetch->version == transfer.demand().version &&
                   std::all_of(group.members.begin(), group.members.end(),
                               [at](WorkerId member) { return at->complete(member); });
  if (all) {
    close_request(reader);
    fetch_done(id);
  }
  // The server hears of it one latency later, and may then give the source to another.
  const Time latency = ways_.latency(members_[reader.index()].node);
  call_at(now() + latency, [this, reader, life = life_[reader.index()]] {
    if (life != life_[reader.index()]) return serve_waiting();
    if (open_[reader.index()] && !open_[reader.index()]->again) close_request(reader);
    look_again(reader);
    serve_waiting();
  });
}

void GreedyService::source_lost(DirectTransfer& transfer, WorkerId reader, StripeId stripe,
                                std::uint32_t /*first_missing*/, WorkerId lost) {
  std::optional<Request>& open = open_[reader.index()];
  if (session_of(transfer) == nullptr || !open || open->stripe != stripe || open->again) return;
  close_request(reader);
  open_[reader.index()] = Request{stripe, {}, true};
  tell_lost(lost, reader);
  ask(reader);
}

void GreedyService::fetch_begins(GroupId group) {
  const Version version = groups_[group.index()].fetch->version;
  for (const WorkerId worker : groups_[group.index()].members) take_out(worker);
  const bool anywhere = sessions_.count(version) != 0 ||
                        std::any_of(groups_.begin(), groups_.end(), [&](const Group& other) {
                          return other.holds == version && !other.hidden;
                        });
  if (!anywhere) return;  // a newer version will take its place, or its deadline comes
  Session& at = session(version, setup_.groups[group.index()].space);
  for (const WorkerId worker : groups_[group.index()].members) {
    join(at.transfer, worker);
    ask(worker);
  }
}

// Out of every version: what it had is nobody's source any more, what it was waiting for is void.
void GreedyService::take_out(WorkerId worker) {
  close_request(worker);
  ++life_[worker.index()];
  std::erase(waiting_, worker);
  for (const auto& [version, session] : sessions_) {
    session->transfer.stop(worker);
    for (auto& given : session->given) {
      std::erase_if(given, [worker](const Session::Given& g) { return g.worker == worker; });
    }
  }
}

void GreedyService::fetch_given_up(GroupId group) {
  cut_readers(group);
  for (const WorkerId worker : groups_[group.index()].members) take_out(worker);
}

void GreedyService::group_started(GroupId /*group*/) {}

// Its readers notice by themselves, and then ask again.
void GreedyService::worker_stopped(WorkerId worker) {
  take_out(worker);
}

bool GreedyService::is_read(GroupId group) const {
  const auto& members = groups_[group.index()].members;
  return std::any_of(members.begin(), members.end(),
                     [this](WorkerId member) { return readers_[member.index()] != 0; });
}

void GreedyService::cut_readers(GroupId group) {
  for (std::size_t w = 0; w < open_.size(); ++w) {
    const std::optional<Request>& open = open_[w];
    if (!open || !open->source.valid() || members_[open->source.index()].group != group) continue;
    const StripeId stripe = open->stripe;
    close_request(WorkerId(w));
    open_[w] = Request{stripe, {}, true};
    ask(WorkerId(w));
  }
}

}  // namespace holdfast::sim
