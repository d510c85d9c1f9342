// The plan reader and the checker: whatever the text, a plan that survives the way to JSON and
// back, and a verdict; or an Error.
//
// What is read is checked against one small topology, the one that the seeds are for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "core/io/plan_json.hpp"
#include "core/plan/checker.hpp"
#include "tests/plan/plan_fixtures.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_plan(const holdfast::PlanFile& file, const holdfast::Router& router) {
  validate(file, router.topology());
  holdfast::CheckOptions options;
  options.most = 10;
  options.execute_below = 100'000;
  const auto violations = check(file.plan, file.demand, router, options);
  require(violations.size() <= options.most + 1);
  if (!violations.empty()) return;
  for (const holdfast::Stripe& stripe : file.plan.stripes) {
    require(blocks_of(file.demand, stripe).size() == stripe.blocks.count());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const holdfast::fixtures::Cluster cluster = holdfast::fixtures::cluster(2, 2);
  static const holdfast::Router router(cluster.topology);
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    holdfast::PlanFile file = holdfast::parse_plan(text, "plan");
    const std::string written = to_json(file);
    const holdfast::PlanFile again = holdfast::parse_plan(written, "again");
    require(again == file);
    require(hash_of(again.plan) == hash_of(file.plan));
    require(hash_of(again.demand) == hash_of(file.demand));
    require(to_json(again) == written);
    check_plan(file, router);
    // No mutation finds a hash: with the right ones there is more to see.
    file.plan.topology = cluster.topology.hash();
    file.plan.demand = hash_of(file.demand);
    check_plan(file, router);
  } catch (const holdfast::Error&) {
  }
  return 0;
}
