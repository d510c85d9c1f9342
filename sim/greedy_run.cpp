#include "sim/greedy_run.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/plan/greedy.hpp"

namespace holdfast::sim {
namespace {

// One way to a coordinator that is as near as a worker of another host can be: the least latency
// from a holder of the first class to any receiver outside its host, or inside if all are there.
Time nearest_latency(const PlanSpace& space) {
  const BlockClass& c = space.demand().classes.front();
  const WorkerId holder = c.holders.front();
  std::pair<bool, Time> least{true, Time::never()};
  PathChooser paths(space);
  for (const WorkerId receiver : c.receivers) {
    const bool inside = space.host(holder).valid() && space.host(holder) == space.host(receiver);
    if (inside && !least.first) continue;
    try {
      const auto route = space.router().route(space.node(holder), space.node(receiver),
                                              paths.any(holder, receiver, Bytes()));
      if (route) least = std::min(least, {inside, space.router().latency(*route)});
    } catch (const Error&) {  // nothing joins these two
    }
  }
  return least.second == Time::never() ? Time() : least.second;
}

class GreedyDirector final : public Director {
 public:
  GreedyDirector(const PlanSpace& space, std::optional<std::uint32_t> cap)
      : space_(space),
        policy_(space, cap),
        paths_(space),
        plan_(greedy_outline(space.topology(), space.demand())),
        latency_(nearest_latency(space)) {
    std::uint32_t stripes = 0;
    for (std::size_t c = 0; c < space.demand().classes.size(); ++c) {
      first_stripe_.push_back(stripes);
      stripes += greedy_pieces(space.demand(), ClassId(c));
    }
  }

  [[nodiscard]] const Plan& pieces() const { return plan_; }

  std::vector<Order> start() override { return orders(policy_.start()); }
  std::vector<Order> done(WorkerId reader) override { return orders(policy_.finished(reader)); }
  [[nodiscard]] Time control_latency() const override { return latency_; }

  // Who read what from whom.
  Plan take_plan() {
    for (Stripe& stripe : plan_.stripes) std::sort(stripe.edges.begin(), stripe.edges.end());
    return std::move(plan_);
  }

 private:
  std::vector<Order> orders(const std::vector<GreedyRequest>& requests) {
    std::vector<Order> result;
    result.reserve(requests.size());
    for (const GreedyRequest& request : requests) result.push_back(order(request));
    return result;
  }

  Order order(const GreedyRequest& request) {
    const StripeId id(first_stripe_[request.block_class.index()] + request.piece);
    Stripe& stripe = plan_.stripes[id.index()];
    const Path path = paths_.any(request.source, request.reader, Bytes());
    const auto route =
        space_.router().route(space_.node(request.source), space_.node(request.reader), path);
    if (!route) throw Error(ErrorCode::Unsupported, route.error());
    const Bytes block = space_.demand().block_size;
    const Rate rate = space_.router().bottleneck(*route);
    const std::uint32_t window = window_for(space_.router().latency(*route) * 2, rate, block);
    stripe.edges.push_back({request.reader, request.source, {}, path, window});
    const Time block_time = transfer_time(block, rate);
    Assignment work;
    work.stripe = id;
    work.parent = request.source;
    work.to = stripe.blocks.count();
    work.window = window;
    work.parent_has_all = request.source_has_all;
    work.path = path;
    work.have_interval = block_time == Time::never() ? Time() : block_time / 4;
    return {request.reader, work};
  }

  const PlanSpace& space_;
  GreedyPolicy policy_;
  PathChooser paths_;
  Plan plan_;
  Time latency_;
  std::vector<std::uint32_t> first_stripe_;  // by class
};

}  // namespace

SimulationResult run_greedy(const Router& router, const Demand& demand,
                            std::optional<std::uint32_t> reader_cap,
                            const SimulationOptions& options,
                            const std::function<void(double)>& progress) {
  const PlanSpace space(router, demand);
  GreedyDirector director(space, reader_cap);
  const Plan pieces = director.pieces();
  SimulationResult result =
      run_engines(router, demand, pieces, options, progress, std::nullopt, &director);
  result.plan = director.take_plan();
  return result;
}

}  // namespace holdfast::sim
