// The inside of SimNetwork: connections, reads, the event queue. Included by its sources only.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <vector>

#include "sim/channel_meter.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
inline constexpr PeerLimits kLimits{Bytes(std::uint64_t{1} << 40), 4096, 1024};

// A permission, as its source keeps it.
struct Grant {
  WorkerId reader;
  Version version;
  RegionId region;
  bool revoked = false;
};

enum class ReadState : std::uint8_t { Free, Requested, Queued, Flowing, Arriving };

// An open read. Its number is the id of its flow.
struct OpenRead {
  OpId id = 0;
  std::uint32_t peer = kNone;
  std::uint32_t previous = kNone;  // of the same peer, in the order of the posts
  std::uint32_t next = kNone;
  std::uint32_t use = 0;  // rises when the number is used again: tells stale events
  std::uint32_t grant = kNone;
  ReadState state = ReadState::Free;
  ReadStatus status = ReadStatus::Ok;
  bool local_ok = true;
  Bytes bytes;
  Bytes moved;
  Bytes flow_bytes;                // what its flow carries: bytes, as jitter has it
  Bytes flow_done;                 // of them, before its way was closed
  std::uint64_t first_offset = 0;  // of its first remote byte
  std::uint64_t remote_end = 0;    // end of the last remote byte; all ones: wraps around
  Time deadline;
  Time flow_start;
};

struct PeerState {
  WorkerId owner;
  WorkerId other;
  std::uint32_t route = kNone;
  bool carries_data = false;
  bool in_use = true;           // until it is closed; then its number is given to another
  bool open = true;             // until it is closed or lost
  bool dead = false;            // its other end is gone for good
  bool blocked = false;         // its way is closed
  std::uint32_t first = kNone;  // reads in the order of their posts
  std::uint32_t last = kNone;
  std::uint32_t flowing = kNone;  // the read that is being served
  std::uint32_t reads = 0;
  std::uint64_t jitter_key = 0;
  Time latency;
  Time deadline_at = Time::never();  // when its deadlines are looked at next
  Time lost_at = Time::never();      // unless its way opens before
};

enum class EventKind : std::uint8_t {
  Request,   // a: read, b: use. Arrives at the source
  Arrival,   // a: read, b: use. The data, or the refusal, arrives
  Deadline,  // a: peer
  Message,   // a: parcel
  JobDone,   // a: worker, b: job, of that life
  Wake,      // a: worker
  Call,      // a: call
  Lost,      // a: peer
};

struct Event {
  Time at;
  std::uint64_t order = 0;  // events of one instant happen in the order in which they were made
  std::uint64_t b = 0;
  std::uint32_t a = 0;
  std::uint16_t life = 0;  // of the worker
  EventKind kind = EventKind::Wake;
  friend bool operator>(const Event& x, const Event& y) {
    return x.at != y.at ? x.at > y.at : x.order > y.order;
  }
};

struct Parcel {
  WorkerId from;
  WorkerId to;
  std::uint32_t route = kNone;
  std::uint16_t life = 0;  // of the receiver
  std::vector<std::byte> payload;
};

class SimTransport;
class SimMemory;

struct WorkerState {
  NodeId node;
  Rate digest_rate;
  std::unique_ptr<SimTransport> transport;
  std::unique_ptr<SimMemory> memory;
  std::vector<Bytes> regions;
  std::vector<Grant> grants;
  std::vector<std::uint32_t> peers;    // whose owner it is
  std::vector<std::uint32_t> readers;  // peers whose other end it is
  std::uint64_t cut_from = 0;          // bit by CutId: it is one of those who reach nobody
  std::uint64_t cut_to = 0;            // whom nobody reaches
  std::uint16_t life = 0;
  std::vector<TransportEvent> events;  // from `taken` on
  std::size_t taken = 0;
  std::vector<JobDone> jobs;  // from `jobs_taken` on
  std::size_t jobs_taken = 0;
  // The digest server: busy since then with that many bytes. (Rounding never adds up.)
  Time busy_since;
  Bytes busy_bytes;
  Time wake = Time::never();
  bool ready = false;    // is in the list of ready workers
  bool waiting = false;  // its actor is blocked in wait
  bool alive = true;

