// The subcommands. Each prints its answer to stdout and may throw Error, which means wrong input
// unless the command has caught it itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"

namespace holdfast::cli {

struct SimulateArguments {
  std::string scenario;
  std::string policy;  // empty: what the scenario says
  std::optional<std::uint64_t> seed;
  std::string out;  // empty: writes no files
  std::string trace = "worker";
  bool json = false;
  bool force = false;  // traces blocks even where that makes huge files
};
[[nodiscard]] ExitStatus simulate(const SimulateArguments& arguments);

struct PlanArguments {
  std::string scenario;
  std::string policy;
  std::string out;  // empty: writes no plan
  bool json = false;
};
[[nodiscard]] ExitStatus plan(const PlanArguments& arguments);

struct CheckArguments {
  std::string plan;
  std::string topology;  // of the two exactly one is given
  std::string scenario;
  bool json = false;
};
[[nodiscard]] ExitStatus check_plan(const CheckArguments& arguments);

struct CompareArguments {
  std::vector<std::string> folders;
  std::size_t top = 5;  // links of each run to show
  bool json = false;
};
[[nodiscard]] ExitStatus compare_results(const CompareArguments& arguments);

struct RunArguments {
  std::string scenario;
  std::string policy;  // empty: what the scenario says
  bool local = false;  // every worker a process of this machine
  std::string transport = "tcp";
  bool json = false;
  bool deliveries = false;  // with JSON: every (update, receiver, block, source)
};
[[nodiscard]] ExitStatus run_scenario(const RunArguments& arguments);

// What `run --local` starts; for nobody else.
struct LocalWorkerArguments {
  std::string scenario;
  std::uint32_t worker = 0;
  std::string coordinator;
};
[[nodiscard]] ExitStatus local_worker(const LocalWorkerArguments& arguments);

struct TopoArguments {
  std::string file;
  bool json = false;
  bool dot = false;  // Graphviz instead of a summary
};
[[nodiscard]] ExitStatus show_topology(const TopoArguments& arguments);

struct FuzzArguments {
  std::string seeds = "0..199";       // "A..B" or one
  std::optional<std::string> replay;  // a recipe instead of seeds
  std::uint32_t jobs = 1;             // processes
  bool story = false;                 // of one seed or recipe
  bool first = false;                 // ends at the first failure and does not shrink it
  bool cells = false;                 // prints the tables of (state x event)
  bool json = false;
};
[[nodiscard]] ExitStatus fuzz(const FuzzArguments& arguments);

}  // namespace holdfast::cli
