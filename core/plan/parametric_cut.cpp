#include "core/plan/parametric_cut.hpp"

#include <algorithm>
#include <bit>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <numeric>
#include <utility>

#include "core/plan/bound_ratio.hpp"

namespace holdfast::bound {
namespace {

using Network =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Pipe = boost::graph_traits<Network>::edge_descriptor;

// The network of a problem: its nodes, then its supplies, then source and sink. Each arc is a pipe
// and a reverse pipe of no capacity of its own.
class Solver {
 public:
  explicit Solver(const FlowProblem& problem)
      : problem_(&problem),
        source_(problem.nodes + static_cast<std::uint32_t>(problem.supplies.size())),
        sink_(source_ + 1) {
    for (const Supply& supply : problem.supplies) total_ += supply.bytes;
    // A demand has less than 2^63 bytes.
    shift_ = static_cast<unsigned>(std::max(0, 56 - static_cast<int>(std::bit_width(total_))));
    limit_ = static_cast<std::int64_t>(total_ << shift_);
    build();
  }

  // True if everything gets through at this ratio.
  bool carries_all(Ratio at) {
    for (std::size_t i = 0; i < problem_->arcs.size(); ++i) {
      if (problem_->arcs[i].channel == kNone) continue;
      capacity_[place_[2 * i]] = scaled(problem_->rates[i], at);
    }
    const std::size_t vertices = boost::num_vertices(network_);
    colors_.assign(vertices, boost::white_color);
    distances_.assign(vertices, 0);
    predecessors_.assign(vertices, Pipe());
    const auto vertex = boost::get(boost::vertex_index, network_);
    const auto edge = boost::get(boost::edge_index, network_);
    const std::int64_t flow = boost::boykov_kolmogorov_max_flow(
        network_, boost::make_iterator_property_map(capacity_.begin(), edge),
        boost::make_iterator_property_map(residual_.begin(), edge),
        boost::make_iterator_property_map(reverse_.begin(), edge),
        boost::make_iterator_property_map(predecessors_.begin(), vertex),
        boost::make_iterator_property_map(colors_.begin(), vertex),
        boost::make_iterator_property_map(distances_.begin(), vertex), vertex, source_, sink_);
    return flow >= limit_;
  }

  // The minimum cut nearest to the source after a flow that did not carry all.
  [[nodiscard]] FlowCut cut() const {
    std::vector<bool> reached(boost::num_vertices(network_));
    std::vector<std::uint32_t> queue{source_};
    reached[source_] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (std::uint32_t k = first_[queue[i]]; k < first_[queue[i] + 1]; ++k) {
        if (residual_[k] == 0 || reached[heads_[k]]) continue;
        reached[heads_[k]] = true;
        queue.push_back(heads_[k]);
      }
    }
    FlowCut found;
    for (std::uint32_t s = 0; s < problem_->supplies.size(); ++s) {
      if (!reached[problem_->nodes + s]) continue;
      found.supplies.push_back(s);
      found.bytes += problem_->supplies[s].bytes;
    }
    for (std::uint32_t i = 0; i < problem_->arcs.size(); ++i) {
      const Arc& arc = problem_->arcs[i];
      if (arc.channel != kNone && reached[arc.tail] && !reached[arc.head]) found.arcs.push_back(i);
    }
    return found;
  }

 private:
  void build() {
    // Pipe 2i and its reverse 2i + 1; those of the problem's arcs first, in their order.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    std::vector<std::int64_t> capacities;
    const auto join = [&](std::uint32_t tail, std::uint32_t head, std::int64_t capacity) {
      ends.emplace_back(tail, head);
      ends.emplace_back(head, tail);
      capacities.push_back(capacity);
      capacities.push_back(0);
    };
    for (const Arc& arc : problem_->arcs) join(arc.tail, arc.head, limit_);
    for (std::uint32_t s = 0; s < problem_->supplies.size(); ++s) {
      const Supply& supply = problem_->supplies[s];
      const std::uint32_t node = problem_->nodes + s;
      join(source_, node, static_cast<std::int64_t>(supply.bytes << shift_));
      for (const std::uint32_t entry : supply.entries) join(node, entry, limit_);
    }
    for (const std::uint32_t sink : problem_->sinks) join(sink, sink_, limit_);
    sort_by_tail(ends, capacities);
  }

