// The small world of one seed: a cluster in a few racks and datacenters, one or two jobs with two
// layouts each, groups of trainers and rollouts, spot and reliable, host memories that keep copies.
// And the true bytes of everything that anybody ever publishes.
//
// A pure function of the seed. Immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/catalog/coordinator.hpp"
#include "core/catalog/model_space.hpp"
#include "core/engine/worker_engine.hpp"
#include "core/plan/planner.hpp"
#include "core/storm/dice.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::storm {

struct WorldGroup {
  SpaceId space;
  LayoutNumber layout = 0;
  bool trainer = false;
  std::vector<WorkerId> members;  // by rank
};

// Times and rates of a seed, beside the machines' own.
struct WorldTimes {
  Time control_latency;
  Time data_latency;
  Rate port;            // of each worker, each way
  Time least_planning;  // a plan takes between these
  Time most_planning;
  Time most_cancelling;  // from a cancel to the end of the read at most
  Time peer_detection;   // until a transport notices that the other end is gone
};

struct World {
  std::uint64_t seed = 0;
  std::unique_ptr<const Topology> topology;
  std::vector<std::shared_ptr<const ModelSpace>> spaces;
  std::vector<WorkerCard> cards;   // by WorkerId
  std::vector<WorldGroup> groups;  // by GroupId
  std::vector<WorkerId> memories;  // host memories
  WorldTimes times;
  CoordinatorConfig coordinator;
  AgentConfig agent;
  EngineConfig engine;
  Policy policy = Policy::Auto;
};

[[nodiscard]] World make_world(std::uint64_t seed);

// --- True bytes -------------------------------------------------------------------------------
// What a version consists of. Publishers that disagree give it different bytes: `variant` tells
// them apart.
struct Content {
  SpaceId space;
  Version version;
  std::uint32_t variant = 0;
  friend auto operator<=>(const Content&, const Content&) = default;
};
void write_block(const Content& content, BlockId block, std::span<std::byte> out);
[[nodiscard]] bool is_block(const Content& content, BlockId block,
                            std::span<const std::byte> bytes);

}  // namespace holdfast::storm
