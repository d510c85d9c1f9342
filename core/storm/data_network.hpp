// The network of a run over which workers read blocks and send each other words: its time, its
// faults, and what may be seen of its reads. A run neither knows nor asks which one it is on.
//
// Implementations: the virtual network of core/engine (below) and SimGrid (sim/storm_network.hpp).
// Deterministic: the same calls for the same world bring the same events. One thread at a time.
#pragma once

#include <functional>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/read_sight.hpp"
#include "core/storm/world.hpp"

namespace holdfast::storm {

class DataNetwork {
 public:
  DataNetwork() = default;
  DataNetwork(const DataNetwork&) = delete;
  DataNetwork& operator=(const DataNetwork&) = delete;
  virtual ~DataNetwork() = default;

  // They live as long as the network, and real bytes move between their regions.
  [[nodiscard]] virtual Transport& transport(WorkerId worker) = 0;
  [[nodiscard]] virtual Memory& memory(WorkerId worker) = 0;

  // Time moves here only.
  [[nodiscard]] virtual Time now() const = 0;
  // Lets the next thing happen if it is due before `until`, or at `until` if `then_too`, and
  // returns true; else false: the clock has come to `until` (and stays where it is if that is never
  // or in the past).
  virtual bool step(Time until, bool then_too) = 0;
  // Workers that got something to poll since the last call, in the order in which they did.
  [[nodiscard]] virtual std::vector<WorkerId> take_ready() = 0;

  // A dead worker's registered memory may go once `crash` has returned.
  virtual void crash(WorkerId worker) = 0;
  // Precondition: the worker is dead. It has nothing registered, allowed or open.
  virtual void restart(WorkerId worker) = 0;
  [[nodiscard]] virtual bool alive(WorkerId worker) const = 0;
  // One way, until called with false. No effect if it is so already.
  virtual void cut(WorkerId from, WorkerId to, bool cut) = 0;
  // Both directions of a worker's port, from now on.
  virtual void set_rate(WorkerId worker, Rate rate) = 0;
  // The worker's port serves as good as nothing until then; replaces what was said before.
  virtual void stall(WorkerId worker, Time until) = 0;
  // One byte of the read after the next `skip` reads that leave `source` is wrong when it arrives.
  virtual void corrupt(WorkerId source, std::uint64_t skip) = 0;
  // Of words between workers, from now on; `jitter`: up to that much later, so that they overtake.
  virtual void set_message_faults(std::uint32_t lost_per_mille, std::uint32_t doubled_per_mille,
                                  Time jitter) = 0;

  // Called at each moment of each read; must not call back.
  virtual void watch_reads(std::function<void(const ReadSight&)> watcher) = 0;
};

// Makes a network for the world, runs `body` on it and returns when that has returned. What the
// body throws comes through.
using Venue =
    std::function<void(const World& world, const std::function<void(DataNetwork&)>& body)>;

// Ports of the world's rate around a core without limits, one latency between all: fast, and no
// more than a run needs.
void on_virtual_network(const World& world, const std::function<void(DataNetwork&)>& body);

}  // namespace holdfast::storm
