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

enum class Policy { Star, Chain, TwoTree, Hierarchical, Auto };

[[nodiscard]] const char* to_string(Policy policy);  // "star", "two_tree", ...
[[nodiscard]] std::vector<std::string> policy_names();
[[nodiscard]] Parsed<Policy> parse_policy(std::string_view name);

struct Planned {
  Plan plan;
  std::string planner;  // what made it: for `auto`, the policy that it chose
  Time predicted;       // by the cost model
};

// Throws Error(Unsupported) where no path joins some receiver to any holder.
// Near-linear in workers; deterministic: ties go to the lower id. `seed` is for policies that draw
// (none so far), so that it is part of the contract from the start.
[[nodiscard]] Planned make_plan(Policy policy, const Router& router, const Demand& demand,
                                std::uint64_t seed = 0);

}  // namespace holdfast
