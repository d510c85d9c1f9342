#include "core/engine/loop.hpp"

#include <array>

namespace holdfast {
namespace {

constexpr std::size_t kBatch = 16;

}  // namespace

WorkerLoop::WorkerLoop(const LoopSetup& setup)
    : engine_(setup.engine), transport_(setup.transport), memory_(setup.memory), transfer_(setup) {}

bool WorkerLoop::pump() {
  std::array<TransportEvent, kBatch> events;
  std::array<JobDone, kBatch> jobs;
  bool going = transfer_.pump();
  bool more = true;
  while (more && going) {
    const std::size_t polled = transport_.poll(events);
    for (std::size_t i = 0; i < polled && !failure(); ++i) transfer_.take(events[i]);
    const std::size_t done = memory_.poll(jobs);
    for (std::size_t i = 0; i < done && !failure(); ++i) transfer_.take(jobs[i]);
    more = polled != 0 || done != 0;
    going = !failure();
  }
  return going;
}

std::optional<EngineFailure> WorkerLoop::run(const std::function<bool(const WorkerEngine&)>& stop) {
  while (pump()) {
    if (stop ? stop(engine_) : engine_.told_everything()) return std::nullopt;
    transport_.wait(next_deadline());
  }
  return failure();
}

std::optional<EngineFailure> run_worker(const LoopSetup& setup,
                                        const std::function<bool(const WorkerEngine&)>& stop) {
  WorkerLoop loop(setup);
  return loop.run(stop);
}

}  // namespace holdfast
