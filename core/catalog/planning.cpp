#include "core/catalog/planning.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/plan/repair.hpp"

namespace holdfast {
namespace {

// A quarter of the time that the largest block takes on the way; see update_tables.hpp.
Time have_interval(const Router& router, const MakeRepair& request, const MendedEdge& mended) {
  const Demand& demand = *request.demand;
  const auto route = router.route(demand.workers[mended.edge.parent.index()].node,
                                  demand.workers[mended.edge.child.index()].node, mended.edge.path);
  if (!route) return {};
  Bytes largest;
  for (const BlockId block : request.tables->blocks(mended.stripe)) {
    largest = std::max(largest, demand.block_bytes[block.index()]);
  }
  const Time time = transfer_time(largest, router.bottleneck(*route));
  return time == Time::never() ? Time{} : time / 4;
}

}  // namespace

std::uint32_t transfer_number(PlanNumber id) {
  constexpr std::uint32_t kCountBits = 20;
  const auto epoch = static_cast<std::uint32_t>(id >> 32U);
  const auto count = static_cast<std::uint32_t>(id) & ((1U << kCountBits) - 1);
  return epoch << kCountBits | count;
}

PlanMade answer_plan(const Router& router, const MakePlan& request, Policy policy,
                     const PlanOptions& options) {
  PlanMade made;
  made.id = request.id;
  try {
    made.plan =
        std::make_shared<const Plan>(make_plan(policy, router, *request.demand, options).plan);
    made.tables = std::make_shared<const UpdateTables>(
        *request.demand, *made.plan, &router, *request.digests, transfer_number(request.id));
  } catch (const Error& error) {
    made.plan.reset();
    made.tables.reset();
    made.problem = error.message();
  }
  return made;
}

RepairMade answer_repair(const Router& router, const MakeRepair& request) {
  RepairTask task;
  task.lost = request.lost;
  task.closed = request.closed;
  task.complete = request.complete;
  task.readers = request.readers;
  task.slow = request.slow;
  for (const Orphan& orphan : request.orphans) {
    task.orphans.push_back({orphan.child, orphan.stripe, orphan.from});
  }
  const Repair repair = mend(router, *request.demand, *request.plan, task);
  RepairMade made;
  made.id = request.id;
  made.request = request.request;
  made.unmended = repair.unmended;
  for (const MendedEdge& mended : repair.edges) {
    LiveEdge edge;
    edge.stripe = mended.stripe;
    edge.child = mended.edge.child;
    edge.parent = mended.edge.parent;
    edge.alternate = mended.edge.alternate;
    edge.window = mended.edge.window;
    edge.path = mended.edge.path;
    edge.alternate_path = mended.alternate_path;
    edge.parent_has_all = mended.parent_has_all;
    edge.alternate_has_all = mended.alternate_has_all;
    edge.have_interval = have_interval(router, request, mended);
    made.edges.push_back(edge);
  }
  return made;
}

}  // namespace holdfast
