// How TcpReaders receive: from the socket straight into the ranges of reads.
#include <algorithm>
#include <cerrno>

#include "real/tcp_readers.hpp"

namespace holdfast::real {
namespace {

// System calls on one socket before the others get their turn.
constexpr int kMostReceives = 8;
constexpr std::size_t kMostVectors = 32;

PeerLoss loss_of(Refusal why) {
  switch (why) {
    case Refusal::WrongWorker:
      return PeerLoss::WrongWorker;
    case Refusal::StaleInstance:
      return PeerLoss::StaleInstance;
    case Refusal::StaleIncarnation:
      return PeerLoss::StaleIncarnation;
  }
  return PeerLoss::BadFrame;
}

}  // namespace

void TcpReaders::ready(std::uint32_t number, bool input, bool output, Time now) {
  if (number >= peers_.size() || peers_[number].link == nullptr) return;
  Peer& peer = peers_[number];
  if (output) {
    peer.connected = true;  // or has failed: receiving tells
    peer.link->want_output(false);
    want_turn(number);
  }
  if (input) feed(number, now);
}

void TcpReaders::send_round() {
  for (std::size_t n = turns_.size(); n != 0; --n) {
    const std::uint32_t number = turns_.front();
    turns_.pop_front();
    Peer& peer = peers_[number];
    if (peer.link == nullptr) continue;
    peer.link->in_turn = false;
    while (!peer.link->drained()) {
      if (peer.link->staged_done()) peer.link->stage();
      const Link::Result result = peer.link->send({}).result;
      if (result == Link::Result::Done) continue;
      if (result == Link::Result::Blocked) peer.link->want_output(true);
      if (result == Link::Result::Failed) {
        lose(number, peer.recognised ? PeerLoss::Reset : PeerLoss::Unreachable);
      }
      break;
    }
  }
}

void TcpReaders::feed(std::uint32_t number, Time now) {
  for (int n = 0; n < kMostReceives; ++n) {
    if (!receive(number, now)) return;
  }
}

bool TcpReaders::receive(std::uint32_t number, Time now) {
  Peer& peer = peers_[number];
  Link& link = *peer.link;
  vectors_.clear();
  const std::uint32_t data = link.input().data_left();
  const std::uint64_t covered = data == 0 ? 0 : place(peer, vectors_);
  if (covered == data) {
    const std::span<std::byte> room = link.input().room();
    vectors_.push_back({room.data(), room.size()});
  }
  const ssize_t got =
      ::readv(link.descriptor(), vectors_.data(), static_cast<int>(vectors_.size()));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    lose(number, peer.recognised ? PeerLoss::Reset : PeerLoss::Unreachable);
    return false;
  }
  link.heard = now;
  link.pinged = false;
  const auto bytes = static_cast<std::uint64_t>(got);
  const std::uint64_t of_data = std::min(bytes, covered);
  placed(peer, of_data);
  if (bytes == of_data) return true;
  const FrameInput::Got what = link.input().filled(bytes - of_data);
  if (what == FrameInput::Got::More) return true;
  const PeerLoss wrong = what == FrameInput::Got::Broken ? PeerLoss::BadFrame : take(peer);
  if (wrong == PeerLoss::None) {
    want_turn(number);
    return true;
  }
  lose(number, wrong);
  return false;
}

std::uint64_t TcpReaders::place(Peer& peer, std::vector<iovec>& out) {
  FrameInput& input = peer.link->input();
  const std::uint64_t wanted = input.data_left();
  const auto read = find(peer, input.header().sequence);
  if (read == peer.reads.end()) {  // it is over here: thrown away
    const std::uint64_t bytes = std::min<std::uint64_t>(wanted, core_.scratch.size());
    out.push_back({core_.scratch.data(), bytes});
    return bytes;
  }
  std::uint64_t covered = 0;
  std::uint64_t within = read->within;
  for (std::size_t p = read->piece; covered != wanted && out.size() < kMostVectors;
       ++p, within = 0) {
    const Piece& piece = read->pieces[p];
    const std::uint64_t bytes = std::min(wanted - covered, piece.bytes - within);
    if (bytes == 0) continue;
    const auto part = core_.regions.part(read->region, piece.local_offset + within, bytes);
    out.push_back({part.data(), part.size()});
    covered += bytes;
  }
  return covered;
}

void TcpReaders::placed(Peer& peer, std::uint64_t bytes) {
  if (bytes == 0) return;
  FrameInput& input = peer.link->input();
  input.placed(static_cast<std::uint32_t>(bytes));
  const auto read = find(peer, input.header().sequence);
  if (read == peer.reads.end()) return;
  read->received += bytes;
  while (bytes != 0) {
    const std::uint64_t part = std::min(bytes, read->pieces[read->piece].bytes - read->within);
    read->within += part;
    bytes -= part;
    if (read->within == read->pieces[read->piece].bytes) {
      ++read->piece;
      read->within = 0;
    }
  }
}

// What is wrong with the frame that has come, or None.
PeerLoss TcpReaders::take(Peer& peer) {
  const FrameHeader& header = peer.link->input().header();
  if (header.type == FrameType::Refuse) return loss_of(static_cast<Refusal>(header.detail));
  if (peer.recognised == (header.type == FrameType::Welcome)) return PeerLoss::BadFrame;
  switch (header.type) {
    case FrameType::Welcome:
      return take_welcome(peer);
    case FrameType::Data:
      return take_data(peer);
    case FrameType::Done:
      return take_done(peer);
    case FrameType::Fence:
      append_header({FrameType::Fenced, 0, 0, header.sequence}, peer.link->out());
      return PeerLoss::None;
    case FrameType::Ping:
      append_header({FrameType::Pong, 0, 0, header.sequence}, peer.link->out());
      return PeerLoss::None;
    default:
      return header.type == FrameType::Pong ? PeerLoss::None : PeerLoss::BadFrame;
  }
}

PeerLoss TcpReaders::take_welcome(Peer& peer) {
  const auto welcome = decode_welcome(peer.link->input().payload());
  if (!welcome || welcome->nonce != peer.nonce) return PeerLoss::BadFrame;
  if (welcome->worker != peer.worker) return PeerLoss::WrongWorker;
  if (peer.instance != 0 && welcome->instance != peer.instance) return PeerLoss::StaleInstance;
  peer.recognised = true;
  std::vector<std::byte>& out = peer.link->out();
  out.insert(out.end(), peer.held.begin(), peer.held.end());
  peer.held = {};
  return PeerLoss::None;
}

PeerLoss TcpReaders::take_data(Peer& peer) {
  const FrameHeader& header = peer.link->input().header();
  if (header.sequence >= peer.next_sequence) return PeerLoss::BadFrame;
  const auto read = find(peer, header.sequence);
  const bool fits = read == peer.reads.end() || header.length <= read->total - read->received;
  return fits ? PeerLoss::None : PeerLoss::BadFrame;
}

PeerLoss TcpReaders::take_done(Peer& peer) {
  const FrameHeader& header = peer.link->input().header();
  if (header.sequence >= peer.next_sequence) return PeerLoss::BadFrame;
  const auto read = find(peer, header.sequence);
  if (read == peer.reads.end()) return PeerLoss::None;
  const auto status = static_cast<ReadStatus>(header.detail);
  if (status == ReadStatus::Ok && read->received != read->total) return PeerLoss::BadFrame;
  const auto number = static_cast<std::uint32_t>(&peer - peers_.data());
  complete(number, read, status, false);
  return PeerLoss::None;
}

}  // namespace holdfast::real
