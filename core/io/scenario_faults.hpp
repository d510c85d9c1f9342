// `faults` of a scenario.
//
//   faults:
//     - {kind: host, target: h0, action: kill, at_transfer: 50%, update: 1}
//     - {kind: link, target: 'h3.nic*--*', action: slow, factor: 25%, at: 2s, duration: 10s}
//     - {kind: nic, target: h3.nic0, action: flap, period: 2s, duty: 50%, at: 1s, duration: 30s}
//     - {kind: rack, target: [rack0, rack1], action: kill, at: 10s, restart_after: 5min}
//     - {kind: datacenter, target: dc1, action: partition, at: 5s, duration: 20s}
//     - {kind: coordinator, action: crash, at: 1s, restart_after: 5s}
//     - {kind: host, target: 'h*', action: kill, rate: 0.02/h, restart_after: 10min}   # of each
//     host
//
// kind and action: core/workload/faults.hpp says what each stops. Exactly one of
//   at            a time since the start of the run
//   at_transfer   a share of the bytes of one update (`update`, counted from 1; default 1)
//   rate          how often each target fails while it is well; drawn from `seed`
// `factor` is what is left of a slow link, `duty` the share of a flap's `period` for which it is
// down. `duration` ends what is down, slow, flapping or partitioned; `restart_after` starts what
// was killed or crashed again, with nothing in its memory. Without them it lasts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/io/pattern_list.hpp"
#include "core/io/yaml_document.hpp"
#include "core/topology/topology.hpp"
#include "core/workload/faults.hpp"

namespace holdfast {

struct ScenarioFault {
  FaultRule rule;                      // without its targets
  std::vector<PlacedPattern> targets;  // none for the coordinator
  Place place;
};

// Throws Error with the place: BadValue, BadUnit, UnknownKey, MissingKey, NoEffect, LimitExceeded.
[[nodiscard]] std::vector<ScenarioFault> read_faults(const YamlValue& value);

// The rules with the ids of what the patterns name, each once, ascending. Throws Error(UnknownName)
// at a pattern that fits nothing of its kind, with the nearest name. Numbers of a pattern that
// nothing has are told to `warnings`, if given. O(targets x things of the kind).
[[nodiscard]] std::vector<FaultRule> rules_of(const std::vector<ScenarioFault>& faults,
                                              const Topology& topology,
                                              std::vector<std::string>* warnings = nullptr);

}  // namespace holdfast
