#include "real/tcp_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace holdfast::real {
namespace {

constexpr std::size_t kMostHeld = std::size_t{1} << 20;  // bytes until a peer is recognised

// Of "address#instance"; zero without.
std::optional<std::uint64_t> parse_instance(std::string_view text) {
  std::uint64_t instance = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), instance, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return instance;
}

struct Target {
  SocketAddress address;
  std::uint64_t instance = 0;
};

std::optional<Target> parse_target(std::string_view text, bool anywhere) {
  Target target;
  const std::size_t mark = text.find('#');
  if (mark != std::string_view::npos) {
    const auto instance = parse_instance(text.substr(mark + 1));
    if (!instance) return std::nullopt;
    target.instance = *instance;
  }
  const auto address = parse_address(text.substr(0, mark));
  if (!address || (!anywhere && !address->loopback())) return std::nullopt;
  target.address = *address;
  return target;
}

}  // namespace

PeerId TcpReaders::open(const Endpoint& endpoint, std::uint64_t nonce) {
  const auto number = static_cast<std::uint32_t>(peers_.size());
  Peer& peer = peers_.emplace_back();
  peer.worker = endpoint.worker;
  peer.nonce = nonce;
  const auto target = parse_target(endpoint.address, core_.options.anywhere);
  if (!target || !endpoint.worker.valid()) {
    lose(number, PeerLoss::BadAddress);
    return PeerId(number);
  }
  peer.instance = target->instance;
  Descriptor socket = start_connect(target->address);
  if (socket.valid()) {
    peer.link = std::make_unique<Link>(core_, std::move(socket), LinkKind::Peer, number);
  }
  if (!peer.link || !peer.link->valid()) {
    lose(number, PeerLoss::Unreachable);
    return PeerId(number);
  }
  append_hello({core_.self, endpoint.worker, core_.options.incarnation, nonce, peer.instance},
               peer.link->out());
  peer.link->want_output(true);  // writable: connected
  return PeerId(number);
}

void TcpReaders::close(PeerId peer) {
  if (peers_[peer.index()].link == nullptr) return;
  peers_[peer.index()].loss = PeerLoss::Closed;
  end(peer.value(), ReadStatus::Cancelled);
}

std::vector<std::byte>& TcpReaders::frames(Peer& peer) {
  return peer.recognised ? peer.link->out() : peer.held;
}

void TcpReaders::want_turn(std::uint32_t number) {
  Peer& peer = peers_[number];
  if (!peer.connected || peer.link->in_turn || peer.link->drained()) return;
  peer.link->in_turn = true;
  turns_.push_back(number);
}

Posted TcpReaders::read(const ReadRequest& request, Time now) {
  const auto number = request.peer.value();
  if (request.peer.index() >= peers_.size()) return Posted::PeerGone;
  Peer& peer = peers_[number];
  if (peer.link == nullptr) return Posted::PeerGone;
  const PeerLimits& limits = core_.options.limits;
  // The second: so many came and were given up that the source has not even heard of all.
  if (peer.reads.size() >= limits.reads_in_flight || peer.link->overfull() ||
      peer.held.size() > kMostHeld) {
    return Posted::WouldBlock;
  }
  Read read;
  read.id = request.id;
  read.region = request.region;
  read.deadline = request.deadline;
  bool valid = request.pieces.size() <= limits.pieces_per_read &&
               request.access.size <= Access::kCapacity && core_.regions.has(request.region);
  for (const Piece& piece : request.pieces) {
    valid = valid && core_.regions.inside(request.region, piece.local_offset, piece.bytes) &&
            piece.bytes <= limits.bytes_per_read.count() - read.total;
    if (!valid) break;
    read.total += piece.bytes;
  }
  if (!valid || request.deadline <= now) {
    const ReadStatus status = valid ? ReadStatus::DeadlineExceeded : ReadStatus::OutOfRange;
    core_.tell(ReadDone{request.id, status, Bytes{}});
    return Posted::Posted;
  }
  read.pieces.assign(request.pieces.begin(), request.pieces.end());
  read.sequence = peer.next_sequence++;
  append_read(read.sequence, request.access, request.pieces, frames(peer));
  if (read.deadline != Time::never()) deadlines_.emplace(read.deadline, number, read.sequence);
  owners_[read.id] = number;
  peer.reads.push_back(std::move(read));
  want_turn(number);
  return Posted::Posted;
}

void TcpReaders::cancel(OpId id) {
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;
  const std::uint32_t number = owner->second;
  std::deque<Read>& reads = peers_[number].reads;
  const auto found =
      std::find_if(reads.begin(), reads.end(), [&](const Read& read) { return read.id == id; });
  complete(number, found, ReadStatus::Cancelled, true);
}

bool TcpReaders::send(PeerId id, std::span<const std::byte> payload) {
  if (id.index() >= peers_.size() || peers_[id.index()].link == nullptr) return false;
  Peer& peer = peers_[id.index()];
  if (payload.size() > Transport::kMaxMessage) return false;
  if (peer.link->overfull() || peer.held.size() > kMostHeld) return true;  // lost
  std::vector<std::byte>& out = frames(peer);
  append_header({FrameType::Message, 0, static_cast<std::uint32_t>(payload.size()), 0}, out);
  out.insert(out.end(), payload.begin(), payload.end());
  want_turn(id.value());
  return true;
}

std::deque<TcpReaders::Read>::iterator TcpReaders::find(Peer& peer, std::uint64_t sequence) {
  const auto found = std::lower_bound(
      peer.reads.begin(), peer.reads.end(), sequence,
      [](const Read& read, std::uint64_t wanted) { return read.sequence < wanted; });
  return found != peer.reads.end() && found->sequence == sequence ? found : peer.reads.end();
}

void TcpReaders::complete(std::uint32_t number, const std::deque<Read>::const_iterator& read,
                          ReadStatus status, bool tell_source) {
  Peer& peer = peers_[number];
  core_.tell(ReadDone{read->id, status, Bytes(read->received)});
  deadlines_.erase({read->deadline, number, read->sequence});
  owners_.erase(read->id);
  if (tell_source) {
    append_header({FrameType::Cancel, 0, 0, read->sequence}, frames(peer));
    want_turn(number);
  }
  peer.reads.erase(read);
}

void TcpReaders::lose(std::uint32_t number, PeerLoss why) {
  peers_[number].loss = why;
  end(number, ReadStatus::PeerGone);
  core_.tell(PeerLost{PeerId(number), peers_[number].worker});
}

void TcpReaders::end(std::uint32_t number, ReadStatus status) {
  Peer& peer = peers_[number];
  peer.link.reset();
  peer.held = {};
  while (!peer.reads.empty()) complete(number, peer.reads.begin(), status, false);
  peer.reads = {};
}

Time TcpReaders::next_time() const {
  return deadlines_.empty() ? Time::never() : std::get<0>(*deadlines_.begin());
}

void TcpReaders::on_time(Time now) {
  while (!deadlines_.empty() && std::get<0>(*deadlines_.begin()) <= now) {
    const auto [deadline, number, sequence] = *deadlines_.begin();
    complete(number, find(peers_[number], sequence), ReadStatus::DeadlineExceeded, true);
  }
}

void TcpReaders::check_pulses(Time now) {
  for (std::uint32_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    if (peer.link == nullptr) continue;
    const PeerLoss why = check_pulse(*peer.link, core_.options, peer.recognised, now);
    if (why != PeerLoss::None) {
      lose(number, why);
    } else {
      want_turn(number);
    }
  }
}

}  // namespace holdfast::real
