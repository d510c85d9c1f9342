// Checks a mended plan: that the delta applies, that its edges begin where their children are, and
// what comes out.
#include <fmt/format.h>

#include "core/plan/check_internal.hpp"

namespace holdfast {
namespace {

// An edge that begins at a block later than the child's first missing one would leave a gap.
void check_beginnings(const PlanDelta& delta, const Plan& plan, const Demand& demand,
                      const Router& router, const Holdings& verified, checking::Report& report) {
  for (std::size_t k = 0; k < delta.adds.size(); ++k) {
    const EdgeAdd& add = delta.adds[k];
    const Stripe& stripe = plan.stripes[add.stripe.index()];
    const bool known = stripe.block_class.index() < demand.classes.size() &&
                       add.child.index() < demand.workers.size();
    if (!known || add.from_block == 0) continue;
    const std::uint32_t has = first_missing(verified, demand, stripe, add.child);
    if (has >= add.from_block) continue;
    report.add(
        ViolationCode::NotYetThere, [&] { return fmt::format("/delta/adds/{}/from_block", k); },
        [&] {
          const NodeId node = demand.workers[add.child.index()].node;
          return fmt::format("'{}' is to begin at block {} of stripe {} and has the first {} alone",
                             router.topology().node(node).name, add.from_block, add.stripe.value(),
                             has);
        });
  }
}

}  // namespace

std::vector<Violation> check_delta(const Plan& base, const PlanDelta& delta, const Demand& after,
                                   const Router& router, const Holdings& verified,
                                   CheckOptions options) {
  checking::Report report(options.most);
  const auto plan = apply(after, base, delta);
  if (!plan) {
    report.add(
        ViolationCode::BadDelta, [] { return std::string("/delta"); },
        [&] { return to_string(plan.error()); });
    return report.take();
  }
  check_beginnings(delta, *plan, after, router, verified, report);
  std::vector<Violation> violations = report.take();
  options.start = &verified;
  for (Violation& violation : check(*plan, after, router, options)) {
    violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace holdfast
