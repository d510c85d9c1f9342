// A network inside one process with virtual time: Transports and Memories that move real bytes
// between registered regions, with seeded loss, doubling, delay and reordering of messages,
// crashes, restarts, one-way cuts, stalls and corruption. The second implementation of the
// contracts, the oracle of the engine's tests and the network of the fuzzer.
//
// Model. A read's request takes the latency to its source. The source's port serves one read at a
// time, peers with waiting reads in turn, each for bytes / min(source rate, sink rate); the bytes
// leave at the end of that time and arrive one latency later, or when the sink's port has taken in
// what came before. Messages take the latency and no capacity. A memory digests one job after the
// other. All of it exact to the picosecond: a chain of h hops takes
// (blocks + h - 1) x (block time) + h x 2 latencies + (h - 1) latencies for the words between them,
// where windows hide the latencies and verification is off.
//
// Time moves only inside `step`, `advance` and Transport::wait. Deterministic: the same calls with
// the same seed bring the same events. One thread at a time.
//
//   VirtualNetwork network(2, {});
//   Transport& transport = network.transport(WorkerId(0U));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/read_sight.hpp"
#include "core/engine/transport.hpp"

namespace holdfast {

struct VirtualOptions {
  std::uint64_t seed = 1;
  Rate rate = Rate(10'000'000'000);  // of each port, each way; see set_rate
  Time latency = microseconds(5);    // one way
  Rate digest_rate;                  // zero: digests take no time
  Time detection = milliseconds(1);  // from a crash to PeerLost
  PeerLimits limits{Bytes(std::uint64_t{1} << 40), 4096, 64};
  std::uint32_t lost_per_mille = 0;     // messages
  std::uint32_t doubled_per_mille = 0;  // messages
  Time message_jitter;                  // messages: up to that much later, so that they overtake
  Time read_jitter;                     // arrival of reads: up to that much later, in order
  Time cancel_time;                     // at most from `cancel` to the read's end: bytes still come
  bool record = false;                  // keep `records`
};

// What happened, for comparing runs.
struct VirtualRecord {
  enum class Kind { Request, Served, Arrived, Failed, Delivered, Dropped, Crash };
  Time at;
  Kind kind = Kind::Request;
  WorkerId from;
  WorkerId to;
  std::uint64_t detail = 0;  // OpId, or bytes of a message
  friend bool operator==(const VirtualRecord&, const VirtualRecord&) = default;
};

// Payload that arrived in full, by worker.
struct VirtualTraffic {
  Bytes in;
  Bytes out;
  std::uint64_t messages_sent = 0;
};

class VirtualNetwork {
 public:
  VirtualNetwork(std::size_t workers, const VirtualOptions& options);
  ~VirtualNetwork();

  [[nodiscard]] std::size_t workers() const;
  // They live as long as the network.
  [[nodiscard]] Transport& transport(WorkerId worker);
  [[nodiscard]] Memory& memory(WorkerId worker);
  [[nodiscard]] Time now() const;

  // Both directions of a worker's port, from now on. Neither rate may be zero while a read is under
  // way.
  void set_rate(WorkerId worker, Rate rate);
  // From now on: messages by new rules.
  void set_message_faults(std::uint32_t lost_per_mille, std::uint32_t doubled_per_mille,
                          Time jitter);

  // Faults. They take effect now; `at` schedules them.
  void crash(WorkerId worker);
  // A new life of a dead worker, with nothing registered, allowed or open. What others had open to
  // its former life is lost to them, at the latest `detection` after the crash.
  void restart(WorkerId worker);
  // One way, until called with false: no message, request or byte gets from one to the other. Reads
  // that suffer from it end at their deadline.
  void cut(WorkerId from, WorkerId to, bool cut);
  // The worker's port serves nothing until then; what is being served is finished.
  void stall(WorkerId worker, Time until);
  // One byte of the read after the next `skip` reads that leave `source` is wrong when it arrives.
  void corrupt(WorkerId source, std::uint64_t skip);
  void at(Time when, std::function<void()> action);

  // Time of the next thing that happens; Time::never() if nothing does.
  [[nodiscard]] Time next_event();
  // Makes it happen. False if there is nothing.
  bool step();
  // Only moves the clock: not past the next event, never back.
  void advance(Time to);
  // Something to poll in the worker's transport or memory (false for a dead worker).
  [[nodiscard]] bool ready(WorkerId worker) const;
  [[nodiscard]] bool alive(WorkerId worker) const;
  // Workers that became ready since the last call, each once, in the order in which they did.
  [[nodiscard]] std::vector<WorkerId> take_ready();

  // What Transport::wait does; by default it steps the network until the worker is ready or the
  // time has come (and returns at once if nothing can happen any more and `until` is never). A
  // driver that gives each worker a thread or coroutine switches here.
  void set_wait(std::function<void(WorkerId worker, Time until)> wait);

  // Called at each of these moments; must not call back.
  void watch_reads(std::function<void(const ReadSight&)> watcher);

  [[nodiscard]] const VirtualTraffic& traffic(WorkerId worker) const;
  [[nodiscard]] const std::vector<VirtualRecord>& records() const;

  struct State;  // of the implementation

 private:
  std::unique_ptr<State> state_;
};

}  // namespace holdfast
