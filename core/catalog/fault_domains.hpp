// What fails together: for each endpoint, the domain of each level in which it lies.
//
// The levels nest (host < rack < pod < datacenter). A topology need not have all of them: where a
// node lies in no domain of a level, its fault domain there is the nearest larger one, and nodes
// outside all domains share one fault domain. Two nodes are thus never said to be apart without a
// domain that shows it. The topology's free fault domains (a power feed) are no level and do not
// count: a guarantee is given for failures of domains of one level (protocol.md).
//
// Immutable; the topology may go. Thread safety: const members may be called from several threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

class FaultDomains {
 public:
  explicit FaultDomains(const Topology& topology);  // O(nodes + domains)

  // Numbers fault domains densely over all levels: equal exactly where nodes fail together.
  using Number = std::uint32_t;
  // O(1).
  [[nodiscard]] Number of(NodeId node, Level level) const {
    return around_[innermost_[node.index()]][static_cast<std::size_t>(level)];
  }
  // Above every number: the domain of a topology and the one outside all domains.
  [[nodiscard]] Number count() const { return static_cast<Number>(around_.size()); }

 private:
  std::vector<std::uint32_t> innermost_;             // by node: index into around_
  std::vector<std::array<Number, kLevels>> around_;  // by domain; the last: outside all domains
};

}  // namespace holdfast
