// Collects the edges of a plan and completes them: order, alternates, windows, hashes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanSpace& space) : space_(space) {}

  StripeId add_stripe(ClassId block_class, BlockSelection blocks);
  void add_edge(StripeId stripe, WorkerId child, WorkerId parent, const Path& path);
  // Splits a class into `stripes` stripes of interleaved blocks (at most one a block).
  std::vector<StripeId> add_stripes(ClassId block_class, std::uint32_t stripes);

  // O(edges log edges + route lengths).
  [[nodiscard]] Plan finish() &&;

 private:
  void choose_windows(Stripe& stripe) const;

  const PlanSpace& space_;
  Plan plan_;
};

// The holders of a class that may serve, in domain order; throws Error(Unsupported) if none.
[[nodiscard]] std::vector<WorkerId> serving_holders(const PlanSpace& space, const BlockClass& c);

// The receivers of a class in domain order, those that may serve apart from those that may not:
// the latter can only be leaves.
struct SplitReceivers {
  std::vector<WorkerId> relays;
  std::vector<WorkerId> leaves;
};
[[nodiscard]] SplitReceivers split_receivers(const PlanSpace& space, const BlockClass& c);

// Cuts a list of `count` items into consecutive parts for the roots, as equal as possible. The
// roots are in the same order, so that each serves the part of the list that lies near it.
struct Part {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
[[nodiscard]] std::vector<Part> equal_parts(std::size_t count, std::size_t parts);

}  // namespace holdfast
