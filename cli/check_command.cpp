#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/task.hpp"
#include "core/io/plan_json.hpp"
#include "core/io/printable.hpp"
#include "core/io/scenario_files.hpp"
#include "core/io/topology_reader.hpp"

namespace holdfast::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const PlanFile& file, const std::vector<Violation>& violations) {
  Json json;
  json["accepted"] = violations.empty();
  json["plan_hash"] = to_string(hash_of(file.plan));
  json["violations"] = Json::array();
  for (const Violation& violation : violations) {
    json["violations"].push_back({{"code", to_string(violation.code)},
                                  {"pointer", violation.pointer},
                                  {"message", violation.message}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string people_text(const CheckArguments& arguments, const PlanFile& file,
                        const std::vector<Violation>& violations) {
  if (violations.empty()) {
    return fmt::format("{}: accepted: {} stripes, {} edges, {} workers\n",
                       printable(arguments.plan), file.plan.stripes.size(), edges_of(file.plan),
                       file.demand.workers.size());
  }
  std::string text =
      fmt::format("{}: refused: {} violations\n", printable(arguments.plan), violations.size());
  for (const Violation& violation : violations) {
    text += printable(fmt::format("  {}: {} [{}]", violation.pointer, violation.message,
                                  to_string(violation.code))) +
            "\n";
  }
  return text;
}

// The machine to check against, and the demand if a scenario says it.
struct Reference {
  Topology topology;
  std::optional<Demand> demand;
};

Reference reference_of(const CheckArguments& arguments) {
  if (arguments.topology.empty() == arguments.scenario.empty()) {
    throw Error(ErrorCode::BadValue,
                "say which machine the plan is for, either with --topology or with --scenario (a "
                "scenario with 'other_traffic' leaves the plan less than its topology)",
                Place{"check", 0, 0, {}, {}});
  }
  if (!arguments.topology.empty()) {
    return {read_topology(arguments.topology), std::nullopt};
  }
  const LoadedScenario loaded = load_scenario(arguments.scenario);
  return {loaded.topology, make_demand(loaded.scenario, loaded.topology, loaded.manifest)};
}

// What only the command knows: where another machine than the named one may come from, and what
// the scenario wants.
void add_context(const CheckArguments& arguments, const Reference& reference, const PlanFile& file,
                 std::vector<Violation>& violations) {
  for (Violation& violation : violations) {
    if (violation.code == ViolationCode::WrongTopology && arguments.scenario.empty()) {
      violation.message +=
          "; a plan for a scenario with 'other_traffic' is checked with --scenario";
    }
  }
  if (reference.demand && hash_of(*reference.demand) != hash_of(file.demand)) {
    violations.push_back(
        {ViolationCode::WrongDemand, "/demand",
         fmt::format("this demand is {}, and the scenario's is {}: plan the scenario again",
                     to_string(hash_of(file.demand)), to_string(hash_of(*reference.demand)))});
  }
}

// A demand that breaks its own invariants is no input for the checker. Against the topology that
// the plan names this is malformed input; against another one it is one more sign of a wrong
// topology.
std::vector<Violation> check_file(const PlanFile& file, const Topology& topology) {
  try {
    validate(file, topology);
  } catch (const Error& error) {
    if (file.plan.topology == topology.hash()) {
      throw;
    }
    return {
        {ViolationCode::WrongTopology, "/plan/topology",
         fmt::format("the plan was made for topology {}, and this is {}: {}",
                     to_string(file.plan.topology), to_string(topology.hash()), error.message())}};
  }
  return check(file.plan, file.demand, Router(topology));
}

}  // namespace

ExitStatus check_plan(const CheckArguments& arguments) {
  const Reference reference = reference_of(arguments);
  const PlanFile file = read_plan(arguments.plan);
  std::vector<Violation> violations;
  try {
    violations = check_file(file, reference.topology);
    add_context(arguments, reference, file, violations);
  } catch (const Error& error) {
    // The reader knows where in the plan, not in which plan.
    Place place = error.place();
    place.file = place.file.empty() ? arguments.plan : place.file;
    throw Error(error.code(), error.message(), place);
  }
  print(arguments.json ? json_text(file, violations) : people_text(arguments, file, violations));
  return violations.empty() ? ExitStatus::Done : ExitStatus::Failed;
}

}  // namespace holdfast::cli
