// Who runs where when a scenario is carried out by the protocol: each replica as a group of
// workers, numbered as the coordinator knows them. Simulation and real runs both start from this
// value, so that they ask the same coordinator the same things.
//
//   const Deployment d = make_deployment(scenario, topology, manifest);
//   Coordinator coordinator(topology, d.roster, {d.space}, d.coordinator);
//   Agent agent(worker, 1, d.cards[worker.index()], ...);
//
// Workers are numbered through the groups in order, each group's by rank; those of `memories`
// follow. Groups are the replicas, in the order of the scenario's groups. There is one model space.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/catalog/coordinator.hpp"
#include "core/catalog/messages.hpp"
#include "core/catalog/model_space.hpp"
#include "core/io/scenario.hpp"
#include "core/topology/topology.hpp"
#include "core/weights/manifest.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast {

struct DeployedGroup {
  std::string name;             // "rollout[3]"
  std::size_t scenario = 0;     // index into Scenario::groups
  std::uint32_t replica = 0;    // of that group
  Role role = Role::Rollout;    // of staging: Rollout
  bool publishes = false;       // a trainer, or a holder of an update
  bool fetches = false;         // a rollout, staging, or a receiver of an update
  bool host_memory = false;     // one worker with the whole model; otherwise GPUs
  bool reliable = true;         // false: spot
  LayoutNumber layout = 0;      // of the space, and of the map
  std::vector<NodeId> members;  // endpoint by rank
  std::uint32_t slots = 1;      // buffers of each member
  Destination destination = Destination::InPlace;  // of its fetches
};

// Host memory that may keep copies for others.
struct DeployedMemory {
  NodeId node;
  Bytes budget;
};

struct Deployment {
  WeightMap map;  // of the layouts that are used, in the scenario's order; host memory's is last
  std::shared_ptr<const ModelSpace> space;  // with the same blocks and layouts
  std::vector<DeployedGroup> groups;        // by GroupId
  std::vector<DeployedMemory> memories;     // by node
  std::vector<NodeId> roster;               // endpoint by WorkerId
  std::vector<WorkerCard> cards;            // by WorkerId; without addresses
  CoordinatorConfig coordinator;            // as `options` say
  AgentConfig agent;
  std::vector<std::string> warnings;  // what has no effect on this topology and model

  [[nodiscard]] WorkerId worker(GroupId group, std::uint32_t rank) const {
    return WorkerId(first_worker[group.index()] + rank);
  }
  std::vector<std::uint32_t> first_worker;  // by group
};

// Groups that neither publish nor fetch are left out. Staging on host memory keeps two versions
// where both fit, so that the old one can be read while the new one comes. `memories` are there
// where `retain` is: of the hosts whose groups are all reliable, unless staging uses them; each may
// fill `host_memory_budget`, at most all of its memory.
//
// Throws Error with the scenario's places: UnknownName, BadValue (uneven division, memory that
// cannot fit, an endpoint in two groups), LayoutMismatch, Unsupported (holders of a part).
// O(nodes x patterns + workers + blocks).
[[nodiscard]] Deployment make_deployment(const Scenario& scenario, const Topology& topology,
                                         const Manifest& manifest);

}  // namespace holdfast
