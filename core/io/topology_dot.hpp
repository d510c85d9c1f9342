// A picture of a topology: Graphviz text for `dot`, `holdfast topo show FILE --dot`.
//
// Domains become nested clusters. A host becomes one node with the numbers of its GPUs and NICs,
// unless the topology has at most two hosts: then every node is drawn. Links with the same ends,
// capacity, latency, stream cap and state are drawn as one edge with their number, in both cases.
// What is down is dashed: links, nodes, and hosts all of whose nodes are.
//
// Names are escaped, so that no name can end a label or command a terminal. Deterministic: things
// come in id order. O(V + E log E).
#pragma once

#include <string>

#include "core/topology/topology.hpp"

namespace holdfast {

[[nodiscard]] std::string render_dot(const Topology& topology);

}  // namespace holdfast
