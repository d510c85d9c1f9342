#include "core/plan/bound_graph.hpp"

#include <numeric>

namespace holdfast::bound {
namespace {

// Offsets of the states within a node.
constexpr std::uint32_t kArrival = 0;
constexpr std::uint32_t kDeparture = 1;
constexpr std::uint32_t kMeetingPoints = 2;  // two for each PCIe or memory link, in neighbour order
constexpr std::uint32_t kLeaving = 0;
constexpr std::uint32_t kEntering = 1;
constexpr std::uint32_t kOutward = 0;
constexpr std::uint32_t kInward = 1;
constexpr std::uint32_t kNvLink = 2;

bool is_host_switch(NodeKind kind) {
  return kind == NodeKind::PcieSwitch || kind == NodeKind::NvSwitch;
}

bool is_pcie(LinkKind kind) {
  return kind == LinkKind::Pcie || kind == LinkKind::Memory;
}

// True if NVLink, through NVSwitches or directly, joins every two GPUs of the host that are up.
bool nvlink_joins_all(const Topology& topology, std::span<const NodeId> members) {
  std::size_t gpus = 0;
  for (const NodeId node : members) {
    gpus += topology.node(node).kind == NodeKind::Gpu && topology.node(node).up ? 1U : 0U;
  }
  std::vector<NodeId> queue;
  std::vector<NodeId> seen;  // a host is small
  std::vector<bool> known(members.empty() ? 0 : members.back().index() + 1 - members[0].index());
  const auto first_time = [&](NodeId node) {
    const std::size_t at = node.index() - members[0].index();
    if (node < members[0] || at >= known.size() || known[at]) return false;
    known[at] = true;
    seen.push_back(node);
    return true;
  };
  for (const NodeId gpu : members) {
    if (topology.node(gpu).kind != NodeKind::Gpu || !topology.node(gpu).up) continue;
    queue.assign(1, gpu);
    first_time(gpu);
    std::size_t reached = 1;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const Neighbour& next : topology.neighbours(queue[i])) {
        if (topology.link(next.link).kind != LinkKind::NvLink || !topology.usable(next.link) ||
            !first_time(next.node)) {
          continue;
        }
        if (topology.node(next.node).kind == NodeKind::Gpu) ++reached;
        if (is_host_switch(topology.node(next.node).kind)) queue.push_back(next.node);
      }
    }
    for (const NodeId node : seen) known[node.index() - members[0].index()] = false;
    seen.clear();
    if (reached != gpus) return false;
  }
  return true;
}

}  // namespace

RoutingGraph::RoutingGraph(const Topology& topology, const std::vector<bool>& relays, PcieUse use)
    : topology_(&topology), use_(use), peers_over_pcie_(topology.nodes().size()) {
  for (std::size_t d = 0; d < topology.domains().size(); ++d) {
    if (topology.domains()[d].level != Level::Host) continue;
    const std::span<const NodeId> members = topology.members(DomainId(d));
    if (nvlink_joins_all(topology, members)) continue;
    for (const NodeId node : members) {
      if (topology.node(node).kind == NodeKind::Gpu) peers_over_pcie_[node.index()] = true;
    }
  }
  number_states();
  arcs_.reserve(topology.channels() * 2);
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const NodeId node(i);
    if (is_endpoint(topology.node(node).kind) && topology.node(node).up && relays[i]) {
      arcs_.push_back({arrival(node), departure(node), kNone});
    }
  }
  for (std::uint32_t i = 0; i < topology.links().size(); ++i) {
    if (!topology.usable(LinkId(i))) continue;
    add_channel(ChannelId(LinkId(i), false));
    add_channel(ChannelId(LinkId(i), true));
  }
  sort_arcs();
}

void RoutingGraph::number_states() {
  first_state_.assign(topology_->nodes().size() + 1, 0);
  for (std::size_t i = 0; i < topology_->nodes().size(); ++i) {
    const NodeKind kind = topology_->nodes()[i].kind;
    std::uint32_t count = 1;
    if (kind == NodeKind::Nic) count = 2;
    if (is_host_switch(kind)) count = 3;
    if (is_endpoint(kind)) {
      count = kMeetingPoints;
      if (kind == NodeKind::HostMemory || peers_over_pcie_[i]) {
        for (const Neighbour& next : topology_->neighbours(NodeId(i))) {
          if (is_pcie(topology_->link(next.link).kind)) count += 2;
        }
      }
    }
    first_state_[i + 1] = first_state_[i] + count;
  }
}

