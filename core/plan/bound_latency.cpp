#include "core/plan/bound_latency.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "core/plan/bound_ratio.hpp"

namespace holdfast::bound {
namespace {

constexpr std::size_t kMostArcs = std::size_t{1} << 23U;

}  // namespace

Latencies::Latencies(const RoutingGraph& graph, const DemandIndex& index)
    : graph_(&graph), index_(&index) {
  const std::size_t affordable =
      std::max<std::size_t>(1, kMostArcs / std::max<std::size_t>(1, graph.arcs().size()));
  std::vector<WorkerId> rest;
  bool shared = false;
  for (std::uint32_t set = 0; set < index.holder_sets(); ++set) {
    const bool alone = index.holder_sets() <= affordable || set + 1 < affordable;
    if (alone) {
      search_of_.push_back(static_cast<std::uint32_t>(from_.size()));
      from_.push_back(search(index.holders(set)));
    } else {
      shared = true;
      search_of_.push_back(static_cast<std::uint32_t>(affordable - 1));
      rest.insert(rest.end(), index.holders(set).begin(), index.holders(set).end());
    }
  }
  if (shared) from_.push_back(search(rest));
  for (const WorkerId w : index.receivers()) {
    for (const ClassId c : index.receives(w)) {
      worst_ = std::max(worst_, least(c, w));
    }
  }
}

Time Latencies::least(ClassId c, WorkerId w) const {
  const Time once = way(c, w);
  return once == Time::never() ? once : once * 2 + index_->digest(c, w);
}

std::vector<Time> Latencies::search(std::span<const WorkerId> holders) const {
  const Topology& topology = graph_->topology();
  const Demand& demand = index_->demand();
  std::vector<Time> reached(graph_->states(), Time::never());
  using Entry = std::pair<Time, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (const WorkerId w : holders) {
    const std::uint32_t state = graph_->departure(demand.workers[w.index()].node);
    if (reached[state] == Time()) continue;
    reached[state] = Time();
    queue.emplace(Time(), state);
  }
  while (!queue.empty()) {
    const auto [time, state] = queue.top();
    queue.pop();
    if (time != reached[state]) continue;
    for (const Arc& arc : graph_->arcs_from(state)) {
      Time next = time;
      if (arc.channel != kNone) next += topology.link(ChannelId(arc.channel).link()).latency;
      if (next >= reached[arc.head]) continue;
      reached[arc.head] = next;
      queue.emplace(next, arc.head);
    }
  }
  std::vector<Time> ways(demand.workers.size(), Time::never());
  for (const WorkerId w : index_->receivers()) {
    ways[w.index()] = reached[graph_->arrival(demand.workers[w.index()].node)];
  }
  return ways;
}

}  // namespace holdfast::bound
