// From a scenario to a demand: looks the names up in the topology, cuts the groups into replicas
// and says which worker holds and wants which blocks.
//
// The chosen endpoints of a group, in topology order, are cut into consecutive replicas of as many
// workers as the layout has shards, in the order of the shards (layout.hpp: tensor-parallel rank
// fastest, then expert rank, then stage); a replica lies in one host or consists of whole hosts. On
// host memory a replica is one worker that holds every shard. An endpoint that two groups use is
// one worker which holds for both; it receives for at most one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/scenario.hpp"
#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"
#include "core/weights/manifest.hpp"

namespace holdfast {

// One replica: a group number in the demand.
struct Replica {
  std::string name;  // "rollout[3]"
  Role role = Role::Rollout;
  bool receives = false;
};

struct UpdateTask {
  Demand demand;
  std::vector<Replica> replicas;  // by DemandWorker::group
  Bytes model_bytes;
  Hash128 manifest;
  std::vector<std::string> warnings;  // what has no effect on this topology and model
};

// Throws Error with the scenario's places: UnknownName (a host or GPU that is not there), BadValue
// (uneven division, memory that cannot fit, a version that nobody holds, nothing to receive),
// LayoutMismatch. O(nodes x patterns + workers x segments + blocks).
[[nodiscard]] UpdateTask make_update(const Scenario& scenario, const Topology& topology,
                                     const Manifest& manifest);

// The demand alone.
[[nodiscard]] Demand make_demand(const Scenario& scenario, const Topology& topology,
                                 const Manifest& manifest);

// The block size that the scenario's options mean for a model of that size.
[[nodiscard]] Bytes block_size_of(const ScenarioOptions& options, Bytes model);

struct Endpoints {
  std::vector<NodeId> nodes;  // ascending, without those that are down
  std::size_t down = 0;
};

// The endpoints that a group's placement names. Endpoints that are down and numbers of a pattern
// that nothing has go to `warnings`, with their places. Throws Error(UnknownName, BadValue).
[[nodiscard]] Endpoints endpoints_of(const ScenarioGroup& group, const Topology& topology,
                                     std::vector<std::string>* warnings = nullptr);

// The workers of each replica of a group. Throws Error(BadValue) where they do not divide.
[[nodiscard]] std::vector<std::vector<NodeId>> replicas_of(
    const ScenarioGroup& group, const ScenarioLayout& layout, const Topology& topology,
    std::vector<std::string>* warnings = nullptr);

}  // namespace holdfast
