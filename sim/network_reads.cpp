// Connections, permissions, reads and messages of SimNetwork.
#include <algorithm>
#include <cstring>

#include "sim/network_state.hpp"
#include "sim/worker_ports.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kWraps = std::numeric_limits<std::uint64_t>::max();

// Where a piece ends; all ones if that is beyond 64 bits.
std::uint64_t end_of(std::uint64_t offset, std::uint64_t bytes) {
  return offset > kWraps - bytes ? kWraps : offset + bytes;
}

// What an Access holds: the source, the number of the grant, and a mark that a changed one lacks.
struct Token {
  std::uint32_t source = 0;
  std::uint32_t grant = 0;
  std::uint64_t mark = 0;
};
static_assert(sizeof(Token) <= Access::kCapacity);

std::uint64_t mark_of(std::uint32_t source, std::uint32_t grant) {
  const std::uint64_t both = (std::uint64_t{source} << 32) | grant;
  return (both + 1) * 0x9e3779b97f4a7c15U;
}

}  // namespace

PeerId SimNetwork::State::open(WorkerId owner, const Endpoint& endpoint) {
  const DataPath path{workers[endpoint.worker.index()].node, workers[owner.index()].node,
                      endpoint.path};
  PeerState peer;
  peer.owner = owner;
  peer.other = endpoint.worker;
  const auto exact = routes.has_all_links() ? routes.add(path) : routes.find(path);
  peer.route = exact ? *exact : routes.find_for_messages(path);
  const RouteTable::Entry& entry = routes.entry(peer.route);
  peer.carries_data = exact && entry.count != 0;
  peer.latency = entry.latency;
  peer.jitter_key = jitter.connection(owner, endpoint.worker, endpoint.path);
  if (free_peers.empty()) {
    free_peers.push_back(static_cast<std::uint32_t>(peers.size()));
    peers.emplace_back();
  }
  const std::uint32_t number = free_peers.back();
  free_peers.pop_back();
  peers[number] = peer;
  workers[owner.index()].peers.push_back(number);
  workers[endpoint.worker.index()].readers.push_back(number);
  if (!entry.up || !workers[endpoint.worker.index()].alive) {
    peers[number].dead = true;
    lose_later(number);
  } else {
    look_at_way(number);
  }
  return PeerId(number);
}

// Its number is free. What is on its way over it finds nobody.
void SimNetwork::State::release(std::uint32_t number) {
  PeerState& peer = peers[number];
  while (peers[number].first != kNone) abort(peers[number].first, ReadStatus::Cancelled);
  const auto erase = [number](std::vector<std::uint32_t>& list) {
    const auto at = std::find(list.begin(), list.end(), number);
    *at = list.back();
    list.pop_back();
  };
  erase(workers[peer.owner.index()].peers);
  erase(workers[peer.other.index()].readers);
  peer.open = false;
  peer.in_use = false;
  peer.lost_at = Time::never();
  free_peers.push_back(number);
}

void SimNetwork::State::close(WorkerId owner, PeerId id) {
  if (!id.valid() || id.index() >= peers.size()) return;
  const PeerState& peer = peers[id.index()];
  if (peer.owner != owner || !peer.in_use) return;
  now = flows.now();
  peers[id.index()].open = false;
  release(id.value());
}

Access SimNetwork::State::allow(WorkerId source, WorkerId reader, Version version,
                                RegionId region) {
  std::vector<Grant>& grants = workers[source.index()].grants;
  const auto number = static_cast<std::uint32_t>(grants.size());
  grants.push_back({reader, version, region, false});
  const Token token{source.value(), number, mark_of(source.value(), number)};
  Access access;
  access.size = sizeof(Token);
  std::memcpy(access.bytes.data(), &token, sizeof(Token));
  return access;
}

std::uint32_t SimNetwork::State::grant_of(const PeerState& peer, const Access& access) const {
  Token token;
  if (access.size != sizeof(Token)) return kNone;
  std::memcpy(&token, access.bytes.data(), sizeof(Token));
  const std::vector<Grant>& grants = workers[peer.other.index()].grants;
  const bool known = token.source == peer.other.value() && token.grant < grants.size() &&
                     token.mark == mark_of(token.source, token.grant) &&
                     grants[token.grant].reader == peer.owner;
  return known ? token.grant : kNone;
}

// What is under way on a link is cut off; what has left its source completes.
void SimNetwork::State::revoke(WorkerId source, WorkerId reader, Version version) {
  now = flows.now();
  std::vector<Grant>& grants = workers[source.index()].grants;
  for (Grant& grant : grants) {
    if (grant.reader == reader && grant.version == version) grant.revoked = true;
  }
  for (const std::uint32_t p : workers[source.index()].readers) {
    if (peers[p].owner != reader) continue;
    for (std::uint32_t r = peers[p].first; r != kNone; r = reads[r].next) {
      OpenRead& read = reads[r];
      if (read.state != ReadState::Flowing && read.state != ReadState::Queued) continue;
      if (read.grant == kNone || !grants[read.grant].revoked) continue;
      if (read.state == ReadState::Flowing) cut_flow(r);
      read.status = ReadStatus::AccessDenied;
      arrive_later(r);
    }
    serve(p);
  }
  tell(source, Revoked{reader, version});
  add(now, EventKind::Wake, source.value());  // in an actor nothing else makes this instant happen
  workers[source.index()].wake = now;
}

