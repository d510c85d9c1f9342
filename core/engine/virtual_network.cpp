#include "core/engine/virtual_network.hpp"

#include <algorithm>

#include "core/engine/virtual_state.hpp"
#include "core/mix.hpp"

namespace holdfast {

using namespace virtual_network;

VirtualNetwork::State::State(VirtualNetwork& owner, std::size_t count, const VirtualOptions& given)
    : network(owner), options(given), random_state(given.seed), workers(count) {
  for (std::size_t w = 0; w < count; ++w) {
    workers[w].rate = options.rate;
    workers[w].transport = std::make_unique<VirtualTransport>(*this, WorkerId(w));
    workers[w].memory = std::make_unique<VirtualMemory>(*this, WorkerId(w));
  }
}
VirtualNetwork::State::~State() = default;

std::uint64_t VirtualNetwork::State::random() {
  return next_mixed(random_state);
}

void VirtualNetwork::State::schedule(Time at, EventKind kind, std::uint32_t subject,
                                     std::uint32_t generation) {
  events.push({at, order++, kind, subject, generation});
}

void VirtualNetwork::State::drop_stale() {
  while (!events.empty()) {
    const Event& event = events.top();
    switch (event.kind) {
      case EventKind::Request:
      case EventKind::Arrived:
      case EventKind::Denied:
      case EventKind::Cancelled:
        if (current(event.subject, event.generation)) return;
        break;
      case EventKind::Deadline: {
        Peer& peer = peers[event.subject];
        if (peer.timer == event.at && !peer.open.empty()) return;
        if (peer.timer == event.at) peer.timer = Time::never();
        break;
      }
      case EventKind::Served: {
        const Worker& worker = workers[event.subject];
        if (worker.life == event.generation && worker.served_at == event.at) return;
        break;
      }
      case EventKind::JobDone:
      case EventKind::Revoked:
        if (workers[event.subject].life == event.generation) return;
        break;
      default:
        return;
    }
    events.pop();
  }
}

void VirtualNetwork::State::happen(const Event& event) {
  const WorkerId worker(event.subject);
  switch (event.kind) {
    case EventKind::Request:
      return request_arrived(event.subject);
    case EventKind::Served:
      return served(worker);
    case EventKind::Arrived:
      return arrived(event.subject);
    case EventKind::Denied:
      return complete(event.subject, reads[event.subject].denial);
    case EventKind::Cancelled:
      return complete(event.subject, ReadStatus::Cancelled);
    case EventKind::Deadline:
      return check_deadlines(event.subject);
    case EventKind::PeerLost:
      return lost(event.subject);
    case EventKind::Message: {
      Letter& letter = letters[event.subject];
      if (workers[letter.to.index()].life == letter.to_life && !is_cut(letter.from, letter.to)) {
        record(VirtualRecord::Kind::Delivered, letter.from, letter.to, letter.payload.size());
        tell(letter.to, MessageReceived{letter.from, std::move(letter.payload)});
      }
      free_letters.push_back(event.subject);
      return;
    }
    case EventKind::Revoked: {
      Worker& source = workers[event.subject];
      const Revoked revoked = source.revokes.front();
      source.revokes.pop_front();
      return tell(worker, revoked);
    }
    case EventKind::JobDone:
      return job_done(worker);
    case EventKind::PortReady:
      return serve_next(worker);
    case EventKind::Action: {
      const std::function<void()> action = std::move(actions[event.subject]);
      return action();
    }
  }
}

void VirtualNetwork::State::record(VirtualRecord::Kind kind, WorkerId from, WorkerId to,
                                   std::uint64_t detail) {
  if (options.record) records.push_back({now, kind, from, to, detail});
}

void VirtualNetwork::State::announce(WorkerId worker) {
  Worker& w = workers[worker.index()];
  if (w.announced) return;
  w.announced = true;
  ready.push_back(worker);
}

void VirtualNetwork::State::tell(WorkerId worker, TransportEvent event) {
  Worker& w = workers[worker.index()];
  if (!w.alive) return;
  w.inbox.push_back(std::move(event));
  announce(worker);
}

void VirtualNetwork::State::send(const Peer& peer, std::span<const std::byte> payload) {
  const WorkerId from = peer.owner;
  const WorkerId to = peer.remote;
  ++workers[from.index()].traffic.messages_sent;
  constexpr std::uint64_t kMille = 1000;
  std::uint32_t copies = random() % kMille < options.doubled_per_mille ? 2 : 1;
  if (random() % kMille < options.lost_per_mille || is_cut(from, to)) {
    record(VirtualRecord::Kind::Dropped, from, to, payload.size());
    copies = 0;
  }
  for (; copies > 0; --copies) {
    if (free_letters.empty()) {
      free_letters.push_back(static_cast<std::uint32_t>(letters.size()));
      letters.emplace_back();
    }
    const std::uint32_t number = free_letters.back();
    free_letters.pop_back();
    letters[number] = {from, to, peer.remote_life, {payload.begin(), payload.end()}};
    Time at = now + options.latency;
    if (options.message_jitter > Time{}) {
      const auto span = static_cast<std::uint64_t>(options.message_jitter.picoseconds()) + 1;
      at += Time(static_cast<std::int64_t>(random() % span));
    }
    schedule(at, EventKind::Message, number);
  }
}

void VirtualNetwork::State::crash(WorkerId worker) {
  Worker& w = workers[worker.index()];
  if (!w.alive) return;
  record(VirtualRecord::Kind::Crash, worker, worker, 0);
  w.alive = false;
  w.inbox.clear();
  w.done.clear();
  w.jobs.clear();
  w.turn.clear();
  for (std::uint32_t p = 0; p < peers.size(); ++p) {
    if (peers[p].owner == worker) {
      for (const std::uint32_t slot : peers[p].open) release(slot);
      peers[p].open.clear();
      peers[p].lost = true;
    } else if (peers[p].remote == worker && !peers[p].closed) {
      schedule(now + options.detection, EventKind::PeerLost, p);
    }
  }
}

void VirtualNetwork::State::restart(WorkerId worker) {
  Worker& w = workers[worker.index()];
  if (w.alive) return;
  w.alive = true;
  ++w.life;
  w.regions.clear();
  w.grants.clear();
  w.revokes.clear();
  w.serving = kNone;
  w.stalled_until = now;
  w.sink_free = now;
  w.memory_free = now;
  w.corrupt_after = 0;
  w.transport->forget();
}

void VirtualNetwork::State::show(ReadSight::Kind kind, const Read& read) const {
  if (!watcher) return;
  const Peer& peer = peers[read.peer];
  ReadSight sight{kind, read.id, peer.remote, peer.owner, {}, {}, read.region, read.pieces, {}};
  if (kind == ReadSight::Kind::Served) {
    const Grant& grant = *grant_of(read);
    sight.version = grant.version;
    sight.source_region = grant.region;
    sight.bytes = read.data;
  }
  watcher(sight);
}

void VirtualNetwork::State::lost(std::uint32_t peer) {
  if (peers[peer].closed || peers[peer].lost) return;
  fail_all(peer, ReadStatus::PeerGone);
  peers[peer].lost = true;
  tell(peers[peer].owner, PeerLost{PeerId(peer), peers[peer].remote});
}

VirtualNetwork::VirtualNetwork(std::size_t workers, const VirtualOptions& options)
    : state_(std::make_unique<State>(*this, workers, options)) {}
VirtualNetwork::~VirtualNetwork() = default;

std::size_t VirtualNetwork::workers() const {
  return state_->workers.size();
}
Transport& VirtualNetwork::transport(WorkerId worker) {
  return *state_->workers[worker.index()].transport;
}
Memory& VirtualNetwork::memory(WorkerId worker) {
  return *state_->workers[worker.index()].memory;
}
Time VirtualNetwork::now() const {
  return state_->now;
}

void VirtualNetwork::set_rate(WorkerId worker, Rate rate) {
  state_->set_rate(worker, rate);
}
void VirtualNetwork::set_message_faults(std::uint32_t lost_per_mille,
                                        std::uint32_t doubled_per_mille, Time jitter) {
  state_->options.lost_per_mille = lost_per_mille;
  state_->options.doubled_per_mille = doubled_per_mille;
  state_->options.message_jitter = jitter;
}
void VirtualNetwork::crash(WorkerId worker) {
  state_->crash(worker);
}
void VirtualNetwork::restart(WorkerId worker) {
  state_->restart(worker);
}
void VirtualNetwork::cut(WorkerId from, WorkerId to, bool cut) {
  const std::size_t count = state_->workers.size();
  if (state_->cuts.empty()) state_->cuts.resize(count * count);
  state_->cuts[from.index() * count + to.index()] = cut;
}
void VirtualNetwork::watch_reads(std::function<void(const ReadSight&)> watcher) {
  state_->watcher = std::move(watcher);
}
void VirtualNetwork::stall(WorkerId worker, Time until) {
  state_->workers[worker.index()].stalled_until = until;
  state_->schedule(until, EventKind::PortReady, worker.value());
}
void VirtualNetwork::corrupt(WorkerId source, std::uint64_t skip) {
  state_->workers[source.index()].corrupt_after = skip + 1;
}
void VirtualNetwork::at(Time when, std::function<void()> action) {
  state_->actions.push_back(std::move(action));
  state_->schedule(std::max(when, state_->now), EventKind::Action,
                   static_cast<std::uint32_t>(state_->actions.size() - 1));
}

Time VirtualNetwork::next_event() {
  state_->drop_stale();
  return state_->events.empty() ? Time::never() : state_->events.top().at;
}

bool VirtualNetwork::step() {
  if (next_event() == Time::never()) return false;
  const Event event = state_->events.top();
  state_->events.pop();
  state_->now = event.at;
  state_->happen(event);
  return true;
}

void VirtualNetwork::advance(Time to) {
  state_->now = std::max(state_->now, std::min(to, next_event()));
}

bool VirtualNetwork::ready(WorkerId worker) const {
  const Worker& w = state_->workers[worker.index()];
  return w.alive && (!w.inbox.empty() || !w.done.empty());
}

bool VirtualNetwork::alive(WorkerId worker) const {
  return state_->workers[worker.index()].alive;
}

std::vector<WorkerId> VirtualNetwork::take_ready() {
  for (const WorkerId worker : state_->ready) state_->workers[worker.index()].announced = false;
  return std::exchange(state_->ready, {});
}

void VirtualNetwork::set_wait(std::function<void(WorkerId worker, Time until)> wait) {
  state_->wait = std::move(wait);
}

const VirtualTraffic& VirtualNetwork::traffic(WorkerId worker) const {
  return state_->workers[worker.index()].traffic;
}
const std::vector<VirtualRecord>& VirtualNetwork::records() const {
  return state_->records;
}

}  // namespace holdfast
