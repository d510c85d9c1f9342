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

}  // namespace

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
        demand, *made.plan, &router, *request.digests, static_cast<std::uint32_t>(request.id));
  } catch (const Error& error) {
    made.plan.reset();
    made.problem = error.message();
  }
  return made;
}

RepairMade answer_repair_with_nothing(const MakeRepair& request) {
  RepairMade made;
  made.id = request.id;
  made.request = request.request;
  const auto is_lost = [&](WorkerId worker) {
    return std::find(request.lost.begin(), request.lost.end(), worker) != request.lost.end();
  };
  for (const Orphan& orphan : request.orphans) made.unmended.push_back(orphan.child);
  for (const Stripe& stripe : request.plan->stripes) {
    for (const Edge& edge : stripe.edges) {
      if (is_lost(edge.parent)) made.unmended.push_back(edge.child);
    }
  }
  std::sort(made.unmended.begin(), made.unmended.end());
  made.unmended.erase(std::unique(made.unmended.begin(), made.unmended.end()), made.unmended.end());
  std::erase_if(made.unmended, [&](WorkerId worker) {
    return is_lost(worker) || std::find(request.readers.begin(), request.readers.end(), worker) ==
                                  request.readers.end();
  });
  return made;
}

}  // namespace holdfast::sim
