#include "sim/sim_network.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "sim/network_state.hpp"
#include "sim/worker_ports.hpp"

namespace holdfast::sim {
namespace {

// The routes must be known before SimGrid's platform is built.
RouteTable make_routes(const Router& router, std::span<const DataPath> paths, PlatformLinks links) {
  RouteTable routes(router);
  if (links == PlatformLinks::All) routes.add_all_links();
  for (const DataPath& path : paths) routes.add(path);
  if (links == PlatformLinks::OfPaths) routes.drop_redundant_links();
  return routes;
}

FlowDriver chosen_driver(const NetworkOptions& options, const RouteTable& routes,
                         std::size_t workers) {
  if (options.driver) return *options.driver;
  const std::size_t coupled = options.links == PlatformLinks::All ? workers : routes.most_coupled();
  return coupled > kMostCoupledForSimgrid ? FlowDriver::MaxMin : best_flow_driver();
}

// What a flow between hosts can have at best, where no path is known yet: the fastest NIC's rate.
Rate widest_nic(const Topology& topology) {
  Rate widest;
  for (const Link& link : topology.links()) {
    const bool at_nic =
        topology.node(link.a).kind == NodeKind::Nic || topology.node(link.b).kind == NodeKind::Nic;
    if (at_nic && link.kind == LinkKind::Fabric) widest = std::max(widest, link.capacity);
  }
  return widest;
}

FlowStep chosen_step(const NetworkOptions& options, const Router& router,
                     const RouteTable& routes) {
  if (options.step) return {*options.step, 0};
  const Rate widest = options.links == PlatformLinks::All ? widest_nic(router.topology())
                                                          : routes.widest_between_hosts();
  if (widest == Rate(0)) return {};
  return {transfer_time(options.block, widest) / kStepsOfBlock, kExactRates};
}

}  // namespace

SimNetwork::State::State(const Router& router, std::span<const NodeId> nodes,
                         std::span<const DataPath> paths, const Meters& meters,
                         const NetworkOptions& options)
    : routes(make_routes(router, paths, options.links)),
      driver(chosen_driver(options, routes, nodes.size())),
      meter(routes.link_count(), meters.bins, meters.expected),
      flows(routes.capacities(), driver, chosen_step(options, router, routes)),
      jitter(options.jitter),
      down(routes.link_count()),
      detection(options.detection) {
  for (std::uint32_t link = 0; link < routes.link_count(); ++link) {
    const LinkKind kind = router.topology().link(routes.channel(link).link()).kind;
    if (meters.single_bin_inside_hosts && kind != LinkKind::Fabric && kind != LinkKind::Wan) {
      meter.keep_total_only(link);
    }
  }
  workers.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    workers[i].node = nodes[i];
    workers[i].digest_rate = router.topology().node(nodes[i]).digest_rate;
    workers[i].transport = std::make_unique<SimTransport>(*this, WorkerId(i));
    workers[i].memory = std::make_unique<SimMemory>(*this, WorkerId(i));
  }
  flows.set_handler([this](std::span<const FlowId> ended) { instant(ended); });
}

SimNetwork::State::~State() = default;

void SimNetwork::State::add(Time at, EventKind kind, std::uint32_t a, std::uint64_t b) {
  // Outside `instant` (from an actor) the next alarm may have to come earlier.
  if (with_actors && (queue.empty() || at < queue.top().at)) flows.wake_at(at);
  const std::uint16_t life = kind == EventKind::JobDone ? workers[a].life : std::uint16_t{0};
  queue.push({at, next_order++, b, a, life, kind});
}

// Everything of one instant: flows that ended, events that are due, then the workers that have
// something to poll; again until nothing is left to do at this time.
void SimNetwork::State::instant(std::span<const FlowId> ended) {
  now = flows.now();
  for (const FlowId flow : ended) flow_ended(flow);
  while (!stopped) {
    while (!queue.empty() && queue.top().at <= now) {
      const Event event = queue.top();
      queue.pop();
      happen(event);
    }
    if (ready.empty()) break;
    ready_now.clear();
    ready_now.swap(ready);
    for (const std::uint32_t worker : ready_now) {
      workers[worker].ready = false;
      if (workers[worker].alive && !stopped) on_ready(WorkerId(worker));
    }
  }
  if (stopped) return;
  flows.wake_at(queue.empty() ? Time::never() : queue.top().at);
  if (queue.empty() && flows.live() == 0 && on_idle) on_idle();
}

