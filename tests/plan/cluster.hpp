// Clusters and demands of chosen or random shape for tests of planners, bound and simulation.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::testing_support {

struct ClusterShape {
  std::uint32_t datacenters = 1;
  std::uint32_t racks = 1;  // of a datacenter; with one rack and datacenter: a single switch
  std::uint32_t hosts = 4;  // of a rack
  std::uint32_t gpus = 8;   // of a host
  std::uint32_t nics = 8;   // of a host; GPUs share a PCIe switch with NICs evenly
  std::uint32_t spines = 1;
  bool nvlink = true;
  Rate nic_rate = Rate(50'000'000'000);
  Rate nvlink_rate = Rate(450'000'000'000);
  Rate pcie_rate = Rate(55'000'000'000);
  Rate uplink_rate = Rate(400'000'000'000);  // of a rack to each spine
  Rate wan_rate = Rate(12'500'000'000);
  Rate stream_cap = Rate(1'250'000'000);
  Time hop_latency = microseconds(1);
  Time wan_latency = milliseconds(15);
  Rate digest_rate = Rate(2'000'000'000'000);
  std::string prefix = {};  // of every name
};

// Hosts "d0.r0.h0" with "....gpu0", "....nic0", "....mem", behind the prefix. `shuffle` is the
// order in which nodes and links are added, by seed; 0 is the natural one.
[[nodiscard]] Topology make_cluster(const ClusterShape& shape, std::uint64_t shuffle = 0);

[[nodiscard]] ClusterShape random_shape(std::mt19937_64& random);

struct DemandShape {
  bool sharded = true;         // GPU i of each host wants shard i; else every GPU wants all
  std::uint32_t replicas = 1;  // that hold everything: hosts if sharded, else GPUs
  std::uint32_t blocks = 64;   // of a shard, or of an eighth of the model
  Bytes block_size = Bytes(1 << 20);
  bool replicated_block = false;  // one small block that everyone wants
  bool verify = true;
};

// Holders are the first hosts (GPUs) in domain order; everyone else receives.
[[nodiscard]] Demand make_demand(const Topology& topology, const DemandShape& shape);

// Random holders (each block has one), receivers, parts already held and workers that may not
// serve.
[[nodiscard]] Demand random_demand(const Topology& topology, std::mt19937_64& random);

}  // namespace holdfast::testing_support
