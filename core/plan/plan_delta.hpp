// The difference between two plans for one demand: which edges go and which come. It mends a plan
// that is being carried out, when workers die or join.
//
// Stripes never change: a delta names them by their number in the base plan. Per stripe, drops come
// before adds, so that giving a child another parent is one of each.
//
// The demand. Blocks, block ids, classes' blocks and the list of workers stay as they were; only
// who holds and who receives a class may change. `mended_demand` makes the demand of the result:
// the dead leave all lists (a class may then have no holder: what is verified at the survivors is
// all there is), joiners enter the receivers of the classes that they want, wholly. apply() and
// check_delta() take the demand of the *result*; its hash goes into the result plan.
//
//   const Demand after = mended_demand(demand, dead, joiners);
//   const auto mended = apply(after, plan, delta);  // or why not
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"

namespace holdfast {

struct EdgeDrop {
  WorkerId child;
  StripeId stripe;
  friend constexpr auto operator<=>(const EdgeDrop&, const EdgeDrop&) = default;
};

struct EdgeAdd {
  WorkerId child;
  StripeId stripe;
  WorkerId parent;
  WorkerId alternate;            // invalid: nobody
  std::uint32_t from_block = 0;  // in the stripe's order: the child has all blocks before it
  Path path;
  std::uint32_t window = 2;
  friend constexpr auto operator<=>(const EdgeAdd&, const EdgeAdd&) = default;
};

struct PlanDelta {
  Hash128 base;
  Hash128 result;
  std::vector<EdgeDrop> drops;
  std::vector<EdgeAdd> adds;
  friend bool operator==(const PlanDelta&, const PlanDelta&) = default;
};

enum class DeltaError {
  WrongBase,        // the plan is not the one that the delta was made for
  UnknownStripe,    // a drop or add names a stripe that the plan does not have
  NoSuchEdge,       // a drop of an edge that is not there (or is dropped twice)
  EdgeExists,       // an add for a child that still has an edge in the stripe
  BlockOutOfRange,  // from_block is beyond the end of the stripe (at the end: nothing is missing)
  WrongResult,      // what comes out has another hash than the delta says
};
[[nodiscard]] const char* to_string(DeltaError error);

struct DeltaRefusal {
  DeltaError error = DeltaError::WrongBase;
  StripeId stripe;  // UnknownStripe, NoSuchEdge, EdgeExists, BlockOutOfRange: where,
  WorkerId child;   // and whose edge
};
// "EdgeExists: worker 7 still has an edge in stripe 3".
[[nodiscard]] std::string to_string(const DeltaRefusal& refusal);

// Somebody new, or somebody who wants more: receives the classes, wholly.
struct Joiner {
  WorkerId worker;
  std::vector<ClassId> classes;  // ascending
};

// The demand after deaths and joins. Joiners that hold or receive a class already are not added to
// it again. Preconditions: ids are there, `dead` and each joiner's classes ascend.
// O(size of the demand).
[[nodiscard]] Demand mended_demand(const Demand& demand, std::span<const WorkerId> dead,
                                   std::span<const Joiner> joiners);

// The plan that the delta makes of `base`, or why it is refused. `demand` is the result's. Pure.
// O(edges of both plans + (drops + adds) log).
[[nodiscard]] tl::expected<Plan, DeltaRefusal> apply(const Demand& demand, const Plan& base,
                                                     const PlanDelta& delta);

// The delta with these drops and adds, and both hashes filled in; refused like apply() does.
[[nodiscard]] tl::expected<PlanDelta, DeltaRefusal> make_delta(const Demand& demand,
                                                               const Plan& base,
                                                               std::vector<EdgeDrop> drops,
                                                               std::vector<EdgeAdd> adds);

}  // namespace holdfast