Posted SimNetwork::State::read(WorkerId owner, const ReadRequest& request) {
  if (!request.peer.valid() || request.peer.index() >= peers.size()) return Posted::PeerGone;
  const std::uint32_t p = request.peer.value();
  PeerState& peer = peers[p];
  if (peer.owner != owner || !peer.open || !peer.carries_data) return Posted::PeerGone;
  if (peer.reads == kLimits.reads_in_flight) return Posted::WouldBlock;
  if (free_reads.empty()) {
    free_reads.push_back(static_cast<std::uint32_t>(reads.size()));
    reads.emplace_back();
  }
  const std::uint32_t number = free_reads.back();
  free_reads.pop_back();
  OpenRead& read = reads[number];
  read.id = request.id;
  read.peer = p;
  read.previous = peer.last;
  read.next = kNone;
  read.grant = grant_of(peer, request.access);
  read.state = ReadState::Requested;
  read.status = ReadStatus::Ok;
  read.bytes = Bytes(0);
  read.moved = Bytes(0);
  read.flow_bytes = Bytes(0);
  read.flow_done = Bytes(0);
  read.remote_end = 0;
  read.first_offset = request.pieces.empty() ? 0 : request.pieces.front().remote_offset;
  read.deadline = request.deadline;
  const std::vector<Bytes>& regions = workers[owner.index()].regions;
  read.local_ok = request.region.valid() && request.region.index() < regions.size();
  for (const Piece& piece : request.pieces) {
    read.bytes += Bytes(piece.bytes);
    read.remote_end = std::max(read.remote_end, end_of(piece.remote_offset, piece.bytes));
    read.local_ok = read.local_ok && Bytes(end_of(piece.local_offset, piece.bytes)) <=
                                         regions[request.region.index()];
  }
  (peer.last == kNone ? peer.first : reads[peer.last].next) = number;
  peer.last = number;
  ++peer.reads;
  const Time here = flows.now();
  add(read.local_ok ? here + peer.latency : here, EventKind::Request, number, read.use);
  watch_deadline(p, request.deadline);
  return Posted::Posted;
}

void SimNetwork::State::request_arrives(std::uint32_t number) {
  OpenRead& read = reads[number];
  const std::uint32_t p = read.peer;
  if (!read.local_ok) {
    finish(number, ReadStatus::OutOfRange);
    return;
  }
  if (peers[p].dead) return;  // the reader hears of it with the loss
  const WorkerState& source = workers[peers[p].other.index()];
  if (read.grant == kNone || source.grants[read.grant].revoked) {
    read.status = ReadStatus::AccessDenied;
  } else if (source.grants[read.grant].region.index() >= source.regions.size() ||
             Bytes(read.remote_end) > source.regions[source.grants[read.grant].region.index()]) {
    read.status = ReadStatus::OutOfRange;
  }
  if (read.status != ReadStatus::Ok) {
    arrive_later(number);
  } else {
    read.state = ReadState::Queued;
  }
  serve(p);
}

// Starts the next read of the peer if none flows and its request has come.
void SimNetwork::State::serve(std::uint32_t p) {
  const PeerState& peer = peers[p];
  if (peer.flowing != kNone || !peer.open || peer.dead || peer.blocked) return;
  for (std::uint32_t number = peer.first; number != kNone; number = reads[number].next) {
    if (reads[number].state == ReadState::Arriving) continue;
    if (reads[number].state != ReadState::Queued) return;
    if (reads[number].moved != reads[number].bytes) {
      start_flow(number);
      return;
    }
    arrive_later(number);
  }
}

void SimNetwork::State::start_flow(std::uint32_t number) {
  OpenRead& read = reads[number];
  PeerState& peer = peers[read.peer];
  read.state = ReadState::Flowing;
  read.flow_start = now;
  peer.flowing = number;
  if (read.flow_bytes == Bytes(0)) {
    read.flow_bytes = jitter.amount(read.bytes, peer.jitter_key, read.first_offset);
  }
  // Jitter may have carried all of it before the last byte counts.
  const Bytes left = std::max(read.flow_bytes - read.flow_done, Bytes(1));
  flows.start(number, routes.flow_links(peer.route), left, routes.entry(peer.route).stream_cap);
}

void SimNetwork::State::cut_flow(std::uint32_t number) {
  OpenRead& read = reads[number];
  read.flow_done = std::min(read.flow_done + flows.cancel(number), read.flow_bytes);
  const Bytes moved_now = payload_of(read.bytes, read.flow_done, read.flow_bytes);
  account(read, moved_now - read.moved);
  read.moved = moved_now;
  peers[read.peer].flowing = kNone;
}

