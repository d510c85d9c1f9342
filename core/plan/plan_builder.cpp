#include "core/plan/plan_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/plan/alternates.hpp"

namespace holdfast {

StripeId PlanBuilder::add_stripe(ClassId block_class, BlockSelection blocks) {
  const StripeId id(plan_.stripes.size());
  plan_.stripes.push_back({block_class, blocks, {}});
  return id;
}

void PlanBuilder::add_edge(StripeId stripe, WorkerId child, WorkerId parent, const Path& path) {
  plan_.stripes[stripe.index()].edges.push_back({child, parent, WorkerId(), path, 2});
}

std::vector<StripeId> PlanBuilder::add_stripes(ClassId block_class, std::uint32_t stripes) {
  const std::uint32_t blocks = block_count(space_.demand().classes[block_class.index()]);
  const std::uint32_t step = std::clamp(stripes, 1U, blocks);
  std::vector<StripeId> ids;
  for (std::uint32_t k = 0; k < step; ++k)
    ids.push_back(add_stripe(block_class, {k, step, blocks}));
  return ids;
}

void PlanBuilder::choose_windows(Stripe& stripe) const {
  for (Edge& edge : stripe.edges) {
    const auto route =
        space_.router().route(space_.node(edge.parent), space_.node(edge.child), edge.path);
    if (!route) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("planned a path that is not there: {}", route.error()));
    }
    edge.window = window_for(space_.router().latency(*route) * 2,
                             space_.router().bottleneck(*route), space_.demand().block_size);
  }
}

Plan PlanBuilder::finish() && {
  plan_.topology = space_.topology().hash();
  plan_.demand = hash_of(space_.demand());
  for (Stripe& stripe : plan_.stripes) {
    std::sort(stripe.edges.begin(), stripe.edges.end());
    choose_windows(stripe);
  }
  choose_alternates(plan_, space_.demand(), space_.topology());
  return std::move(plan_);
}

std::vector<WorkerId> serving_holders(const PlanSpace& space, const BlockClass& c) {
  std::vector<WorkerId> holders;
  for (const WorkerId w : c.holders) {
    if (space.may_serve(w)) holders.push_back(w);
  }
  if (holders.empty()) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("none of the {} holders of a class of {} blocks may serve",
                            c.holders.size(), block_count(c)));
  }
  space.sort_by_rank(holders);
  return holders;
}

SplitReceivers split_receivers(const PlanSpace& space, const BlockClass& c) {
  SplitReceivers split;
  for (const WorkerId w : c.receivers) {
    (space.may_serve(w) ? split.relays : split.leaves).push_back(w);
  }
  space.sort_by_rank(split.relays);
  space.sort_by_rank(split.leaves);
  return split;
}

std::vector<Part> equal_parts(std::size_t count, std::size_t parts) {
  std::vector<Part> result;
  for (std::size_t k = 0; k < parts; ++k) {
    const auto first = static_cast<std::uint32_t>(count * k / parts);
    const auto end = static_cast<std::uint32_t>(count * (k + 1) / parts);
    result.push_back({first, end - first});
  }
  return result;
}

}  // namespace holdfast
