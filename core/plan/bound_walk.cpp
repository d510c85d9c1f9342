#include "core/plan/bound_walk.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace holdfast::bound {
namespace {

constexpr std::size_t kModes = 4;

bool is_host_switch(NodeKind kind) {
  return kind == NodeKind::PcieSwitch || kind == NodeKind::NvSwitch;
}

}  // namespace

Walk::Walk(const Topology& topology, const Demand& demand, const std::vector<ClassId>& classes)
    : topology_(&topology), relays_(topology.nodes().size()), peers_(topology.nodes().size()) {
  for (const ClassId c : classes) {
    for (const WorkerId w : demand.classes[c.index()].receivers) {
      const DemandWorker& worker = demand.workers[w.index()];
      if (worker.may_serve) relays_[worker.node.index()] = true;
    }
  }
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    if (topology.domains()[d].level == Level::Host) find_peers(DomainId(d));
  }
}

// Where a byte may be after one channel.
template <class Arrive, class Go>
void Walk::step(NodeId node, Mode mode, NodeId next, LinkKind link, const Arrive& arrive,
                const Go& go) const {
  const NodeKind from = topology_->node(node).kind;
  const NodeKind to = topology_->node(next).kind;
  switch (link) {
    case LinkKind::Fabric:
    case LinkKind::Wan: {
      const bool leaves = !is_inside_host(from) || (from == NodeKind::Nic && mode == Mode::Outward);
      if (!leaves) return;
      if (to == NodeKind::Nic) go(Mode::Inward);
      if (!is_inside_host(to)) go(Mode::Free);
      return;
    }
    case LinkKind::NvLink: {
      const bool leaves = is_endpoint(from) || (is_host_switch(from) && mode == Mode::NvLink);
      if (!leaves) return;
      if (is_host_switch(to)) go(Mode::NvLink);
      if (is_endpoint(to)) arrive();
      return;
    }
    case LinkKind::Pcie:
    case LinkKind::Memory:
      break;
  }
  const bool outward = is_endpoint(from) || (is_host_switch(from) && mode == Mode::Outward);
  const bool inward = from == NodeKind::HostMemory ||
                      ((from == NodeKind::Nic || is_host_switch(from)) && mode == Mode::Inward);
  if (outward) {
    if (to == NodeKind::Nic || is_host_switch(to)) go(Mode::Outward);
    if (to == NodeKind::HostMemory || (to == NodeKind::Gpu && peers_[next.index()])) arrive();
  }
  if (inward) {
    if (is_host_switch(to)) go(Mode::Inward);
    if (is_endpoint(to)) arrive();
  }
}

std::vector<Time> Walk::from(const std::vector<NodeId>& holders,
                             const std::vector<bool>& gone) const {
  std::vector<Time> arrived(topology_->nodes().size(), Time::never());
  std::vector<Time> reached(topology_->nodes().size() * kModes, Time::never());
  using Entry = std::pair<Time, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto reach = [&](NodeId node, Mode mode, Time time) {
    const std::size_t state = node.index() * kModes + static_cast<std::size_t>(mode);
    if (time >= reached[state]) return;
    reached[state] = time;
    queue.emplace(time, state);
  };
  for (const NodeId holder : holders) {
    if (topology_->node(holder).up) reach(holder, Mode::Free, Time());
  }
  while (!queue.empty()) {
    const auto [time, state] = queue.top();
    queue.pop();
    if (time != reached[state]) continue;
    const NodeId node(state / kModes);
    const auto mode = static_cast<Mode>(state % kModes);
    for (const Neighbour& next : topology_->neighbours(node)) {
      const Link& link = topology_->link(next.link);
      const ChannelId channel(next.link, link.b == node);
      if (!topology_->usable(next.link) || gone[channel.index()]) continue;
      const Time later = time + link.latency;
      const auto arrive = [&] {
        arrived[next.node.index()] = std::min(arrived[next.node.index()], later);
        if (relays_[next.node.index()]) reach(next.node, Mode::Free, later);
      };
      const auto go = [&](Mode to) { reach(next.node, to, later); };
      step(node, mode, next.node, link.kind, arrive, go);
    }
  }
  return arrived;
}

// Marks the GPUs of a host in which NVLink does not join every two.
void Walk::find_peers(DomainId host) {
  const auto members = topology_->members(host);
  std::map<NodeId, NodeId> root;  // NVLink networks: switches that NVLink joins
  const std::function<NodeId(NodeId)> find = [&](NodeId node) {
    const NodeId up = root.try_emplace(node, node).first->second;
    return up == node ? node : root[node] = find(up);
  };
  const auto each_link = [&](NodeId node, const auto& visit) {
    for (const Neighbour& next : topology_->neighbours(node)) {
      if (topology_->link(next.link).kind == LinkKind::NvLink && topology_->usable(next.link)) {
        visit(next.node);
      }
    }
  };
  std::vector<NodeId> gpus;
  for (const NodeId node : members) {
    const Node& here = topology_->node(node);
    if (here.kind == NodeKind::Gpu && here.up) gpus.push_back(node);
    if (!is_host_switch(here.kind)) continue;
    each_link(node, [&](NodeId next) {
      if (is_host_switch(topology_->node(next).kind)) root[find(node)] = find(next);
    });
  }
  // A GPU is on the networks of its switches, and on one of its own and its direct neighbours'.
  std::map<NodeId, std::vector<NodeId>> networks;
  for (const NodeId gpu : gpus) {
    each_link(gpu, [&](NodeId next) {
      const bool by_switch = is_host_switch(topology_->node(next).kind);
      networks[gpu].push_back(by_switch ? find(next) : next);
    });
    std::sort(networks[gpu].begin(), networks[gpu].end());
  }
  const auto joined = [&](NodeId a, NodeId b) {
    const std::vector<NodeId>& on_a = networks[a];
    const std::vector<NodeId>& on_b = networks[b];
    if (std::binary_search(on_a.begin(), on_a.end(), b)) return true;
    return std::any_of(on_a.begin(), on_a.end(), [&](NodeId network) {
      return is_host_switch(topology_->node(network).kind) &&
             std::binary_search(on_b.begin(), on_b.end(), network);
    });
  };
  for (const NodeId a : gpus) {
    for (const NodeId b : gpus) {
      if (a >= b || joined(a, b)) continue;
      for (const NodeId gpu : gpus) peers_[gpu.index()] = true;
      return;
    }
  }
}

}  // namespace holdfast::bound
