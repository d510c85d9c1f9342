// What really crosses the network between workers and the coordinator: frames of a session, and
// what starts and ends sessions. All of it may be lost, doubled, delayed and reordered.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "core/catalog/messages.hpp"
#include "core/catalog/session.hpp"

namespace holdfast {

// Repeated until Welcome or Fenced. What changes meanwhile is told after Welcome, so that any
// report of one greeting is as good as another; one of an earlier greeting of the incarnation is
// out of date, however late it comes.
struct Hello {
  Incarnation incarnation = 0;
  std::shared_ptr<const WorkerReport> report;
  std::uint64_t greeting = 0;  // counts from 1 in each incarnation
};
// A session {epoch, incarnation} begins, both ways from number 0.
struct Welcome {
  Epoch epoch = 0;
  Incarnation incarnation = 0;
  Generation generation = 0;  // of the worker's group
};
// That incarnation was declared dead (or an older one than is known): take a larger one than
// `largest`.
struct FencedOff {
  Epoch epoch = 0;
  Incarnation incarnation = 0;  // the one that is fenced
  Incarnation largest = 0;
};
// A frame of a session that the coordinator does not have: say Hello.
struct UnknownSession {
  Epoch epoch = 0;  // zero: not known yet (rebuilding)
  Incarnation incarnation = 0;
};

using WorkerFrame = Frame<WorkerMessage>;  // also the heartbeat: without a payload
using CoordinatorFrame = Frame<CoordinatorMessage>;

using ToCoordinator = std::variant<Hello, WorkerFrame>;
using ToWorker = std::variant<Welcome, FencedOff, UnknownSession, CoordinatorFrame>;

}  // namespace holdfast
