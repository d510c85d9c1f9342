// How the protocol is set in a scenario with a workload, faults or retention: `retain`, and these
// keys of `options`:
//
//   retain: {copies: 2, level: rack, versions: 1}
//   options:
//     planning_time: 20ms       # between a demand and its plan
//     gather: 5ms               # requests for one version are collected for so long, then planned
//     heartbeat: 250ms          # each worker says that it lives
//     detection: {worker: 1s, link: 500ms, coordinator: 2s}
//     host_memory_budget: 500GB # of each host, for copies that are kept; default: all of its
//     memory deadlines: {publish: 1min, unpublish: 1min, fetch: 10min, retain: 10min} on_deadline:
//     fail         # or revoke, of an unpublish whose readers do not end destination: in_place # or
//     shadow, of a workload's fetches (an `update` has its own key) on_newer: finish          # or
//     restart, when a newer version appears during a fetch
//
// Why these defaults:
//   planning_time  what planning for 1,024 to 2,048 GPUs takes on one core (README), rounded up.
//   gather         small beside any transfer; longer than the spread of control messages.
//   heartbeat      16,384 workers then send 66,000 messages a second, which the coordinator's
//   200,000
//                  events a second carry.
//   worker         four missed heartbeats: a process that is stopped for a moment is not dead. Of
//                  the order of etcd's election timeout (1 s with heartbeats of 100 ms).
//   link           an InfiniBand queue pair with a timeout of 14 (4.096 us x 2^14 = 67 ms) and 7
//                  retries gives up after about half a second. (NCCL's own default, 20, takes half
//                  a minute: a scenario that is about NCCL's detection says so.)
//   coordinator    workers notice after eight heartbeats without an answer; shorter would make each
//                  pause of one process an election.
//   deadlines      long beside a transfer; what they bound is a wait that would never end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/calls.hpp"
#include "core/error.hpp"
#include "core/topology/topology.hpp"
#include "core/units.hpp"

namespace holdfast {

// The latest `versions` versions are kept complete in `copies` different domains of `level`.
struct ScenarioRetain {
  std::uint32_t copies = 1;
  Level level = Level::Host;
  std::uint32_t versions = 1;
  Place place;
};

// From the failure to the moment when it is acted upon. Never zero.
struct DetectionTimes {
  Time worker = seconds(1);
  Time link = milliseconds(500);
  Time coordinator = seconds(2);
};

struct CallDeadlines {
  Time publish = seconds(60);
  Time unpublish = seconds(60);
  Time fetch = seconds(600);
  Time retain = seconds(600);
};

[[nodiscard]] const char* to_string(OnDeadline what);  // "fail", "revoke"
[[nodiscard]] const char* to_string(OnNewer what);     // "finish", "restart"

struct ScenarioProtocol {
  std::optional<ScenarioRetain> retain;
  Time planning_time = milliseconds(20);
  Time gather = milliseconds(5);
  Time heartbeat = milliseconds(250);
  DetectionTimes detection;
  std::optional<Bytes> host_memory_budget;  // of each host; nothing: what its memory holds
  CallDeadlines deadlines;
  OnDeadline on_deadline = OnDeadline::Fail;
  OnNewer on_newer = OnNewer::Finish;
  // The keys of `options` that are there, in the order of the text.
  std::vector<std::pair<std::string, Place>> written;
};

}  // namespace holdfast
