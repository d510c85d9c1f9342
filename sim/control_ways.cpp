#include "sim/control_ways.hpp"

#include <algorithm>

namespace holdfast::sim {

ControlWays::ControlWays(const Router& router, NodeId coordinator)
    : router_(router),
      coordinator_(coordinator),
      latency_(router.topology().nodes().size(), Time::never()),
      at_fabric_(latency_.size()),
      reached_(latency_.size()) {
  look([](LinkId) { return true; });
}

Time ControlWays::latency(NodeId worker) {
  Time& known = latency_[worker.index()];
  if (known != Time::never()) return known;
  known = Time();
  if (worker == coordinator_) return known;
  const Topology& topology = router_.topology();
  const DomainId host = topology.around(worker, Level::Host);
  if (host.valid() && host == topology.around(coordinator_, Level::Host)) {
    const auto route = router_.route(coordinator_, worker, {coordinator_, worker, 0});
    if (route) return known = router_.latency(*route);
  }
  for (const NodeId from : router_.nics(coordinator_)) {
    for (const NodeId to : router_.nics(worker)) {
      const auto route = router_.route(coordinator_, worker, {from, to, 0});
      if (route) return known = router_.latency(*route);
    }
  }
  return known;
}

bool ControlWays::reaches(NodeId worker) const {
  return reached_[worker.index()];
}

bool ControlWays::joined(NodeId endpoint, NodeId nic,
                         const std::function<bool(LinkId)>& carries) const {
  const Route route = router_.inside(endpoint, nic);
  return std::all_of(route.begin(), route.end(),
                     [&](ChannelId channel) { return carries(channel.link()); });
}

void ControlWays::look(const std::function<bool(LinkId)>& carries) {
  const Topology& topology = router_.topology();
  at_fabric_.assign(at_fabric_.size(), false);
  reached_.assign(reached_.size(), false);
  std::vector<bool> seen(topology.nodes().size());
  std::vector<NodeId> front;
  for (const NodeId nic : router_.nics(coordinator_)) {
    if (!joined(coordinator_, nic, carries)) continue;
    seen[nic.index()] = true;
    front.push_back(nic);
  }
  // NICs end the fabric: nothing goes on through a host.
  for (std::size_t i = 0; i < front.size(); ++i) {
    for (const Neighbour& next : topology.neighbours(front[i])) {
      const LinkKind kind = topology.link(next.link).kind;
      if (kind != LinkKind::Fabric && kind != LinkKind::Wan) continue;
      if (seen[next.node.index()] || !topology.usable(next.link) || !carries(next.link)) continue;
      seen[next.node.index()] = true;
      if (topology.node(next.node).kind == NodeKind::Nic) {
        at_fabric_[next.node.index()] = true;
      } else {
        front.push_back(next.node);
      }
    }
  }
  const DomainId home = topology.around(coordinator_, Level::Host);
  for (std::size_t n = 0; n < reached_.size(); ++n) {
    const NodeId node(n);
    if (!is_endpoint(topology.node(node).kind)) continue;
    const auto nics = router_.nics(node);
    reached_[n] = (home.valid() && topology.around(node, Level::Host) == home) ||
                  std::any_of(nics.begin(), nics.end(), [&](NodeId nic) {
                    return at_fabric_[nic.index()] && joined(node, nic, carries);
                  });
  }
}

}  // namespace holdfast::sim
