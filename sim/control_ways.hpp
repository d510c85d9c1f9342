// The ways that control messages take between the coordinator and the workers: how long, and
// whether there is one.
//
// A message takes the latency of one path over the nominal topology (PCIe, fabric, PCIe; the lowest
// NICs that are joined) and no bandwidth. Control traffic is routed anew around what is down, at
// once and at the same latency: only a worker that no way leads to any more is out of reach.
#pragma once

#include <functional>
#include <vector>

#include "core/topology/router.hpp"

namespace holdfast::sim {

class ControlWays {
 public:
  // Keeps a reference to the router. `coordinator`: a GPU or host memory on whose host it runs.
  ControlWays(const Router& router, NodeId coordinator);

  // One way. O(route) once for each worker. Zero where nothing joins the two.
  [[nodiscard]] Time latency(NodeId worker);
  // As of the last `look`; at first everything that the topology has up.
  [[nodiscard]] bool reaches(NodeId worker) const;
  // Which links carry something has changed. O(nodes + links).
  void look(const std::function<bool(LinkId)>& carries);

 private:
  [[nodiscard]] bool joined(NodeId endpoint, NodeId nic,
                            const std::function<bool(LinkId)>& carries) const;

  const Router& router_;
  NodeId coordinator_;
  std::vector<Time> latency_;    // by node; never: not yet known
  std::vector<bool> at_fabric_;  // by NIC's node: the coordinator reaches it
  std::vector<bool> reached_;    // by endpoint's node
};

}  // namespace holdfast::sim
