// Shortest paths inside hosts, over PCIe (with memory links) or over NVLink.
//
// Only switches relay: a path starts and ends at a GPU, host memory or NIC and crosses nothing but
// PCIe switches or NVSwitches. Of equally short paths the one with the lowest link id at each step,
// seen from the start, is taken. Links and nodes that are down are not used.
//
// A breadth-first tree towards a target is made on first use: O(links of the host), 8 bytes a node
// of the host. After that an answer takes O(hops). Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast {

class HostPaths {
 public:
  enum class Over { Pcie, NvLink };

  // Keeps a reference: the topology must outlive this.
  HostPaths(const Topology& topology, Over over);

  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // Links on the way between two nodes of one host; kNone if nothing up joins them or they lie in
  // different hosts.
  [[nodiscard]] std::uint32_t hops(NodeId from, NodeId target);

  // Appends the channels; false (and nothing appended) where `hops` is kNone.
  bool append(NodeId from, NodeId target, std::vector<ChannelId>& channels);

 private:
  struct Step {
    std::uint32_t hops = kNone;
    ChannelId next;
  };
  using Tree = std::vector<Step>;  // by index within the host; empty: not made yet

  const Tree* tree(NodeId from, NodeId target);
  [[nodiscard]] Tree make_tree(NodeId target) const;
  [[nodiscard]] bool crosses(LinkId link) const;

  const Topology* topology_;
  Over over_;
  std::vector<std::uint32_t> index_in_host_;  // by node
  std::vector<std::vector<Tree>> trees_;      // by host domain, then index of the target in it
};

}  // namespace holdfast
