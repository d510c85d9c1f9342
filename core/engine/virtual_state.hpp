// The inside of the virtual network, shared by its sources.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "core/engine/virtual_network.hpp"

namespace holdfast::virtual_network {

inline constexpr std::uint32_t kNone = 0xffffffffU;

enum class EventKind {
  Request,    // read: its request reaches the source
  Served,     // worker: its port is done with a read
  Arrived,    // read: its bytes are there
  Denied,     // read: word of its failure is there
  Cancelled,  // read: what was on its way is over
  Deadline,   // peer: look at the deadlines of its reads
  PeerLost,   // peer: a crash is noticed
  Message,    // letter
  Revoked,    // worker
  JobDone,    // worker
  PortReady,  // worker: a stall is over
  Action,
};

struct Event {
  Time at;
  std::uint64_t order = 0;  // of scheduling: ties go to the earlier
  EventKind kind = EventKind::Action;
  std::uint32_t subject = 0;
  std::uint32_t generation = 0;  // of a read slot, or life of a worker: an older one is stale
  friend bool operator>(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

struct Read {
  OpId id = 0;
  std::uint32_t peer = kNone;
  std::uint32_t generation = 0;
  bool open = false;
  bool sent = false;  // its bytes have left the source
  bool corrupt = false;
  Access access;
  RegionId region;  // local
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  Time deadline;
  ReadStatus denial = ReadStatus::Ok;
  std::vector<std::byte> data;  // on the wire
};

struct Peer {
  WorkerId owner;
  WorkerId remote;
  std::uint32_t remote_life = 0;
  bool closed = false;
  bool lost = false;
  bool in_turn = false;            // in its source's `turn`
  std::deque<std::uint32_t> open;  // reads, in the order they were posted
  std::deque<std::pair<std::uint32_t, std::uint32_t>> queue;  // at the source: slot, generation
  Time timer = Time::never();                                 // earliest Deadline event
};

struct Region {
  std::span<std::byte> memory;
  Bytes size;
};

struct Grant {
  WorkerId reader;
  Version version;
  RegionId region;
  std::uint64_t secret = 0;
  bool revoked = false;
};

struct Job {
  JobId id = 0;
  RegionId region;
  std::vector<Extent> extents;
  RegionId target;
  std::uint64_t target_offset = 0;
  enum class Kind { Digest, Gather, Scatter } kind = Kind::Digest;
};

class VirtualTransport;
class VirtualMemory;

struct Worker {
  bool alive = true;
  std::uint32_t life = 0;  // restarts so far
  Rate rate;
  std::vector<Region> regions;
  std::vector<Grant> grants;
  std::deque<TransportEvent> inbox;
  std::deque<JobDone> done;
  std::deque<Job> jobs;  // in order
  std::deque<Revoked> revokes;
  std::deque<std::uint32_t> turn;  // peers with waiting reads at this source
  std::uint32_t serving = kNone;   // read slot
  std::uint32_t serving_generation = 0;
  WorkerId serving_to;
  Rate serving_rate;
  Time served_at = Time::never();  // of the Served event that counts
  Time stalled_until;
  Time sink_free;
  Time memory_free;
  std::uint64_t corrupt_after = 0;  // 1 + reads to skip; 0: none
  bool announced = false;           // in `ready`
  VirtualTraffic traffic;
  std::unique_ptr<VirtualTransport> transport;
  std::unique_ptr<VirtualMemory> memory;
};

struct Letter {
  WorkerId from;
  WorkerId to;
  std::uint32_t to_life = 0;
  std::vector<std::byte> payload;
};

}  // namespace holdfast::virtual_network

namespace holdfast {

struct VirtualNetwork::State {
  State(VirtualNetwork& owner, std::size_t count, const VirtualOptions& given);
  ~State();

  void schedule(Time at, virtual_network::EventKind kind, std::uint32_t subject,
                std::uint32_t generation = 0);
  // Drops events that would do nothing, so that the clock does not move for them.
  void drop_stale();
  void happen(const virtual_network::Event& event);
  std::uint64_t random();  // splitmix64
  void record(VirtualRecord::Kind kind, WorkerId from, WorkerId to, std::uint64_t detail);
  void announce(WorkerId worker);
  void tell(WorkerId worker, TransportEvent event);

