#include "core/plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/plan/baseline_planners.hpp"
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
                            std::pair{Policy::Nccl, "nccl"},
                            std::pair{Policy::Ucx, "ucx"},
                            std::pair{Policy::Store, "store"},
                            std::pair{Policy::Auto, "auto"}};

struct Candidate {
  Plan plan;
  const char* planner = "";
  Time makespan;
  double stall = 0;
};

// Appends the policy's plans; `auto` has none of its own.
void add_candidates(Policy policy, const PlanSpace& space, const PlanOptions& options,
                    std::vector<Candidate>& candidates) {
  const auto add = [&](Plan plan) {
    const Prediction prediction = predict(plan, space.demand(), space.router());
    candidates.push_back(
        {std::move(plan), to_string(policy), prediction.makespan, prediction.stall});
  };
  switch (policy) {
    case Policy::Star:
      return add(plan_star(space));
    case Policy::Chain:
      return add(plan_chain(space));
    case Policy::Binomial:
      return add(plan_binomial(space));
    case Policy::TwoTree:
      return add(plan_two_tree(space));
    case Policy::Greedy:
      throw Error(ErrorCode::Unsupported,
                  "greedy chooses sources while the update runs, so that there is no plan of it "
                  "beforehand; simulate it, or plan with another policy");
    case Policy::Nccl:
      return add(plan_nccl(space, options.nccl));
    case Policy::Ucx:
      return add(plan_ucx(space));
    case Policy::Store:
      throw Error(
          ErrorCode::Unsupported,
          "store pushes all bytes to a store and pulls them from there, which is no plan of "
          "one update; name another policy");
    case Policy::Hierarchical:
      for (CandidatePlan& c : hierarchical_candidates(space)) {
        candidates.push_back(
            {std::move(c.plan), to_string(policy), c.prediction.makespan, c.prediction.stall});
      }
      return;
    case Policy::Auto:
      return;
  }
}

// Of the plans that are as short as any, give or take one in a hundred, the one that makes GPUs
// wait least; or the other way round. That much the model cannot tell, and a fast group that waits
// for a slow one costs far more. On equal terms the first.
Candidate& best_of(std::vector<Candidate>& candidates, Objective objective) {
  constexpr double kTolerance = 1.01;
  const auto first = [&](const Candidate& c) {
    return objective == Objective::Stall ? c.stall : c.makespan.seconds();
  };
  const auto second = [&](const Candidate& c) {
    return objective == Objective::Stall ? c.makespan.seconds() : c.stall;
  };
  double least = first(candidates.front());
  for (const Candidate& c : candidates) least = std::min(least, first(c));
  Candidate* best = nullptr;
  for (Candidate& c : candidates) {
    if (first(c) > least * kTolerance) continue;
    if (best == nullptr || second(c) < second(*best)) best = &c;
  }
  return *best;
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

const char* to_string(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::Ring ? "ring" : "tree";
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
                  const PlanOptions& options) {
  const PlanSpace space(router, demand);
  std::vector<Candidate> candidates;
  if (policy == Policy::Auto) {
    // On equal terms the planner that copes best with what the model leaves out comes first.
    for (const Policy each : {Policy::Hierarchical, Policy::TwoTree, Policy::Chain, Policy::Star}) {
      add_candidates(each, space, options, candidates);
    }
  } else {
    add_candidates(policy, space, options, candidates);
  }
  Candidate& best = best_of(candidates, options.objective);
  return {std::move(best.plan), best.planner, best.makespan};
}

}  // namespace holdfast