  [[nodiscard]] bool has_news() const { return taken < events.size() || jobs_taken < jobs.size(); }
};

struct SimNetwork::State {
  State(const Router& router, std::span<const NodeId> nodes, std::span<const DataPath> paths,
        const Meters& meters, const NetworkOptions& options);
  ~State();

  // What transports ask for.
  PeerId open(WorkerId owner, const Endpoint& endpoint);
  void close(WorkerId owner, PeerId peer);
  Access allow(WorkerId source, WorkerId reader, Version version, RegionId region);
  void revoke(WorkerId source, WorkerId reader, Version version);
  Posted read(WorkerId owner, const ReadRequest& request);
  void cancel(WorkerId owner, OpId id);
  bool send(WorkerId owner, PeerId peer, std::span<const std::byte> payload);
  void wait(WorkerId worker, Time until);
  void run_one_actor(const std::function<void()>& body);
  void wait_for_anybody(Time until);
  void wake_the_one();
  void is_ready(WorkerId worker);
  void gather_ready();
  void job(WorkerId worker, JobId id, Time at);

  void add(Time at, EventKind kind, std::uint32_t a, std::uint64_t b = 0);
  void instant(std::span<const FlowId> ended);
  void happen(const Event& event);
  void request_arrives(std::uint32_t read);
  void flow_ended(std::uint32_t read);
  void serve(std::uint32_t peer);
  void start_flow(std::uint32_t read);
  // Ends a read's flow and accounts for what it has moved.
  void cut_flow(std::uint32_t read);
  void arrive_later(std::uint32_t read);
  // Ends the read at once, whatever it is doing.
  void abort(std::uint32_t read, ReadStatus status);
  void finish(std::uint32_t read, ReadStatus status);
  void account(const OpenRead& read, Bytes bytes);
  void look_at_deadlines(std::uint32_t peer);
  void watch_deadline(std::uint32_t peer, Time deadline);
  void peer_lost(std::uint32_t peer);
  void release(std::uint32_t peer);
  void kill(WorkerId worker);
  void restart(WorkerId worker);
  void limit(std::span<const LinkShare> links);
  CutId cut(std::span<const WorkerId> from, std::span<const WorkerId> to);
  void heal(CutId cut);
  [[nodiscard]] bool carries(WorkerId from, WorkerId to, std::uint32_t route) const;
  void lose_later(std::uint32_t peer);
  // Stops or takes up what goes over the peer, as its way is now.
  void look_at_way(std::uint32_t peer);
  void look_at_ways();
  void tell(WorkerId worker, TransportEvent event);
  void make_ready(std::uint32_t worker);
  void wake_at(std::uint32_t worker, Time at);
  void call_at(Time at, std::function<void()> what);
  [[nodiscard]] std::uint32_t grant_of(const PeerState& peer, const Access& access) const;

  RouteTable routes;
  FlowDriver driver;
  ChannelMeter meter;
  FlowNetwork flows;
  BlockJitter jitter;
  std::vector<WorkerState> workers;
  std::vector<PeerState> peers;
  std::vector<std::uint32_t> free_peers;
  std::vector<bool> down;  // by link
  std::uint64_t cuts = 0;  // bit by CutId: in force
  std::size_t links_down = 0;
  Time detection;
  std::vector<OpenRead> reads;
  std::vector<std::uint32_t> free_reads;
  std::vector<Parcel> parcels;
  std::vector<std::uint32_t> free_parcels;
  std::vector<std::function<void()>> calls;
  std::vector<std::uint32_t> free_calls;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue;
  std::uint64_t next_order = 0;
  std::vector<std::uint32_t> ready;
  std::vector<std::uint32_t> ready_now;  // scratch
  std::function<void(WorkerId)> on_ready;
  std::function<void()> on_idle;
  std::function<void(const ReadMoment&)> on_read;
  Moved moved;
  Time now;
  bool stopped = false;
  bool with_actors = false;
  // run_one_actor
  bool one_actor = false;
  bool one_waits = false;
  Time one_until;                // of its wait
  std::set<Time> one_alarms;     // that are in the queue
  std::vector<WorkerId> polled;  // ready, and not yet taken
};

}  // namespace holdfast::sim