  // Reads.
  Posted post(std::uint32_t peer, const ReadRequest& request);
  void request_arrived(std::uint32_t slot);
  void serve_next(WorkerId source);
  void set_rate(WorkerId worker, Rate rate);
  void served(WorkerId source);
  void arrived(std::uint32_t slot);
  void deny(std::uint32_t slot, ReadStatus status);
  void complete(std::uint32_t slot, ReadStatus status);
  void cancel(std::uint32_t slot);
  void take_from_source(virtual_network::Read& read);
  void put_into_sink(virtual_network::Read& read);
  void check_deadlines(std::uint32_t peer);
  void arm(std::uint32_t peer, Time deadline);
  void fail_all(std::uint32_t peer, ReadStatus status);
  // The grant that lets the read through, or null.
  [[nodiscard]] const virtual_network::Grant* grant_of(const virtual_network::Read& read) const;
  [[nodiscard]] ReadStatus admit(const virtual_network::Read& read) const;
  [[nodiscard]] bool current(std::uint32_t slot, std::uint32_t generation) const {
    return reads[slot].open && reads[slot].generation == generation;
  }
  void release(std::uint32_t slot);

  void crash(WorkerId worker);
  void restart(WorkerId worker);
  [[nodiscard]] bool is_cut(WorkerId from, WorkerId to) const {
    return !cuts.empty() && cuts[from.index() * workers.size() + to.index()];
  }
  // The life to which the peer was opened is still the remote's.
  [[nodiscard]] bool same_life(const virtual_network::Peer& peer) const {
    if (peer.remote.index() >= workers.size()) return false;  // whoever that is, it is not here
    const virtual_network::Worker& remote = workers[peer.remote.index()];
    return remote.alive && remote.life == peer.remote_life;
  }
  void show(ReadSight::Kind kind, const virtual_network::Read& read) const;
  void lost(std::uint32_t peer);
  void send(const virtual_network::Peer& peer, std::span<const std::byte> payload);
  void job_done(WorkerId worker);
  void submit(WorkerId worker, virtual_network::Job job);
  void run_until_ready(WorkerId worker, Time until);

  VirtualNetwork& network;
  VirtualOptions options;
  Time now;
  std::uint64_t order = 0;
  std::uint64_t random_state = 0;
  std::priority_queue<virtual_network::Event, std::vector<virtual_network::Event>, std::greater<>>
      events;
  std::vector<virtual_network::Worker> workers;
  std::vector<virtual_network::Peer> peers;
  std::vector<virtual_network::Read> reads;
  std::vector<std::uint32_t> free_reads;
  std::vector<virtual_network::Letter> letters;
  std::vector<std::uint32_t> free_letters;
  std::vector<std::function<void()>> actions;
  std::vector<WorkerId> ready;
  std::vector<bool> cuts;  // by from, to; empty: none so far
  std::function<void(const ReadSight&)> watcher;
  std::function<void(WorkerId, Time)> wait;
  std::vector<VirtualRecord> records;
};

}  // namespace holdfast

namespace holdfast::virtual_network {

class VirtualTransport final : public Transport {
 public:
  VirtualTransport(VirtualNetwork::State& state, WorkerId self) : state_(state), self_(self) {}

  RegionId add_region(std::span<std::byte> memory, Bytes size) override;
  PeerId open(const Endpoint& endpoint, std::uint64_t nonce) override;
  void close(PeerId peer) override;
  [[nodiscard]] PeerLimits limits(PeerId peer) const override;
  Access allow(WorkerId reader, Version version, RegionId region) override;
  void revoke(WorkerId reader, Version version) override;
  Posted read(const ReadRequest& request) override;
  void cancel(OpId id) override;
  bool send(PeerId peer, std::span<const std::byte> payload) override;
  std::size_t poll(std::span<TransportEvent> out) override;
  void wait(Time until) override;
  [[nodiscard]] Time now() const override;
  void forget() { peers_.clear(); }  // a new life

 private:
  [[nodiscard]] Worker& self() const { return state_.workers[self_.index()]; }

  VirtualNetwork::State& state_;
  WorkerId self_;
  std::vector<std::uint32_t> peers_;  // opened by this worker in this life
};

class VirtualMemory final : public Memory {
 public:
  VirtualMemory(VirtualNetwork::State& state, WorkerId self) : state_(state), self_(self) {}

  void digest(JobId id, RegionId region, std::span<const Extent> extents) override;
  void gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
              std::uint64_t target_offset) override;
  void scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
               std::span<const Extent> extents) override;
  std::size_t poll(std::span<JobDone> out) override;

 private:
  VirtualNetwork::State& state_;
  WorkerId self_;
};

}  // namespace holdfast::virtual_network
