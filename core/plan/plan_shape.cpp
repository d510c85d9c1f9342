#include "core/plan/plan_shape.hpp"

#include <algorithm>

namespace holdfast {
namespace {

// Edges from each worker up to a holder, for the stripes of one plan, one stripe at a time.
class Depths {
 public:
  explicit Depths(std::size_t workers) : parent_(workers), depth_(workers, kUnknown) {}

  std::uint32_t deepest(const Stripe& stripe) {
    for (const Edge& edge : stripe.edges) {
      parent_[edge.child.index()] = edge.parent;
    }
    std::uint32_t deepest = 0;
    for (const Edge& edge : stripe.edges) {
      deepest = std::max(deepest, depth_of(edge.child));
    }
    for (const Edge& edge : stripe.edges) {
      parent_[edge.child.index()] = WorkerId();
      depth_[edge.child.index()] = kUnknown;
      depth_[edge.parent.index()] = kUnknown;
    }
    return deepest;
  }

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  std::uint32_t depth_of(WorkerId worker) {
    way_.clear();
    WorkerId at = worker;
    // No way is longer than there are workers: the checker has refused cycles.
    while (depth_[at.index()] == kUnknown && parent_[at.index()].valid() &&
           way_.size() <= parent_.size()) {
      way_.push_back(at);
      at = parent_[at.index()];
    }
    std::uint32_t depth = depth_[at.index()] == kUnknown ? 0 : depth_[at.index()];
    for (; !way_.empty(); way_.pop_back()) {
      depth_[way_.back().index()] = ++depth;
    }
    return depth;
  }

  std::vector<WorkerId> parent_;
  std::vector<std::uint32_t> depth_;
  std::vector<WorkerId> way_;
};

}  // namespace

PlanShape shape_of(const Plan& plan, const Demand& demand, const Router& router) {
  PlanShape shape;
  shape.streams.assign(router.topology().channels(), 0);
  shape.largest.assign(router.topology().channels(), Bytes());
  Depths depths(demand.workers.size());
  for (const Stripe& stripe : plan.stripes) {
    shape.depth = std::max(shape.depth, depths.deepest(stripe));
    Bytes bytes;
    for (const BlockId block : blocks_of(demand, stripe)) {
      bytes += demand.block_bytes[block.index()];
    }
    for (const Edge& edge : stripe.edges) {
      const auto route = router.route(demand.workers[edge.parent.index()].node,
                                      demand.workers[edge.child.index()].node, edge.path);
      if (!route) continue;
      for (const ChannelId channel : *route) {
        ++shape.streams[channel.index()];
        shape.largest[channel.index()] = std::max(shape.largest[channel.index()], bytes);
      }
    }
  }
  return shape;
}

}  // namespace holdfast
