#include "core/plan/planner.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/plan/cost_model.hpp"
#include "core/plan/flat_planners.hpp"
#include "core/plan/hierarchical.hpp"

namespace holdfast {
namespace {

constexpr std::array kNamed{std::pair{Policy::Star, "star"},
                            std::pair{Policy::Chain, "chain"},
                            std::pair{Policy::Binomial, "binomial"},
                            std::pair{Policy::TwoTree, "two_tree"},
                            std::pair{Policy::Hierarchical, "hierarchical"},
                            std::pair{Policy::Greedy, "greedy"},
                            std::pair{Policy::Auto, "auto"}};

Plan plan_by(Policy policy, const PlanSpace& space) {
  switch (policy) {
    case Policy::Star:
      return plan_star(space);
    case Policy::Chain:
      return plan_chain(space);
    case Policy::Binomial:
      return plan_binomial(space);
    case Policy::TwoTree:
      return plan_two_tree(space);
    case Policy::Greedy:
      throw Error(ErrorCode::Unsupported,
                  "greedy chooses sources while the update runs, so that there is no plan of it "
                  "beforehand; simulate it, or plan with another policy");
    case Policy::Hierarchical:
    case Policy::Auto:
      break;
  }
  return plan_hierarchical(space);
}

Planned planned(Policy policy, const PlanSpace& space) {
  Planned result{plan_by(policy, space), to_string(policy), {}};
  result.predicted = predict(result.plan, space.demand(), space.router()).makespan;
  return result;
}

}  // namespace

const char* to_string(Policy policy) {
  for (const auto& [value, name] : kNamed) {
    if (value == policy) return name;
  }
  return "unknown";
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& [value, name] : kNamed) names.emplace_back(name);
  return names;
}

Parsed<Policy> parse_policy(std::string_view name) {
  for (const auto& [value, known] : kNamed) {
    if (name == known) return value;
  }
  return tl::unexpected(
      fmt::format("'{}' is not a policy{}", name, suggestion(name, policy_names())));
}

const char* to_string(Objective objective) {
  return objective == Objective::Stall ? "stall" : "makespan";
}

Parsed<Objective> parse_objective(std::string_view name) {
  for (const Objective value : {Objective::Makespan, Objective::Stall}) {
    if (name == to_string(value)) return value;
  }
  return tl::unexpected(
      fmt::format("'{}' is not an objective{}", name, suggestion(name, {"makespan", "stall"})));
}

Planned make_plan(Policy policy, const Router& router, const Demand& demand,
                  [[maybe_unused]] const PlanOptions& options) {
  const PlanSpace space(router, demand);
  if (policy != Policy::Auto) return planned(policy, space);
  // On equal terms the planner that copes best with what the model leaves out comes first.
  constexpr std::array kCandidates{Policy::Hierarchical, Policy::TwoTree, Policy::Chain,
                                   Policy::Star};
  std::optional<Planned> best;
  for (const Policy candidate : kCandidates) {
    Planned next = planned(candidate, space);
    if (!best || next.predicted < best->predicted) best = std::move(next);
  }
  return std::move(*best);
}

}  // namespace holdfast
