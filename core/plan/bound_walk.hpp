// The audit's own walk over the topology: where bytes get to from their holders, state by state.
//
// It follows the rules that bound_graph.hpp gives for the search of cuts, written a second time in
// another way, so that a mistake in one is found by the other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::bound {

class Walk {
 public:
  // Workers that receive one of the classes and may serve pass bytes on: who does not want a block
  // never has it. Keeps a reference to the topology. O(nodes + receivers + pairs of GPUs of a
  // host).
  Walk(const Topology& topology, const Demand& demand, const std::vector<ClassId>& classes);

  // The least latency from any of the holders to each node's arrival, once; never() where nothing
  // leads. `gone`: by channel, what is taken away. O(links log nodes).
  [[nodiscard]] std::vector<Time> from(const std::vector<NodeId>& holders,
                                       const std::vector<bool>& gone) const;

 private:
  // What a byte at a node may do next.
  enum class Mode : std::uint8_t {
    Free,     // at an endpoint that sends it, or at a switch of the fabric
    Outward,  // PCIe, on its way from an endpoint; at a NIC: on its way into the fabric
    Inward,   // PCIe, on its way to an endpoint; at a NIC: on its way into the host
    NvLink,   // inside the NVLink network of a host
  };

  template <class Arrive, class Go>
  void step(NodeId node, Mode mode, NodeId next, LinkKind link, const Arrive& arrive,
            const Go& go) const;
  void find_peers(DomainId host);

  const Topology* topology_;
  std::vector<bool> relays_;  // by node
  std::vector<bool> peers_;   // by node: GPUs that may read each other over PCIe
};

}  // namespace holdfast::bound
