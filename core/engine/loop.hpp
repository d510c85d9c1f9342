// The one loop between an engine and the outside: wait, poll, step, post. Simulation and hardware
// use it alike; nothing else posts reads or decides anything.
//
//   WorkerLoop loop({engine, transport, memory, placement, region, grants, nonce, nullptr});
//   LoopEnd end = loop.run();  // an actor or a thread per worker
//
// `run` alternates `pump` (never blocks) and Transport::wait. A driver that interleaves many
// workers in one thread calls `pump` itself, whenever a worker has something to poll or its
// `next_deadline` has come.
//
// For a worker with one transfer: the loop takes everything that its Transport and Memory have to
// tell. With several, poll yourself and hand on to a TransferLoop each (transfer_loop.hpp, which
// also says how connections and reads are kept). Serving is passive: the transport of a worker must
// outlive the loops of those who read from it. Destroy the loop after its Transport and Memory, or
// poll those no more.
#pragma once

#include <functional>
#include <optional>

#include "core/engine/transfer_loop.hpp"

namespace holdfast {

class WorkerLoop {
 public:
  explicit WorkerLoop(const LoopSetup& setup);

  // Polls, steps and posts until nothing more can be done now. Never blocks. False once the engine
  // has failed.
  bool pump();
  // When to pump again at the latest if nothing happens.
  [[nodiscard]] Time next_deadline() const { return transfer_.next_deadline(); }

  // Runs until the engine fails (returns the failure) or `stop`, asked after each pump, says so. By
  // default: when everything assigned is complete and each child was told all of it. Where messages
  // get lost, a worker must stay for as long as children may ask: give a `stop` that knows.
  std::optional<EngineFailure> run(const std::function<bool(const WorkerEngine&)>& stop = {});

  [[nodiscard]] const std::optional<EngineFailure>& failure() const { return transfer_.failure(); }
  [[nodiscard]] const LoopStats& stats() const { return transfer_.stats(); }
  [[nodiscard]] TransferLoop& transfer() { return transfer_; }

 private:
  const WorkerEngine& engine_;
  Transport& transport_;
  Memory& memory_;
  TransferLoop transfer_;
};

// Makes a loop and runs it.
std::optional<EngineFailure> run_worker(const LoopSetup& setup,
                                        const std::function<bool(const WorkerEngine&)>& stop = {});

}  // namespace holdfast
