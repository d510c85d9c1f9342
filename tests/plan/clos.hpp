// Clos fabrics of two or three levels with hosts of one GPU and one NIC, for tests of routes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::testing_support {

struct ClosShape {
  std::uint32_t pods = 1;
  std::uint32_t racks = 4;   // of a pod
  std::uint32_t hosts = 4;   // of a rack
  std::uint32_t spines = 4;  // of a pod; each joined to every leaf of it
  std::uint32_t cores = 0;   // that each spine is joined to; more than zero with several pods
  Rate nic_rate = Rate(10'000'000'000);
  Rate uplink_rate = Rate(10'000'000'000);  // of a leaf to each spine
  Rate core_rate = Rate(10'000'000'000);    // of a spine to each core
};

// Hosts "h0", "h1", ... with "h0.gpu" and "h0.nic", in the order of their racks and these in the
// order of pods; "leaf0", ... over all pods; "pod0.spine0"; "core0", of which spine k of every pod
// is joined to those from k * cores on. Links are called after their ends: "leaf0-pod0.spine1",
// "pod0.spine1-core3", "h0.nic-leaf0".
[[nodiscard]] Topology make_clos(const ClosShape& shape);

// By host.
[[nodiscard]] std::vector<NodeId> nics_of(const Topology& topology);

// The first GPU holds one block, all others want it.
[[nodiscard]] Demand one_block(const Topology& topology);

}  // namespace holdfast::testing_support
