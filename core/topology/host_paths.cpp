#include "core/topology/host_paths.hpp"

namespace holdfast {

HostPaths::HostPaths(const Topology& topology, Over over)
    : topology_(&topology),
      over_(over),
      index_in_host_(topology.nodes().size(), kNone),
      trees_(topology.domains().size()) {
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    if (topology.domains()[d].level != Level::Host) continue;
    std::uint32_t index = 0;
    for (const NodeId node : topology.members(DomainId(d))) index_in_host_[node.index()] = index++;
  }
}

std::uint32_t HostPaths::hops(NodeId from, NodeId target) {
  const Tree* towards = tree(from, target);
  return towards == nullptr ? kNone : (*towards)[index_in_host_[from.index()]].hops;
}

bool HostPaths::append(NodeId from, NodeId target, std::vector<ChannelId>& channels) {
  const Tree* towards = tree(from, target);
  if (towards == nullptr || (*towards)[index_in_host_[from.index()]].hops == kNone) return false;
  for (NodeId at = from; at != target;) {
    const ChannelId next = (*towards)[index_in_host_[at.index()]].next;
    channels.push_back(next);
    at = topology_->head(next);
  }
  return true;
}

const HostPaths::Tree* HostPaths::tree(NodeId from, NodeId target) {
  const DomainId host = topology_->around(target, Level::Host);
  if (!host.valid() || topology_->around(from, Level::Host) != host) return nullptr;
  std::vector<Tree>& trees = trees_[host.index()];
  if (trees.empty()) trees.resize(topology_->members(host).size());
  Tree& found = trees[index_in_host_[target.index()]];
  if (found.empty()) found = make_tree(target);
  return &found;
}

HostPaths::Tree HostPaths::make_tree(NodeId target) const {
  const DomainId host = topology_->around(target, Level::Host);
  Tree steps(topology_->members(host).size());
  if (!topology_->node(target).up) return steps;
  steps[index_in_host_[target.index()]].hops = 0;
  std::vector<NodeId> queue{target};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const NodeId at = queue[i];
    const std::uint32_t hops = steps[index_in_host_[at.index()]].hops + 1;
    for (const Neighbour& neighbour : topology_->neighbours(at)) {
      if (!crosses(neighbour.link)) continue;
      Step& step = steps[index_in_host_[neighbour.node.index()]];
      const bool found = step.hops == kNone;
      if (!found && (step.hops != hops || step.next.link() < neighbour.link)) continue;
      step.hops = hops;
      step.next = ChannelId(neighbour.link, topology_->link(neighbour.link).b == neighbour.node);
      const NodeKind kind = topology_->node(neighbour.node).kind;
      if (found && (kind == NodeKind::PcieSwitch || kind == NodeKind::NvSwitch)) {
        queue.push_back(neighbour.node);
      }
    }
  }
  return steps;
}

bool HostPaths::crosses(LinkId link) const {
  const LinkKind kind = topology_->link(link).kind;
  const bool wanted = over_ == Over::NvLink ? kind == LinkKind::NvLink
                                            : kind == LinkKind::Pcie || kind == LinkKind::Memory;
  return wanted && topology_->usable(link);
}

}  // namespace holdfast