  void sort_by_tail(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends,
                    const std::vector<std::int64_t>& capacities) {
    first_.assign(sink_ + 2, 0);
    for (const auto& [tail, head] : ends) ++first_[tail + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    place_.resize(ends.size());
    heads_.resize(ends.size());
    capacity_.resize(ends.size());
    residual_.resize(ends.size());
    reverse_.resize(ends.size());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted(ends.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      place_[i] = next[ends[i].first]++;
      sorted[place_[i]] = ends[i];
      heads_[place_[i]] = ends[i].second;
      capacity_[place_[i]] = capacities[i];
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      reverse_[place_[i]] = Pipe(ends[i ^ 1U].first, place_[i ^ 1U]);
    }
    network_ = Network(boost::edges_are_sorted, sorted.begin(), sorted.end(), sink_ + 1);
  }

  // What a channel carries in the time of the ratio, rounded up. Rates and scaled bytes are below
  // 2^64: the product fits 128 bits.
  [[nodiscard]] std::int64_t scaled(std::uint64_t rate, Ratio at) const {
    const Wide bytes = Wide{at.bytes} << shift_;
    const Wide carried = (Wide{rate} * bytes + (at.capacity - 1)) / at.capacity;
    return static_cast<std::int64_t>(std::min(carried, static_cast<Wide>(limit_)));
  }

  const FlowProblem* problem_;
  std::uint32_t source_;
  std::uint32_t sink_;
  Network network_;
  std::uint64_t total_ = 0;
  unsigned shift_ = 0;
  std::int64_t limit_ = 0;
  std::vector<std::uint32_t> first_;  // by vertex: its pipes in the network
  std::vector<std::uint32_t> place_;  // by pipe: its number in the network
  std::vector<std::uint32_t> heads_;  // these by number in the network
  std::vector<std::int64_t> capacity_;
  std::vector<std::int64_t> residual_;
  std::vector<Pipe> reverse_;
  std::vector<boost::default_color_type> colors_;
  std::vector<std::int64_t> distances_;
  std::vector<Pipe> predecessors_;
};

// Keeps one arc for each channel and adds up their capacity.
void settle(FlowCut& cut, const FlowProblem& problem) {
  const auto channel = [&](std::uint32_t arc) { return problem.arcs[arc].channel; };
  std::stable_sort(cut.arcs.begin(), cut.arcs.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return channel(a) < channel(b); });
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return channel(a) == channel(b); };
  cut.arcs.erase(std::unique(cut.arcs.begin(), cut.arcs.end(), same), cut.arcs.end());
  std::sort(cut.arcs.begin(), cut.arcs.end());
  cut.capacity = 0;
  for (const std::uint32_t arc : cut.arcs) cut.capacity += problem.rates[arc];
}

FlowCut trivial_cut(const FlowProblem& problem) {
  FlowCut cut;
  for (std::size_t s = 0; s < problem.supplies.size(); ++s) {
    cut.supplies.push_back(static_cast<std::uint32_t>(s));
    cut.bytes += problem.supplies[s].bytes;
  }
  std::vector<bool> is_sink(problem.nodes);
  for (const std::uint32_t sink : problem.sinks) is_sink[sink] = true;
  for (std::size_t i = 0; i < problem.arcs.size(); ++i) {
    const Arc& arc = problem.arcs[i];
    if (is_sink[arc.head] && !is_sink[arc.tail] && arc.channel != kNone) {
      cut.arcs.push_back(static_cast<std::uint32_t>(i));
    }
  }
  settle(cut, problem);
  return cut;
}

}  // namespace

std::vector<FlowCut> parametric_cuts(const FlowProblem& problem) {
  std::vector<FlowCut> cuts;
  if (problem.supplies.empty()) return cuts;
  cuts.push_back(trivial_cut(problem));
  Solver solver(problem);
  while (cuts.back().capacity != 0) {
    const Ratio so_far{cuts.back().bytes, cuts.back().capacity};
    if (solver.carries_all(so_far)) break;
    FlowCut next = solver.cut();
    settle(next, problem);
    // Equal only where rounding left some scaled byte behind.
    if (!less(so_far, {next.bytes, next.capacity})) break;
    cuts.push_back(std::move(next));
  }
  return cuts;
}

}  // namespace holdfast::bound
