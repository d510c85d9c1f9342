// Runs the loops of many workers over one VirtualNetwork, interleaved in virtual time, in one
// thread.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "core/engine/loop.hpp"
#include "core/engine/virtual_network.hpp"

namespace holdfast {

class VirtualDriver {
 public:
  explicit VirtualDriver(VirtualNetwork& network);

  // Borrowed; one for each worker at most.
  void add(WorkerLoop& loop, WorkerId worker);
  // Pumps the worker's loop at the next opportunity: after WorkerEngine::assign from outside.
  void wake(WorkerId worker);
  // Goes on until `done` (asked after each event) says so, or nothing can happen any more, or
  // `until`. Returns true if `done` said so. A worker whose engine failed is not pumped any more.
  // O(log workers) an event.
  bool run(const std::function<bool()>& done, Time until = Time::never());

 private:
  struct Timer {
    Time at;
    std::uint32_t worker = 0;
    friend bool operator>(const Timer& a, const Timer& b) {
      return a.at != b.at ? a.at > b.at : a.worker > b.worker;
    }
  };

  void pump(std::uint32_t worker);

  VirtualNetwork& network_;
  std::vector<WorkerLoop*> loops_;  // by worker; null where there is none
  std::vector<Time> armed_;         // by worker: of its timer; never: none
  std::vector<std::uint32_t> woken_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>>
      timers_;  // stale unless armed_ says so
};

}  // namespace holdfast