// Where the two uses of one PCIe channel at an endpoint meet, so that they share its capacity.
std::uint32_t RoutingGraph::meeting_point(NodeId endpoint, LinkId link, bool departing) const {
  std::uint32_t state = first_state(endpoint) + kMeetingPoints + (departing ? 1U : 0U);
  for (const Neighbour& next : topology_->neighbours(endpoint)) {
    if (next.link == link) break;
    if (is_pcie(topology_->link(next.link).kind)) state += 2;
  }
  return state;
}

void RoutingGraph::add_channel(ChannelId channel) {
  const NodeId tail = topology_->tail(channel);
  const NodeId head = topology_->head(channel);
  const NodeKind from = topology_->node(tail).kind;
  const NodeKind to = topology_->node(head).kind;
  const LinkKind kind = topology_->link(channel.link()).kind;
  if (is_pcie(kind)) {
    add_pcie(channel);
    return;
  }
  const bool nvlink = kind == LinkKind::NvLink;
  const auto offset = [nvlink](NodeKind node, std::uint32_t endpoint, std::uint32_t nic) {
    if (nvlink) {
      if (is_endpoint(node)) return endpoint;
      return is_host_switch(node) ? kNvLink : kNone;
    }
    if (node == NodeKind::Nic) return nic;
    return is_inside_host(node) ? kNone : 0U;
  };
  const std::uint32_t out = offset(from, kDeparture, kLeaving);
  const std::uint32_t in = offset(to, kArrival, kEntering);
  if (out == kNone || in == kNone) return;
  arcs_.push_back({first_state(tail) + out, first_state(head) + in, channel.value()});
}

void RoutingGraph::add_pcie(ChannelId channel) {
  const NodeId tail = topology_->tail(channel);
  const NodeId head = topology_->head(channel);
  const NodeKind from = topology_->node(tail).kind;
  const NodeKind to = topology_->node(head).kind;
  const std::uint32_t inward_at = use_ == PcieUse::Joined ? kOutward : kInward;
  // States of the two uses: outward (from an endpoint) and inward (to an endpoint).
  std::uint32_t out_tail = kNone;
  std::uint32_t in_tail = kNone;
  std::uint32_t out_head = kNone;
  std::uint32_t in_head = kNone;
  if (is_host_switch(from)) {
    out_tail = first_state(tail) + kOutward;
    in_tail = first_state(tail) + inward_at;
  } else if (from == NodeKind::Nic) {
    in_tail = first_state(tail) + kEntering;
  } else if (is_endpoint(from)) {
    out_tail = departure(tail);
    if (from == NodeKind::HostMemory) in_tail = departure(tail);
  }
  if (is_host_switch(to)) {
    out_head = first_state(head) + kOutward;
    in_head = first_state(head) + inward_at;
  } else if (to == NodeKind::Nic) {
    out_head = first_state(head) + kLeaving;
  } else if (is_endpoint(to)) {
    in_head = arrival(head);
    if (to == NodeKind::HostMemory || peers_over_pcie_[head.index()]) out_head = arrival(head);
  }
  const bool outward = out_tail != kNone && out_head != kNone;
  const bool inward = in_tail != kNone && in_head != kNone;
  const bool same_tail = out_tail == in_tail;
  const bool same_head = out_head == in_head;
  if (outward && inward && same_tail && !same_head) {
    const std::uint32_t meeting = meeting_point(tail, channel.link(), true);
    arcs_.push_back({out_tail, meeting, channel.value()});
    arcs_.push_back({meeting, out_head, kNone});
    arcs_.push_back({meeting, in_head, kNone});
    return;
  }
  if (outward && inward && !same_tail && same_head) {
    const std::uint32_t meeting = meeting_point(head, channel.link(), false);
    arcs_.push_back({out_tail, meeting, kNone});
    arcs_.push_back({in_tail, meeting, kNone});
    arcs_.push_back({meeting, out_head, channel.value()});
    return;
  }
  if (outward) arcs_.push_back({out_tail, out_head, channel.value()});
  if (inward && !(outward && same_tail && same_head)) {
    arcs_.push_back({in_tail, in_head, channel.value()});
  }
}

void RoutingGraph::sort_arcs() {
  first_arc_.assign(states() + 1, 0);
  for (const Arc& arc : arcs_) ++first_arc_[arc.tail + 1];
  std::partial_sum(first_arc_.begin(), first_arc_.end(), first_arc_.begin());
  std::vector<std::uint32_t> next(first_arc_.begin(), first_arc_.end() - 1);
  std::vector<Arc> sorted(arcs_.size());
  for (const Arc& arc : arcs_) sorted[next[arc.tail]++] = arc;
  arcs_ = std::move(sorted);
}

}  // namespace holdfast::bound
