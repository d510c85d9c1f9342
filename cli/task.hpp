// What `simulate` and `plan` have in common: a loaded scenario, its demand, its bound and its
// plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/deployment.hpp"
#include "core/io/results.hpp"
#include "core/io/scenario_files.hpp"
#include "core/plan/checker.hpp"
#include "core/topology/router.hpp"

namespace holdfast::cli {

// Not movable: the router refers to the topology beside it.
struct Task {
  // Reads everything, computes the bound and adds its certificate up again. `policy` is what
  // --policy says; empty: what the scenario does. Throws Error for wrong input and std::logic_error
  // for a certificate that does not hold. `any`: also scenarios with workloads, faults or
  // retention; they have a deployment, and `update` is their largest update.
  Task(const std::string& scenario, const std::string& policy, bool any = false);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  LoadedScenario loaded;
  std::vector<Policy> policies;  // that were chosen
  std::optional<Deployment> deployment;
  UpdateTask update;
  Router router;
  Bound bound;
  Hash128 demand_hash;
  std::vector<std::string> warnings;

  [[nodiscard]] ResultsContext context() const;
};

// A plan that the checker has accepted. `refused` lists what it found wrong otherwise: our mistake.
struct CheckedPlan {
  Planned planned;
  std::vector<Violation> refused;
};
[[nodiscard]] CheckedPlan make_checked_plan(const Task& task, Policy policy, std::uint64_t seed);

// What the checker found, to stderr; at most 20 of it.
void print_refused(Policy policy, const std::vector<Violation>& refused);

[[nodiscard]] std::uint64_t edges_of(const Plan& plan);

// Lines for people: what is moved where, and what limits it.
[[nodiscard]] std::string heading(const Task& task);
[[nodiscard]] std::string describe_bound(const Task& task);
// "98.7 %", or "-" for nothing.
[[nodiscard]] std::string percent(const std::optional<double>& share);

}  // namespace holdfast::cli
