// What a run with a workload or faults reports beyond a single update's figures, as the runner saw
// it. The summary adds it up by core/workload/stalls.hpp and updates.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/units.hpp"
#include "core/workload/stalls.hpp"
#include "core/workload/updates.hpp"

namespace holdfast {

// Something that failed, was taken away or was lost. Not the end of the run.
struct FailureRecord {
  Time at;
  std::string kind;                    // "host", "link", "coordinator", "spot", "version", ...
  std::string who;                     // names: "h0", "spot[3]"
  std::optional<Time> detected_after;  // nothing: nobody noticed before the run ended
  std::string consequence;             // in words: "4 readers re-parented", "1 fetch failed"
};

struct WorkloadRecord {
  std::vector<GroupTime> groups;        // of each replica that may wait
  std::vector<FetchRecord> fetches;     // of all replicas
  std::vector<JointBound> joint;        // bounds of domains
  std::vector<FailureRecord> failures;  // by time
  Time length;                          // of the run
  std::uint32_t versions = 0;           // that were published
  std::uint64_t finished = 0;           // rollouts
  std::uint64_t stale = 0;              // of them, thrown away for their age
  std::uint64_t lost = 0;               // begun, and lost with their machine
  std::vector<Hash128> plans;           // in the order in which they were made
};

}  // namespace holdfast
