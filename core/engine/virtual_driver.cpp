#include "core/engine/virtual_driver.hpp"

#include <algorithm>

namespace holdfast {

VirtualDriver::VirtualDriver(VirtualNetwork& network)
    : network_(network),
      loops_(network.workers(), nullptr),
      armed_(network.workers(), Time::never()) {}

void VirtualDriver::add(WorkerLoop& loop, WorkerId worker) {
  loops_[worker.index()] = &loop;
  woken_.push_back(worker.value());
}

void VirtualDriver::wake(WorkerId worker) {
  woken_.push_back(worker.value());
}

void VirtualDriver::pump(std::uint32_t worker) {
  WorkerLoop* loop = loops_[worker];
  if (loop == nullptr || !network_.alive(WorkerId(worker))) return;
  if (!loop->pump()) {
    loops_[worker] = nullptr;
    return;
  }
  // A timer that comes too early does no harm: the worker is pumped and armed again.
  if (loop->next_deadline() < armed_[worker]) {
    armed_[worker] = loop->next_deadline();
    timers_.push({loop->next_deadline(), worker});
  }
}

bool VirtualDriver::run(const std::function<bool()>& done, Time until) {
  for (;;) {
    for (std::size_t i = 0; i < woken_.size(); ++i) pump(woken_[i]);
    woken_.clear();
    for (const WorkerId worker : network_.take_ready()) {
      if (network_.ready(worker)) pump(worker.value());
    }
    if (done()) return true;
    while (!timers_.empty() && timers_.top().at != armed_[timers_.top().worker]) timers_.pop();
    const Time timer = timers_.empty() ? Time::never() : timers_.top().at;
    const Time event = network_.next_event();
    if (std::min(timer, event) > until || std::min(timer, event) == Time::never()) return false;
    if (event <= timer) {
      network_.step();
      continue;
    }
    network_.advance(timer);
    const std::uint32_t worker = timers_.top().worker;
    timers_.pop();
    armed_[worker] = Time::never();
    pump(worker);
  }
}

}  // namespace holdfast
