#include "sim/source_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/plan/planner.hpp"

namespace holdfast::sim {
namespace {

// The demand without the holders that are nobody's source. Class ids stay: a class whose receivers
// may read from different holders cannot be told apart by its star, so the holders left are those
// that every one of them may read from.
std::optional<std::string> narrow(Demand& demand, const MayRead& may_read) {
  for (BlockClass& c : demand.classes) {
    std::erase_if(c.holders, [&](WorkerId holder) {
      return !std::all_of(c.receivers.begin(), c.receivers.end(),
                          [&](WorkerId receiver) { return may_read(holder, receiver); });
    });
    if (c.holders.empty()) {
      return fmt::format("nobody that worker {} may read from has its blocks",
                         c.receivers.front().value());
    }
  }
  return std::nullopt;
}

PlanMade answer_plan_from(const Router& router, const MakePlan& request, const MayRead& may_read) {
  PlanMade made;
  made.id = request.id;
  Demand demand = *request.demand;
  if (auto problem = narrow(demand, may_read)) {
    made.problem = std::move(*problem);
    return made;
  }
  try {
    Plan plan = make_plan(Policy::Star, router, demand).plan;
    for (Stripe& stripe : plan.stripes) {
      for (Edge& edge : stripe.edges) edge.alternate = {};
    }
    made.plan = std::make_shared<const Plan>(std::move(plan));
    made.tables = std::make_shared<const UpdateTables>(
        demand, *made.plan, &router, *request.digests, transfer_number(request.id));
  } catch (const Error& error) {
    made.plan.reset();
    made.tables.reset();
    made.problem = error.message();
  }
  return made;
}

// Of a repair or join that places nobody.
template <class Request>
RepairMade unanswered(const Request& request, std::vector<WorkerId> unmended) {
  RepairMade made;
  made.id = request.id;
  made.request = request.request;
  std::sort(unmended.begin(), unmended.end());
  unmended.erase(std::unique(unmended.begin(), unmended.end()), unmended.end());
  made.unmended = std::move(unmended);
  return made;
}

RepairMade answer_repair_with_nothing(const MakeRepair& request) {
  const RepairTask& task = request.task;
  const auto in = [](const std::vector<WorkerId>& list, WorkerId worker) {
    return std::binary_search(list.begin(), list.end(), worker);
  };
  std::vector<WorkerId> unmended;
  for (const LostEdge& orphan : task.orphans) unmended.push_back(orphan.child);
  for (const Stripe& stripe : request.plan->stripes) {
    for (const Edge& edge : stripe.edges) {
      if (in(task.lost, edge.parent)) unmended.push_back(edge.child);
    }
  }
  std::erase_if(unmended, [&](WorkerId worker) {
    return in(task.lost, worker) || !in(task.readers, worker);
  });
  return unanswered(request, std::move(unmended));
}

RepairMade answer_join_with_nothing(const MakeJoin& request) {
  std::vector<WorkerId> unmended;
  for (const Joiner& joiner : request.task.joiners) unmended.push_back(joiner.worker);
  RepairMade made = unanswered(request, std::move(unmended));
  made.demand = request.demand;
  return made;
}

}  // namespace

std::optional<CoordinatorEvent> answer_question_from(const Router& router,
                                                     const CoordinatorCommand& command,
                                                     const MayRead& may_read) {
  if (const auto* plan = std::get_if<MakePlan>(&command)) {
    return answer_plan_from(router, *plan, may_read);
  }
  if (const auto* mending = std::get_if<MakeRepair>(&command)) {
    return answer_repair_with_nothing(*mending);
  }
  if (const auto* joining = std::get_if<MakeJoin>(&command)) {
    return answer_join_with_nothing(*joining);
  }
  return std::nullopt;
}

}  // namespace holdfast::sim
