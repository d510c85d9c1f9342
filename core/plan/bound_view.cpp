#include "core/plan/bound_view.hpp"

#include <algorithm>

namespace holdfast::bound {

View::View(const RoutingGraph& graph, const std::vector<NodeId>& nodes,
           std::span<const ChannelId> entries)
    : graph_(&graph) {
  for (const NodeId node : nodes) {
    first_states_.push_back(graph.first_state(node));
    last_states_.push_back(graph.last_state(node));
    first_local_.push_back(size_);
    size_ += graph.last_state(node) - graph.first_state(node);
  }
  outside_ = size_++;
  const Topology& topology = graph.topology();
  for (const NodeId node : nodes) {
    for (std::uint32_t state = graph.first_state(node); state < graph.last_state(node); ++state) {
      for (const Arc& arc : graph.arcs_from(state)) {
        const std::uint32_t head = local(arc.head);
        add(local(state), head == kNone ? outside_ : head, arc.channel);
      }
    }
    // Hosts meet the rest at their NICs alone.
    if (topology.node(node).kind != NodeKind::Nic) continue;
    for (const Neighbour& next : topology.neighbours(node)) {
      const LinkKind kind = topology.link(next.link).kind;
      if ((kind != LinkKind::Fabric && kind != LinkKind::Wan) || !topology.usable(next.link) ||
          local(graph.first_state(next.node)) != kNone) {
        continue;
      }
      const ChannelId channel(next.link, topology.link(next.link).b == next.node);
      add(outside_, local(graph.entering(node)), channel.value());
    }
  }
  if (!entries.empty()) beyond_ = size_++;
  for (const ChannelId entry : entries) add(beyond_, outside_, entry.value());
  finish();
}

View::View(const RoutingGraph& graph) : graph_(&graph), size_(graph.states()) {
  for (const Arc& arc : graph.arcs()) add(arc.tail, arc.head, arc.channel);
  finish();
}

std::uint32_t View::local(std::uint32_t state) const {
  if (outside_ == kNone && first_states_.empty()) return state;
  const auto after = std::upper_bound(first_states_.begin(), first_states_.end(), state);
  if (after == first_states_.begin()) return kNone;
  const auto k = static_cast<std::size_t>(after - first_states_.begin() - 1);
  return state < last_states_[k] ? first_local_[k] + (state - first_states_[k]) : kNone;
}

void View::add(std::uint32_t tail, std::uint32_t head, std::uint32_t channel) {
  arcs_.push_back({tail, head, channel});
  const Topology& topology = graph_->topology();
  rates_.push_back(
      channel == kNone ? 0 : topology.link(ChannelId(channel).link()).capacity.bytes_per_second());
}

void View::finish() {
  CanonicalHasher hasher;
  hasher.add(std::uint64_t{size_});
  for (std::size_t i = 0; i < arcs_.size(); ++i) {
    hasher.add(std::uint64_t{arcs_[i].tail} << 32U | arcs_[i].head).add(rates_[i]);
  }
  shape_ = hasher.finish();
}

}  // namespace holdfast::bound
