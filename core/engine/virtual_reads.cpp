// The life of a read in the virtual network.
#include <algorithm>
#include <cstring>

#include "core/engine/virtual_state.hpp"

namespace holdfast {

using namespace virtual_network;

namespace {

constexpr std::byte kPoison{0xa5};

bool inside(std::uint64_t offset, std::uint64_t bytes, Bytes size) {
  return offset <= size.count() && bytes <= size.count() - offset;
}

std::uint64_t load64(const Access& access, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, access.bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

Posted VirtualNetwork::State::post(std::uint32_t number, const ReadRequest& request) {
  Peer& peer = peers[number];
  if (peer.closed || peer.lost) return Posted::PeerGone;
  if (peer.open.size() >= options.limits.reads_in_flight) return Posted::WouldBlock;
  if (free_reads.empty()) {
    free_reads.push_back(static_cast<std::uint32_t>(reads.size()));
    reads.emplace_back();
  }
  const std::uint32_t slot = free_reads.back();
  free_reads.pop_back();
  Read& read = reads[slot];
  read.id = request.id;
  read.peer = number;
  read.open = true;
  read.sent = false;
  read.corrupt = false;
  read.access = request.access;
  read.region = request.region;
  read.pieces.assign(request.pieces.begin(), request.pieces.end());
  read.deadline = request.deadline;
  read.bytes = 0;
  const std::vector<Region>& regions = workers[peer.owner.index()].regions;
  bool valid =
      read.region.index() < regions.size() && read.pieces.size() <= options.limits.pieces_per_read;
  for (const Piece& piece : read.pieces) {
    valid = valid && inside(piece.local_offset, piece.bytes, regions[read.region.index()].size);
    read.bytes += piece.bytes;
  }
  peer.open.push_back(slot);
  arm(number, read.deadline);
  record(VirtualRecord::Kind::Request, peer.owner, peer.remote, read.id);
  show(ReadSight::Kind::Posted, read);
  if (!valid || Bytes(read.bytes) > options.limits.bytes_per_read) {
    read.denial = ReadStatus::OutOfRange;
    schedule(now, EventKind::Denied, slot, read.generation);
  } else {
    schedule(now + options.latency, EventKind::Request, slot, read.generation);
  }
  return Posted::Posted;
}

const Grant* VirtualNetwork::State::grant_of(const Read& read) const {
  const Peer& peer = peers[read.peer];
  const std::vector<Grant>& grants = workers[peer.remote.index()].grants;
  if (read.access.size != 16) return nullptr;
  const std::uint64_t number = load64(read.access, 0);
  if (number >= grants.size()) return nullptr;
  const Grant& grant = grants[number];
  if (grant.secret != load64(read.access, 8) || grant.reader != peer.owner || grant.revoked) {
    return nullptr;
  }
  return &grant;
}

ReadStatus VirtualNetwork::State::admit(const Read& read) const {
  const Grant* grant = grant_of(read);
  if (grant == nullptr) return ReadStatus::AccessDenied;
  const Region& region = workers[peers[read.peer].remote.index()].regions[grant->region.index()];
  for (const Piece& piece : read.pieces) {
    if (!inside(piece.remote_offset, piece.bytes, region.size)) return ReadStatus::OutOfRange;
  }
  return ReadStatus::Ok;
}

void VirtualNetwork::State::request_arrived(std::uint32_t slot) {
  const std::uint32_t number = reads[slot].peer;
  Peer& peer = peers[number];
  if (!same_life(peer) || is_cut(peer.owner, peer.remote)) return;
  Worker& source = workers[peer.remote.index()];
  if (const ReadStatus status = admit(reads[slot]); status != ReadStatus::Ok) {
    return deny(slot, status);
  }
  peer.queue.emplace_back(slot, reads[slot].generation);
  if (!peer.in_turn) {
    peer.in_turn = true;
    source.turn.push_back(number);
  }
  serve_next(peer.remote);
}

// Peers take turns; what failed while it waited is passed over.
void VirtualNetwork::State::serve_next(WorkerId id) {
  Worker& source = workers[id.index()];
  while (source.alive && source.serving == kNone && source.stalled_until <= now &&
         !source.turn.empty()) {
    const std::uint32_t number = source.turn.front();
    Peer& peer = peers[number];
    source.turn.pop_front();
    while (!peer.queue.empty() && source.serving == kNone) {
      const auto [slot, generation] = peer.queue.front();
      peer.queue.pop_front();
      if (!current(slot, generation) || !same_life(peer)) continue;
      if (const ReadStatus status = admit(reads[slot]); status != ReadStatus::Ok) {
        deny(slot, status);
        continue;
      }
      source.serving = slot;
      source.serving_generation = generation;
      source.serving_to = peer.owner;
      source.serving_rate = std::min(source.rate, workers[peer.owner.index()].rate);
      const Time time = transfer_time(Bytes(reads[slot].bytes), source.serving_rate);
      source.served_at = time == Time::never() ? time : now + time;
      schedule(source.served_at, EventKind::Served, id.value(), source.life);
    }
    peer.in_turn = !peer.queue.empty();
    if (peer.in_turn) source.turn.push_back(number);
  }
}

// What is being served, or waits to be taken in, goes on at the new rate.
void VirtualNetwork::State::set_rate(WorkerId id, Rate rate) {
  __extension__ using Wide = unsigned __int128;
  const auto until = [this](Time at, Rate before, Rate after) {
    const Wide left = static_cast<Wide>((at - now).picoseconds()) * before.bytes_per_second();
    const std::uint64_t speed = after.bytes_per_second();
    return now + Time(static_cast<std::int64_t>((left + speed - 1) / speed));
  };
  Worker& worker = workers[id.index()];
  const Rate before = std::exchange(worker.rate, rate);
  if (worker.sink_free > now) worker.sink_free = until(worker.sink_free, before, rate);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    Worker& source = workers[w];
    if (source.serving == kNone || (WorkerId(w) != id && source.serving_to != id)) continue;
    const Rate shared = std::min(source.rate, workers[source.serving_to.index()].rate);
    if (shared == source.serving_rate) continue;
    source.served_at = until(source.served_at, source.serving_rate, shared);
    source.serving_rate = shared;
    schedule(source.served_at, EventKind::Served, static_cast<std::uint32_t>(w), source.life);
  }
}

void VirtualNetwork::State::served(WorkerId id) {
  Worker& source = workers[id.index()];
  source.served_at = Time::never();
  const std::uint32_t slot = std::exchange(source.serving, kNone);
  if (!source.alive) return;
  if (current(slot, source.serving_generation) && same_life(peers[reads[slot].peer])) {
    Read& read = reads[slot];
    if (const ReadStatus status = admit(read); status != ReadStatus::Ok) {
      deny(slot, status);
    } else {
      take_from_source(read);
      source.traffic.out += Bytes(read.bytes);
      const WorkerId owner = peers[read.peer].owner;
      record(VirtualRecord::Kind::Served, id, owner, read.id);
      Worker& sink = workers[owner.index()];
      Time arrival = now + options.latency;
      if (options.read_jitter > Time{}) {
        const auto span = static_cast<std::uint64_t>(options.read_jitter.picoseconds()) + 1;
        arrival += Time(static_cast<std::int64_t>(random() % span));
      }
      arrival = std::max(arrival, sink.sink_free + transfer_time(Bytes(read.bytes), sink.rate));
      sink.sink_free = arrival;
      if (!is_cut(id, owner)) schedule(arrival, EventKind::Arrived, slot, read.generation);
    }
  }
  serve_next(id);
}

void VirtualNetwork::State::take_from_source(Read& read) {
  Worker& source = workers[peers[read.peer].remote.index()];
  read.sent = true;
  read.corrupt = source.corrupt_after != 0 && --source.corrupt_after == 0;
  read.data.clear();
  const Region& region = source.regions[grant_of(read)->region.index()];
  if (region.memory.empty()) return;
  for (const Piece& piece : read.pieces) {
    const auto bytes = region.memory.subspan(piece.remote_offset, piece.bytes);
    read.data.insert(read.data.end(), bytes.begin(), bytes.end());
  }
  show(ReadSight::Kind::Served, read);
  if (read.corrupt && !read.data.empty()) {
    read.data[random() % read.data.size()] ^= static_cast<std::byte>(1U + random() % 255U);
  }
}

void VirtualNetwork::State::put_into_sink(Read& read) {
  const Region& region = workers[peers[read.peer].owner.index()].regions[read.region.index()];
  if (region.memory.empty() || read.data.size() != read.bytes) return;
  auto from = read.data.begin();
  for (const Piece& piece : read.pieces) {
    const auto bytes = static_cast<std::ptrdiff_t>(piece.bytes);
    std::copy(from, from + bytes,
              region.memory.begin() + static_cast<std::ptrdiff_t>(piece.local_offset));
    from += bytes;
  }
}

void VirtualNetwork::State::arrived(std::uint32_t slot) {
  Read& read = reads[slot];
  const Peer& peer = peers[read.peer];
  put_into_sink(read);
  workers[peer.owner.index()].traffic.in += Bytes(read.bytes);
  record(VirtualRecord::Kind::Arrived, peer.remote, peer.owner, read.id);
  show(ReadSight::Kind::Arrived, read);
  complete(slot, ReadStatus::Ok);
}

void VirtualNetwork::State::deny(std::uint32_t slot, ReadStatus status) {
  const Peer& peer = peers[reads[slot].peer];
  if (is_cut(peer.remote, peer.owner)) return;
  reads[slot].denial = status;
  schedule(now + options.latency, EventKind::Denied, slot, reads[slot].generation);
}

// A read that fails leaves its range in the worst state that the contract allows.
void VirtualNetwork::State::complete(std::uint32_t slot, ReadStatus status) {
  Read& read = reads[slot];
  Peer& peer = peers[read.peer];
  Worker& owner = workers[peer.owner.index()];
  if (status != ReadStatus::Ok) {
    record(VirtualRecord::Kind::Failed, peer.remote, peer.owner, read.id);
    if (status != ReadStatus::OutOfRange) {
      read.data.assign(read.bytes, kPoison);
      put_into_sink(read);
    }
  }
  show(ReadSight::Kind::Ended, read);
  peer.open.erase(std::find(peer.open.begin(), peer.open.end(), slot));
  const ReadDone done{read.id, status, Bytes(read.sent ? read.bytes : 0)};
  const WorkerId worker = peer.owner;
  release(slot);
  if (owner.alive) tell(worker, done);
}

// Like a queue that has to be drained first, if the options say so.
void VirtualNetwork::State::cancel(std::uint32_t slot) {
  if (options.cancel_time == Time{}) return complete(slot, ReadStatus::Cancelled);
  const auto span = static_cast<std::uint64_t>(options.cancel_time.picoseconds()) + 1;
  schedule(now + Time(static_cast<std::int64_t>(random() % span)), EventKind::Cancelled, slot,
           reads[slot].generation);
}

void VirtualNetwork::State::release(std::uint32_t slot) {
  reads[slot].open = false;
  reads[slot].data.clear();
  ++reads[slot].generation;
  free_reads.push_back(slot);
}

void VirtualNetwork::State::fail_all(std::uint32_t peer, ReadStatus status) {
  while (!peers[peer].open.empty()) complete(peers[peer].open.front(), status);
}

void VirtualNetwork::State::arm(std::uint32_t number, Time deadline) {
  if (deadline >= peers[number].timer) return;
  peers[number].timer = deadline;
  schedule(std::max(deadline, now), EventKind::Deadline, number);
}

void VirtualNetwork::State::check_deadlines(std::uint32_t number) {
  Peer& peer = peers[number];
  peer.timer = Time::never();
  std::vector<std::uint32_t> over;
  Time next = Time::never();
  for (const std::uint32_t slot : peer.open) {
    if (reads[slot].deadline <= now) {
      over.push_back(slot);
    } else {
      next = std::min(next, reads[slot].deadline);
    }
  }
  for (const std::uint32_t slot : over) complete(slot, ReadStatus::DeadlineExceeded);
  arm(number, next);
}

}  // namespace holdfast
