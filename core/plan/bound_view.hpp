// A part of the routing graph, exact inside some hosts, with everything else merged into one node.
// Merging only adds ways, so that a cut of the view is a cut of the whole.
//
// Views of like hosts have the same shape and the same numbering, so that a cut found in one can be
// read off in the other: arc k here is arc k there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/hash.hpp"
#include "core/plan/bound_graph.hpp"

namespace holdfast::bound {

class View {
 public:
  // `nodes` ascending; all nodes between NICs and endpoints of the hosts that matter.
  // O(arcs of the part x log nodes).
  View(const RoutingGraph& graph, const std::vector<NodeId>& nodes) : View(graph, nodes, {}) {}
  // The same within a domain: `entries` are the channels that lead into it, and if there are some,
  // what lies beyond it is a node of its own, from which only they lead to the outside node.
  View(const RoutingGraph& graph, const std::vector<NodeId>& nodes,
       std::span<const ChannelId> entries);
  // The whole graph, nothing merged.
  explicit View(const RoutingGraph& graph);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::span<const Arc> arcs() const { return arcs_; }
  [[nodiscard]] std::span<const std::uint64_t> rates() const { return rates_; }  // by arc
  // The number here of a state of the graph; kNone if it is outside.
  [[nodiscard]] std::uint32_t local(std::uint32_t state) const;
  // The node that everything else is merged into; kNone in a view of the whole.
  [[nodiscard]] std::uint32_t outside() const { return outside_; }
  // Where what is not here comes in: what lies beyond the domain, else the outside.
  [[nodiscard]] std::uint32_t elsewhere() const { return beyond_ == kNone ? outside_ : beyond_; }
  // Views with equal shapes are the same problem, channel numbers aside.
  [[nodiscard]] const Hash128& shape() const { return shape_; }

 private:
  void add(std::uint32_t tail, std::uint32_t head, std::uint32_t channel);
  void finish();

  const RoutingGraph* graph_;
  std::vector<std::uint32_t> first_states_;  // of the nodes, ascending; empty: the whole graph
  std::vector<std::uint32_t> last_states_;
  std::vector<std::uint32_t> first_local_;
  std::uint32_t size_ = 0;
  std::uint32_t outside_ = kNone;
  std::uint32_t beyond_ = kNone;
  std::vector<Arc> arcs_;
  std::vector<std::uint64_t> rates_;
  Hash128 shape_;
};

}  // namespace holdfast::bound
