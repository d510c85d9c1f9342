#include "core/catalog/planning.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/plan/alternates.hpp"
#include "core/plan/join.hpp"
#include "core/plan/repair.hpp"

namespace holdfast {
namespace {

// As the tables have it for the edges of the plan.
Time interval_of(const Router& router, const Demand& demand, const UpdateTables& tables,
                 const LiveEdge& edge) {
  const auto route = router.route(demand.workers[edge.parent.index()].node,
                                  demand.workers[edge.child.index()].node, edge.path);
  if (!route) return {};
  Bytes largest;
  for (const BlockId block : tables.blocks(edge.stripe)) {
    largest = std::max(largest, demand.block_bytes[block.index()]);
  }
  return have_interval(router, *route, largest);
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
  const Repair repair = mend(router, *request.demand, *request.plan, request.task);
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
    edge.have_interval = interval_of(router, *request.demand, *request.tables, edge);
    made.edges.push_back(edge);
  }
  return made;
}

RepairMade answer_join(const Router& router, const MakeJoin& request) {
  const Joined joined =
      join(router, *request.demand, *request.plan, request.task, *request.verified);
  RepairMade made;
  made.id = request.id;
  made.request = request.request;
  made.unmended = joined.unplaced;
  const auto demand = std::make_shared<const Demand>(joined.demand);
  const auto has_all = [&](WorkerId worker, StripeId stripe) {
    const Stripe& s = request.plan->stripes[stripe.index()];
    const auto& holders = demand->classes[s.block_class.index()].holders;
    if (std::binary_search(holders.begin(), holders.end(), worker)) return true;
    return first_missing(*request.verified, *demand, s, worker) == s.blocks.count();
  };
  for (const EdgeAdd& add : joined.delta.adds) {
    LiveEdge edge;
    edge.stripe = add.stripe;
    edge.child = add.child;
    edge.parent = add.parent;
    edge.from_block = add.from_block;
    edge.window = add.window;
    edge.path = add.path;
    edge.parent_has_all = has_all(add.parent, add.stripe);
    if (add.alternate.valid()) {
      edge.alternate_path = path_to_alternate(router, demand->workers[add.alternate.index()].node,
                                              demand->workers[add.child.index()].node, add.path);
      if (edge.alternate_path.source_port.valid()) {
        edge.alternate = add.alternate;
        edge.alternate_has_all = has_all(add.alternate, add.stripe);
      }
    }
    edge.have_interval = interval_of(router, *demand, *request.tables, edge);
    made.edges.push_back(edge);
  }
  made.demand = demand;
  return made;
}

std::optional<CoordinatorEvent> answer_question(const Router& router,
                                                const CoordinatorCommand& command, Policy policy,
                                                const PlanOptions& options) {
  if (const auto* plan = std::get_if<MakePlan>(&command)) {
    return answer_plan(router, *plan, policy, options);
  }
  if (const auto* mending = std::get_if<MakeRepair>(&command)) {
    return answer_repair(router, *mending);
  }
  if (const auto* joining = std::get_if<MakeJoin>(&command)) return answer_join(router, *joining);
  return std::nullopt;
}

}  // namespace holdfast
