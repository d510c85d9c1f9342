// The latency that no plan avoids: bytes leave a holder only after the reader's request has come
// the same way, a relay is asked only after it has them, and the last block is digested. So a
// worker has a byte no earlier than twice the shortest way from a holder, plus one digest.
#pragma once

#include <span>
#include <vector>

#include "core/plan/bound_demand.hpp"
#include "core/plan/bound_graph.hpp"

namespace holdfast::bound {

class Latencies {
 public:
  // One Dijkstra search for each holder set while these stay below about 8 million arcs together;
  // the remaining sets share one search from all their holders, which can only make the answer
  // smaller. O(searches x arcs log states).
  Latencies(const RoutingGraph& graph, const DemandIndex& index);

  // Before that no byte of the class is counted at the worker; never() where no way leads there.
  [[nodiscard]] Time least(ClassId c, WorkerId w) const;
  // The shortest way of the class's holders to the worker, once.
  [[nodiscard]] Time way(ClassId c, WorkerId w) const {
    return from_[search_of_[index_->holder_set(c)]][w.index()];
  }
  // The largest `least` of any receiver.
  [[nodiscard]] Time worst() const { return worst_; }

 private:
  [[nodiscard]] std::vector<Time> search(std::span<const WorkerId> holders) const;

  const RoutingGraph* graph_;
  const DemandIndex* index_;
  std::vector<std::uint32_t> search_of_;  // by holder set
  std::vector<std::vector<Time>> from_;   // by search, by worker: one way
  Time worst_;
};

}  // namespace holdfast::bound
