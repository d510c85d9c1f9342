// Planners: pure functions of (topology, demand, options, seed).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

enum class Policy {
  Star,
  Chain,
  Binomial,
  TwoTree,
  Hierarchical,
  Greedy,
  Nccl,  // baselines of other systems: baseline_planners.hpp
  Ucx,
  Store,  // push, then pull; no plan says it
  Auto
};

[[nodiscard]] const char* to_string(Policy policy);     // "star", "two_tree", ...
[[nodiscard]] std::vector<std::string> policy_names();  // of all
[[nodiscard]] Parsed<Policy> parse_policy(std::string_view name);

// What a plan is to keep short. Policies other than `auto` and `hierarchical` have one shape and do
// not look at it.
enum class Objective {
  Makespan,  // the last receiver's completion
  Stall,     // the sum over GPUs of their group's completion, then the makespan
};

[[nodiscard]] const char* to_string(Objective objective);  // "makespan", "stall"
[[nodiscard]] Parsed<Objective> parse_objective(std::string_view name);

// How policy `nccl` broadcasts. NCCL's own broadcast is a ring; its trees are for all-reduce.
enum class NcclAlgorithm { Ring, Tree };

[[nodiscard]] const char* to_string(NcclAlgorithm algorithm);  // "ring", "tree"

struct PlanOptions {
  std::uint64_t seed = 0;  // for policies that draw (none so far)
  Objective objective = Objective::Makespan;
  NcclAlgorithm nccl = NcclAlgorithm::Ring;
};

struct Planned {
  Plan plan;
  std::string planner;  // what made it: for `auto`, the policy that it chose
  Time predicted;       // by the cost model
};

// True for what decides while the update runs (greedy.hpp): there is no plan of it beforehand.
[[nodiscard]] constexpr bool is_online(Policy policy) {
  return policy == Policy::Greedy;
}

// True for what stands for another system. `all` leaves these out: name them.
[[nodiscard]] constexpr bool is_baseline(Policy policy) {
  return policy == Policy::Nccl || policy == Policy::Ucx || policy == Policy::Store;
}

// Throws Error(Unsupported) where no path joins some receiver to any holder, for policies that are
// online, and for `store`.
// Near-linear in workers; deterministic: ties go to the lower id.
[[nodiscard]] Planned make_plan(Policy policy, const Router& router, const Demand& demand,
                                const PlanOptions& options = {});

}  // namespace holdfast
