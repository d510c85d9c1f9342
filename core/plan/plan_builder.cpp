#include "core/plan/plan_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

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

// The grandparent has every block that the parent has, earlier, and cannot be below the child. A
// child of a root turns to another holder, else to a sibling.
void PlanBuilder::choose_alternates(Stripe& stripe) const {
  const auto find = [&](WorkerId child) -> const Edge* {
    const auto at = std::lower_bound(stripe.edges.begin(), stripe.edges.end(), child,
                                     [](const Edge& e, WorkerId w) { return e.child < w; });
    return at != stripe.edges.end() && at->child == child ? &*at : nullptr;
  };
  const auto& holders = space_.demand().classes[stripe.block_class.index()].holders;
  std::vector<WorkerId> root_children;
  for (const Edge& edge : stripe.edges) {
    if (find(edge.parent) == nullptr && space_.may_serve(edge.child)) {
      root_children.push_back(edge.child);
    }
  }
  for (Edge& edge : stripe.edges) {
    if (const Edge* above = find(edge.parent)) {
      edge.alternate = above->parent;
      continue;
    }
    const auto other = [&](WorkerId w) {
      return w != edge.parent && w != edge.child && space_.may_serve(w);
    };
    const auto holder = std::find_if(holders.begin(), holders.end(), other);
    if (holder != holders.end()) {
      edge.alternate = *holder;
      continue;
    }
    const auto sibling = std::find_if(root_children.begin(), root_children.end(), other);
    if (sibling != root_children.end()) edge.alternate = *sibling;
  }
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
    choose_alternates(stripe);
    choose_windows(stripe);
  }
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