void SimNetwork::State::flow_ended(std::uint32_t number) {
  OpenRead& read = reads[number];
  if (read.state != ReadState::Flowing) return;
  const std::uint32_t p = read.peer;
  account(read, read.bytes - read.moved);
  read.moved = read.bytes;
  peers[p].flowing = kNone;
  arrive_later(number);
  serve(p);
}

void SimNetwork::State::arrive_later(std::uint32_t number) {
  OpenRead& read = reads[number];
  read.state = ReadState::Arriving;
  if (on_read && read.status == ReadStatus::Ok) {
    const PeerState& peer = peers[read.peer];
    const Grant& grant = workers[peer.other.index()].grants[read.grant];
    on_read({ReadMoment::Kind::Left, read.id, peer.other, peer.owner, grant.version, grant.region,
             read.status});
  }
  add(now + peers[read.peer].latency, EventKind::Arrival, number, read.use);
}

void SimNetwork::State::account(const OpenRead& read, Bytes bytes) {
  const std::uint32_t route = peers[read.peer].route;
  for (const std::uint32_t link : routes.links(route)) {
    meter.add(link, read.flow_start, now, bytes);
  }
  moved.gpu += bytes;
  if (routes.entry(route).over_nic) moved.nic += bytes;
  moved.wan += bytes * routes.entry(route).wan;
}

void SimNetwork::State::abort(std::uint32_t number, ReadStatus status) {
  const std::uint32_t p = reads[number].peer;
  if (reads[number].state == ReadState::Flowing) cut_flow(number);
  finish(number, status);
  if (with_actors) {
    // In an actor nothing else makes this instant happen.
    const std::uint32_t owner = peers[p].owner.value();
    add(now, EventKind::Wake, owner);
    workers[owner].wake = now;
  }
  serve(p);
}

void SimNetwork::State::finish(std::uint32_t number, ReadStatus status) {
  OpenRead& read = reads[number];
  PeerState& peer = peers[read.peer];
  (read.previous == kNone ? peer.first : reads[read.previous].next) = read.next;
  (read.next == kNone ? peer.last : reads[read.next].previous) = read.previous;
  --peer.reads;
  ++read.use;
  read.state = ReadState::Free;
  free_reads.push_back(number);
  if (on_read) {
    on_read({ReadMoment::Kind::Ended, read.id, peer.other, peer.owner, {}, {}, status});
  }
  tell(peer.owner, ReadDone{read.id, status, read.moved});
}

void SimNetwork::State::cancel(WorkerId owner, OpId id) {
  now = flows.now();
  for (const std::uint32_t p : workers[owner.index()].peers) {
    for (std::uint32_t number = peers[p].first; number != kNone; number = reads[number].next) {
      if (reads[number].id != id) continue;
      abort(number, ReadStatus::Cancelled);
      return;
    }
  }
}

// One alarm a peer, at the earliest deadline known when it was set: deadlines mostly pass unneeded.
void SimNetwork::State::watch_deadline(std::uint32_t p, Time deadline) {
  if (deadline >= peers[p].deadline_at) return;
  peers[p].deadline_at = std::max(deadline, flows.now());
  add(peers[p].deadline_at, EventKind::Deadline, p);
}

void SimNetwork::State::look_at_deadlines(std::uint32_t p) {
  peers[p].deadline_at = Time::never();
  Time next = Time::never();
  for (std::uint32_t number = peers[p].first; number != kNone;) {
    const std::uint32_t after = reads[number].next;
    if (reads[number].deadline <= now) {
      abort(number, ReadStatus::DeadlineExceeded);
    } else {
      next = std::min(next, reads[number].deadline);
    }
    number = after;
  }
  watch_deadline(p, next);
}

bool SimNetwork::State::send(WorkerId owner, PeerId id, std::span<const std::byte> payload) {
  if (!id.valid() || id.index() >= peers.size()) return false;
  const PeerState& peer = peers[id.index()];
  if (peer.owner != owner || !peer.open) return false;
  if (peer.dead || !carries(owner, peer.other, peer.route)) return true;
  if (free_parcels.empty()) {
    free_parcels.push_back(static_cast<std::uint32_t>(parcels.size()));
    parcels.emplace_back();
  }
  const std::uint32_t number = free_parcels.back();
  free_parcels.pop_back();
  parcels[number].from = owner;
  parcels[number].to = peer.other;
  parcels[number].route = peer.route;
  parcels[number].life = workers[peer.other.index()].life;
  parcels[number].payload.assign(payload.begin(), payload.end());
  add(flows.now() + peer.latency, EventKind::Message, number);
  return true;
}

void SimNetwork::State::peer_lost(std::uint32_t p) {
  if (!peers[p].open) return;
  peers[p].open = false;
  while (peers[p].first != kNone) abort(peers[p].first, ReadStatus::PeerGone);
  tell(peers[p].owner, PeerLost{PeerId(p), peers[p].other});
}

}  // namespace holdfast::sim