void SimNetwork::State::happen(const Event& event) {
  switch (event.kind) {
    case EventKind::Request:
      if (reads[event.a].use == event.b) request_arrives(event.a);
      break;
    case EventKind::Arrival:
      if (reads[event.a].use == event.b) finish(event.a, reads[event.a].status);
      break;
    case EventKind::Deadline:
      if (peers[event.a].deadline_at == event.at) look_at_deadlines(event.a);
      break;
    case EventKind::Message: {
      Parcel& parcel = parcels[event.a];
      if (workers[parcel.to.index()].life == parcel.life &&
          carries(parcel.from, parcel.to, parcel.route)) {
        tell(parcel.to, MessageReceived{parcel.from, std::move(parcel.payload)});
      }
      parcel.payload.clear();
      free_parcels.push_back(event.a);
      break;
    }
    case EventKind::JobDone:
      if (workers[event.a].life != event.life) break;
      workers[event.a].jobs.push_back({event.b, 0});
      make_ready(event.a);
      break;
    case EventKind::Wake:
      if (workers[event.a].wake == event.at) {
        workers[event.a].wake = Time::never();
        make_ready(event.a);
      }
      break;
    case EventKind::Lost:
      if (peers[event.a].lost_at == event.at) peer_lost(event.a);
      break;
    case EventKind::Call: {
      const std::function<void()> call = std::move(calls[event.a]);
      free_calls.push_back(event.a);
      call();
      break;
    }
  }
}

void SimNetwork::State::call_at(Time at, std::function<void()> what) {
  if (free_calls.empty()) {
    free_calls.push_back(static_cast<std::uint32_t>(calls.size()));
    calls.emplace_back();
  }
  const std::uint32_t number = free_calls.back();
  free_calls.pop_back();
  calls[number] = std::move(what);
  add(std::max(at, flows.now()), EventKind::Call, number);
}

void SimNetwork::State::tell(WorkerId worker, TransportEvent event) {
  if (!workers[worker.index()].alive) return;
  workers[worker.index()].events.push_back(std::move(event));
  make_ready(worker.value());
}

void SimNetwork::State::make_ready(std::uint32_t worker) {
  if (workers[worker].ready) return;
  workers[worker].ready = true;
  ready.push_back(worker);
}

// Alarms are not taken back: one that comes too early, or was replaced by an earlier one, is let
// pass.
void SimNetwork::State::wake_at(std::uint32_t worker, Time at) {
  if (at == Time::never()) return;
  at = std::max(at, now);
  if (at >= workers[worker].wake) return;
  workers[worker].wake = at;
  add(at, EventKind::Wake, worker);
}

void SimNetwork::State::job(WorkerId worker, JobId id, Time at) {
  add(at, EventKind::JobDone, worker.value(), id);
}

void SimNetwork::State::wait(WorkerId worker, Time until) {
  WorkerState& state = workers[worker.index()];
  if (!with_actors || state.has_news() || until <= flows.now()) return;
  now = flows.now();
  state.wake = Time::never();
  wake_at(worker.value(), until);
  state.waiting = true;
  flows.block();
  now = flows.now();
}

// --- One actor for all ---------------------------------------------------------------------------

void SimNetwork::State::run_one_actor(const std::function<void()>& body) {
  with_actors = true;
  one_actor = true;
  on_ready = [this](WorkerId worker) {
    is_ready(worker);
    if (!polled.empty()) wake_the_one();
  };
  on_idle = [this] { wake_the_one(); };
  std::exception_ptr thrown;
  const std::vector<std::function<void()>> actors{[this, &body, &thrown] {
    try {
      body();
    } catch (const std::exception&) {
      thrown = std::current_exception();
    }
    // What is still on its way would come to those who have gone.
    stopped = true;
    flows.stop();
  }};
  flows.run_actors(actors);
  if (thrown) std::rethrow_exception(thrown);
}

void SimNetwork::State::wake_the_one() {
  if (!one_waits) return;
  one_waits = false;
  flows.unblock(0);
}

void SimNetwork::State::is_ready(WorkerId worker) {
  const WorkerState& state = workers[worker.index()];
  if (!state.alive || !state.has_news()) return;
  if (std::find(polled.begin(), polled.end(), worker) == polled.end()) polled.push_back(worker);
}

// Who became ready outside an instant, by what the actor did.
void SimNetwork::State::gather_ready() {
  for (const std::uint32_t worker : ready) {
    workers[worker].ready = false;
    is_ready(WorkerId(worker));
  }
  ready.clear();
}

