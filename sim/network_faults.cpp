// What goes wrong in SimNetwork: links that slow down or go down, workers that die and live again,
// cuts between workers.
#include <algorithm>
#include <bit>

#include "core/error.hpp"
#include "sim/network_state.hpp"
#include "sim/worker_ports.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kWhole = 1'000'000;

// Rounded down, but never to nothing: that is for links that are down.
Rate part_of(Rate rate, std::uint32_t share) {
  const std::uint64_t bytes = rate.bytes_per_second();
  const std::uint64_t part = bytes / kWhole * share + bytes % kWhole * share / kWhole;
  return Rate(std::max<std::uint64_t>(part, 1));
}

}  // namespace

// --- Workers -------------------------------------------------------------------------------------

void SimNetwork::State::kill(WorkerId worker) {
  WorkerState& state = workers[worker.index()];
  if (!state.alive) return;
  now = flows.now();
  state.alive = false;
  if (with_actors && !one_actor) flows.kill(worker.index());
  while (!state.peers.empty()) {
    peers[state.peers.back()].open = false;
    release(state.peers.back());
  }
  for (Grant& grant : state.grants) grant.revoked = true;
  for (const std::uint32_t p : state.readers) {
    PeerState& peer = peers[p];
    if (!peer.open) continue;
    // Its bytes stop coming now; the reader hears of it with the loss.
    if (peer.flowing != kNone) {
      const std::uint32_t number = peer.flowing;
      cut_flow(number);
      reads[number].state = ReadState::Requested;
    }
    peer.dead = true;
    peer.carries_data = false;
    lose_later(p);
  }
}

void SimNetwork::State::restart(WorkerId worker) {
  WorkerState& state = workers[worker.index()];
  ++state.life;
  state.alive = true;
  state.regions.clear();
  state.events.clear();
  state.taken = 0;
  state.jobs.clear();
  state.jobs_taken = 0;
  state.busy_since = Time();
  state.busy_bytes = Bytes();
  state.wake = Time::never();
  now = flows.now();
  wake_at(worker.value(), now);
}

// --- Ways ----------------------------------------------------------------------------------------

bool SimNetwork::State::carries(WorkerId from, WorkerId to, std::uint32_t route) const {
  if ((workers[from.index()].cut_from & workers[to.index()].cut_to) != 0) return false;
  if (links_down == 0) return true;
  const auto links = routes.links(route);
  return std::none_of(links.begin(), links.end(),
                      [this](std::uint32_t link) { return down[link]; });
}

// One latency is what it takes to hear of anything.
void SimNetwork::State::lose_later(std::uint32_t p) {
  PeerState& peer = peers[p];
  const Time at = flows.now() + std::max(peer.latency, detection);
  if (at >= peer.lost_at) return;
  peer.lost_at = at;
  add(at, EventKind::Lost, p);
}

void SimNetwork::State::look_at_way(std::uint32_t p) {
  PeerState& peer = peers[p];
  if (!peer.open || peer.dead) return;
  const bool blocked =
      !carries(peer.owner, peer.other, peer.route) || !carries(peer.other, peer.owner, peer.route);
  if (blocked == peer.blocked) return;
  peer.blocked = blocked;
  if (!blocked) {
    peer.lost_at = Time::never();
    serve(p);
    return;
  }
  if (peer.flowing != kNone) {
    const std::uint32_t number = peer.flowing;
    cut_flow(number);
    reads[number].state = ReadState::Queued;
  }
  lose_later(p);
}

void SimNetwork::State::look_at_ways() {
  now = flows.now();
  for (std::uint32_t p = 0; p < peers.size(); ++p) {
    if (peers[p].in_use) look_at_way(p);
  }
}

void SimNetwork::State::limit(std::span<const LinkShare> links) {
  bool ways_change = false;
  for (const LinkShare& change : links) {
    for (const bool from_b : {false, true}) {
      const auto link = routes.find_link(ChannelId(change.link, from_b));
      if (!link) continue;
      const bool is_down = change.share == 0;
      if (down[*link] != is_down) {
        ways_change = true;
        is_down ? ++links_down : --links_down;
        down[*link] = is_down;
      }
      if (!is_down) flows.set_capacity(*link, part_of(routes.capacity(*link), change.share));
    }
  }
  if (ways_change) look_at_ways();
}

CutId SimNetwork::State::cut(std::span<const WorkerId> from, std::span<const WorkerId> to) {
  const auto id = static_cast<CutId>(std::countr_one(cuts));
  if (id == kMostCuts) {
    throw Error(ErrorCode::LimitExceeded, "more than 64 cuts at a time; heal some before");
  }
  const std::uint64_t bit = std::uint64_t{1} << id;
  cuts |= bit;
  for (const WorkerId worker : from) workers[worker.index()].cut_from |= bit;
  for (const WorkerId worker : to) workers[worker.index()].cut_to |= bit;
  look_at_ways();
  return id;
}

void SimNetwork::State::heal(CutId id) {
  const std::uint64_t bit = std::uint64_t{1} << id;
  cuts &= ~bit;
  for (WorkerState& worker : workers) {
    worker.cut_from &= ~bit;
    worker.cut_to &= ~bit;
  }
  look_at_ways();
}

}  // namespace holdfast::sim
