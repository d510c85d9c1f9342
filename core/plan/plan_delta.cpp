#include "core/plan/plan_delta.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast {
namespace {

tl::unexpected<DeltaRefusal> refuse(DeltaError error, StripeId stripe = {}, WorkerId child = {}) {
  return tl::unexpected(DeltaRefusal{error, stripe, child});
}

// Indices of `items`, by stripe, then child.
template <class Item>
std::vector<std::uint32_t> by_stripe(const std::vector<Item>& items) {
  std::vector<std::uint32_t> order(items.size());
  for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(items[a].stripe, items[a].child) < std::pair(items[b].stripe, items[b].child);
  });
  return order;
}

constexpr auto kByChild = [](const Edge& a, const Edge& b) { return a.child < b.child; };

// Takes from `edges` those whose child is listed; both ascend.
tl::expected<void, DeltaRefusal> drop_edges(std::vector<Edge>& edges, StripeId stripe,
                                            std::span<const WorkerId> children) {
  std::size_t kept = 0;
  std::size_t next = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (next < children.size() && edges[e].child == children[next]) {
      ++next;
      continue;
    }
    edges[kept++] = edges[e];
  }
  if (next < children.size()) return refuse(DeltaError::NoSuchEdge, stripe, children[next]);
  edges.resize(kept);
  return {};
}

tl::expected<void, DeltaRefusal> add_edges(std::vector<Edge>& edges, StripeId stripe,
                                           std::uint32_t blocks, std::span<const EdgeAdd> adds) {
  std::vector<Edge> added;
  added.reserve(adds.size());
  for (const EdgeAdd& add : adds) {
    if (add.from_block > blocks) return refuse(DeltaError::BlockOutOfRange, stripe, add.child);
    added.push_back({add.child, add.parent, add.alternate, add.path, add.window});
  }
  std::vector<Edge> merged;
  merged.reserve(edges.size() + added.size());
  std::merge(edges.begin(), edges.end(), added.begin(), added.end(), std::back_inserter(merged),
             kByChild);
  const auto twice =
      std::adjacent_find(merged.begin(), merged.end(),
                         [](const Edge& a, const Edge& b) { return a.child == b.child; });
  if (twice != merged.end()) return refuse(DeltaError::EdgeExists, stripe, twice->child);
  edges = std::move(merged);
  return {};
}

// The result without a look at the delta's hashes.
tl::expected<Plan, DeltaRefusal> carry_out(const Demand& demand, const Plan& base,
                                           const std::vector<EdgeDrop>& drops,
                                           const std::vector<EdgeAdd>& adds) {
  const std::vector<std::uint32_t> drop_order = by_stripe(drops);
  const std::vector<std::uint32_t> add_order = by_stripe(adds);
  Plan result = base;
  result.demand = hash_of(demand);
  std::vector<WorkerId> children;
  std::vector<EdgeAdd> added;
  std::size_t d = 0;
  std::size_t a = 0;
  while (d < drop_order.size() || a < add_order.size()) {
    StripeId stripe;  // the greatest: invalid
    if (d < drop_order.size()) stripe = drops[drop_order[d]].stripe;
    if (a < add_order.size()) stripe = std::min(stripe, adds[add_order[a]].stripe);
    children.clear();
    added.clear();
    for (; d < drop_order.size() && drops[drop_order[d]].stripe == stripe; ++d) {
      children.push_back(drops[drop_order[d]].child);
    }
    for (; a < add_order.size() && adds[add_order[a]].stripe == stripe; ++a) {
      added.push_back(adds[add_order[a]]);
    }
    if (stripe.index() >= result.stripes.size()) {
      return refuse(DeltaError::UnknownStripe, stripe,
                    children.empty() ? added.front().child : children.front());
    }
    Stripe& changed = result.stripes[stripe.index()];
    if (const auto done = drop_edges(changed.edges, stripe, children); !done) {
      return tl::unexpected(done.error());
    }
    const auto done = add_edges(changed.edges, stripe, changed.blocks.count(), added);
    if (!done) return tl::unexpected(done.error());
  }
  return result;
}

void remove_dead(std::vector<WorkerId>& workers, std::span<const WorkerId> dead) {
  workers.erase(
      std::remove_if(workers.begin(), workers.end(),
                     [&](WorkerId w) { return std::binary_search(dead.begin(), dead.end(), w); }),
      workers.end());
}

}  // namespace

const char* to_string(DeltaError error) {
  switch (error) {
    case DeltaError::WrongBase:
      return "WrongBase";
    case DeltaError::UnknownStripe:
      return "UnknownStripe";
    case DeltaError::NoSuchEdge:
      return "NoSuchEdge";
    case DeltaError::EdgeExists:
      return "EdgeExists";
    case DeltaError::BlockOutOfRange:
      return "BlockOutOfRange";
    case DeltaError::WrongResult:
      return "WrongResult";
  }
  return "unknown";
}

std::string to_string(const DeltaRefusal& refusal) {
  std::string name = to_string(refusal.error);
  const std::uint32_t child = refusal.child.value();
  const std::uint32_t stripe = refusal.stripe.value();
  switch (refusal.error) {
    case DeltaError::WrongBase:
      return name + ": the delta was made for another plan";
    case DeltaError::UnknownStripe:
      return fmt::format("{}: stripe {} of worker {} is not there", name, stripe, child);
    case DeltaError::NoSuchEdge:
      return fmt::format("{}: worker {} has no edge in stripe {} to drop", name, child, stripe);
    case DeltaError::EdgeExists:
      return fmt::format("{}: worker {} still has an edge in stripe {}", name, child, stripe);
    case DeltaError::BlockOutOfRange:
      return fmt::format("{}: worker {} is to begin beyond the end of stripe {}", name, child,
                         stripe);
    case DeltaError::WrongResult:
      return name + ": the result is not the plan that the delta promises";
  }
  return name;
}

Demand mended_demand(const Demand& demand, std::span<const WorkerId> dead,
                     std::span<const Joiner> joiners) {
  Demand result = demand;
  if (!dead.empty()) {
    for (BlockClass& c : result.classes) {
      remove_dead(c.holders, dead);
      remove_dead(c.receivers, dead);
    }
  }
  for (const Joiner& joiner : joiners) {
    for (const ClassId id : joiner.classes) {
      BlockClass& c = result.classes[id.index()];
      if (std::binary_search(c.holders.begin(), c.holders.end(), joiner.worker)) continue;
      const auto at = std::lower_bound(c.receivers.begin(), c.receivers.end(), joiner.worker);
      if (at == c.receivers.end() || *at != joiner.worker) c.receivers.insert(at, joiner.worker);
    }
  }
  return result;
}

tl::expected<Plan, DeltaRefusal> apply(const Demand& demand, const Plan& base,
                                       const PlanDelta& delta) {
  if (hash_of(base) != delta.base) return refuse(DeltaError::WrongBase);
  auto result = carry_out(demand, base, delta.drops, delta.adds);
  if (result && hash_of(*result) != delta.result) return refuse(DeltaError::WrongResult);
  return result;
}

tl::expected<PlanDelta, DeltaRefusal> make_delta(const Demand& demand, const Plan& base,
                                                 std::vector<EdgeDrop> drops,
                                                 std::vector<EdgeAdd> adds) {
  const auto result = carry_out(demand, base, drops, adds);
  if (!result) return tl::unexpected(result.error());
  return PlanDelta{hash_of(base), hash_of(*result), std::move(drops), std::move(adds)};
}

}  // namespace holdfast