// Alarms are not taken back: one that comes too early is let pass.
void SimNetwork::State::wait_for_anybody(Time until) {
  gather_ready();
  if (!polled.empty()) return;
  if (until == Time::never() && queue.empty() && flows.live() == 0) return;
  one_until = std::max(until, flows.now());
  if (until != Time::never() && one_alarms.insert(one_until).second) {
    call_at(one_until, [this, at = one_until] {
      one_alarms.erase(at);
      if (one_until <= at) wake_the_one();
    });
  }
  one_waits = true;
  flows.block();
  now = flows.now();
}

SimNetwork::SimNetwork(const Router& router, std::span<const NodeId> nodes,
                       std::span<const DataPath> paths, const Meters& meters,
                       const NetworkOptions& options)
    : state_(std::make_unique<State>(router, nodes, paths, meters, options)) {}

SimNetwork::~SimNetwork() = default;

Transport& SimNetwork::transport(WorkerId worker) {
  return *state_->workers[worker.index()].transport;
}
Memory& SimNetwork::memory(WorkerId worker) {
  return *state_->workers[worker.index()].memory;
}
Time SimNetwork::now() const {
  return state_->flows.now();
}

void SimNetwork::run(std::function<void(WorkerId)> ready, std::function<void()> idle) {
  state_->on_ready = std::move(ready);
  state_->on_idle = std::move(idle);
  for (std::uint32_t worker = 0; worker < state_->workers.size(); ++worker) {
    state_->make_ready(worker);
  }
  state_->flows.run();
}

void SimNetwork::wake_at(WorkerId worker, Time at) {
  state_->wake_at(worker.value(), at);
}

void SimNetwork::call_at(Time at, std::function<void()> what) {
  state_->call_at(at, std::move(what));
}
void SimNetwork::stop() {
  state_->stopped = true;
  state_->flows.stop();
}

void SimNetwork::run_actors(std::span<const Body> bodies) {
  State& state = *state_;
  state.with_actors = true;
  state.on_ready = [&state](WorkerId worker) {
    if (!state.workers[worker.index()].waiting) return;
    state.workers[worker.index()].waiting = false;
    state.flows.unblock(worker.index());
  };
  std::vector<std::function<void()>> actors;
  for (std::uint32_t i = 0; i < bodies.size(); ++i) {
    actors.emplace_back([&state, &body = bodies[i], i] {
      body(*state.workers[i].transport, *state.workers[i].memory, WorkerId(i));
    });
  }
  state.flows.run_actors(actors);
}

void SimNetwork::run_one_actor(const std::function<void()>& body) {
  state_->run_one_actor(body);
}
void SimNetwork::wait(Time until) {
  state_->wait_for_anybody(until);
}
bool SimNetwork::any_ready() const {
  state_->gather_ready();
  return !state_->polled.empty();
}
std::vector<WorkerId> SimNetwork::take_ready() {
  state_->gather_ready();
  return std::exchange(state_->polled, {});
}
void SimNetwork::watch_reads(std::function<void(const ReadMoment&)> watcher) {
  state_->on_read = std::move(watcher);
}

void SimNetwork::kill(WorkerId worker) {
  state_->kill(worker);
}
void SimNetwork::restart(WorkerId worker) {
  state_->restart(worker);
}
bool SimNetwork::alive(WorkerId worker) const {
  return state_->workers[worker.index()].alive;
}
void SimNetwork::limit(std::span<const LinkShare> links) {
  state_->limit(links);
}
CutId SimNetwork::cut(std::span<const WorkerId> from, std::span<const WorkerId> to) {
  return state_->cut(from, to);
}
void SimNetwork::heal(CutId cut) {
  state_->heal(cut);
}
FlowDriver SimNetwork::driver() const {
  return state_->driver;
}
Time SimNetwork::step_used() const {
  return state_->flows.step_used();
}
const SimNetwork::Moved& SimNetwork::moved() const {
  return state_->moved;
}

std::vector<SimNetwork::Use> SimNetwork::channel_use(Time makespan) const {
  std::vector<Use> result;
  for (std::uint32_t link = 0; link < state_->routes.link_count(); ++link) {
    const Bytes total = state_->meter.total(link);
    if (total == Bytes(0)) continue;
    result.push_back({state_->routes.channel(link), total, state_->meter.bins(link, makespan)});
  }
  std::sort(result.begin(), result.end(),
            [](const Use& a, const Use& b) { return a.channel < b.channel; });
  return result;
}

}  // namespace holdfast::sim
