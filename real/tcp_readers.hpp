// The half of a TcpTransport that reads: peers that were opened, reads under way, their deadlines.
// Internal to real.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "real/tcp_link.hpp"

namespace holdfast::real {

class TcpReaders {
 public:
  explicit TcpReaders(TcpCore& core) : core_(core) {}

  PeerId open(const Endpoint& endpoint, std::uint64_t nonce);
  void close(PeerId peer);
  [[nodiscard]] PeerLoss loss(PeerId peer) const { return peers_[peer.index()].loss; }
  Posted read(const ReadRequest& request, Time now);
  void cancel(OpId id);
  bool send(PeerId peer, std::span<const std::byte> payload);

  // A socket is readable or writable; peers that are gone are passed over.
  void ready(std::uint32_t number, bool input, bool output, Time now);
  // Sends what waits.
  void send_round();
  [[nodiscard]] bool busy() const { return !turns_.empty(); }
  // The earliest deadline of a read.
  [[nodiscard]] Time next_time() const;
  void on_time(Time now);
  void check_pulses(Time now);

 private:
  struct Read {
    OpId id = 0;
    std::uint64_t sequence = 0;
    RegionId region;
    std::vector<Piece> pieces;
    std::size_t piece = 0;     // the next byte: this piece ...
    std::uint64_t within = 0;  // ... and this offset in it
    std::uint64_t total = 0;
    std::uint64_t received = 0;
    Time deadline;
  };
  struct Peer {
    WorkerId worker;
    std::uint64_t nonce = 0;
    std::uint64_t instance = 0;  // expected; zero: any
    std::unique_ptr<Link> link;  // null once it is gone
    bool connected = false;
    bool recognised = false;
    std::uint64_t next_sequence = 0;
    std::deque<Read> reads;       // open, ascending by sequence
    std::vector<std::byte> held;  // frames for later, until it is recognised
    PeerLoss loss = PeerLoss::None;
  };

  // Where frames for the peer go now.
  std::vector<std::byte>& frames(Peer& peer);
  void want_turn(std::uint32_t number);
  void feed(std::uint32_t number, Time now);
  // One system call. False if nothing more can be had now, or the peer is gone.
  bool receive(std::uint32_t number, Time now);
  // Adds where the next bytes of the data under way belong; returns how many are covered.
  std::uint64_t place(Peer& peer, std::vector<iovec>& out);
  void placed(Peer& peer, std::uint64_t bytes);
  [[nodiscard]] PeerLoss take(Peer& peer);
  [[nodiscard]] PeerLoss take_data(Peer& peer);
  [[nodiscard]] PeerLoss take_done(Peer& peer);
  [[nodiscard]] PeerLoss take_welcome(Peer& peer);
  [[nodiscard]] static std::deque<Read>::iterator find(Peer& peer, std::uint64_t sequence);
  // The read is over here; its source is told unless it said so itself.
  void complete(std::uint32_t number, const std::deque<Read>::const_iterator& read,
                ReadStatus status, bool tell_source);
  void lose(std::uint32_t number, PeerLoss why);
  void end(std::uint32_t number, ReadStatus status);

  TcpCore& core_;
  std::vector<Peer> peers_;
  std::unordered_map<OpId, std::uint32_t> owners_;                      // peers of open reads
  std::set<std::tuple<Time, std::uint32_t, std::uint64_t>> deadlines_;  // peer, sequence
  std::deque<std::uint32_t> turns_;                                     // peers with output
  std::vector<iovec> vectors_;                                          // scratch
};

}  // namespace holdfast::real
