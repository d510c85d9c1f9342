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
  std::string text = fmt::format("{}: refused: {} violation{}\n", printable(arguments.plan),
                                 violations.size(), violations.size() == 1 ? "" : "s");
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

// A plan file knows its topology by hash alone. Against another one nothing else in it means
// anything: its node and port numbers are those of its own.
Violation wrong_topology(const CheckArguments& arguments, const PlanFile& file,
                         const Topology& topology) {
  return {ViolationCode::WrongTopology, "/plan/topology",
          fmt::format("the plan was made for topology {}, and this is '{}', {}{}",
                      to_string(file.plan.topology), topology.name(), to_string(topology.hash()),
                      arguments.scenario.empty()
                          ? "; name that topology, or plan again (a plan for a scenario with "
                            "'other_traffic' is checked with --scenario)"
                          : " with the scenario's 'other_traffic' taken off, which may differ from "
                            "what it was: plan the scenario again")};
}

std::vector<Violation> violations_of(const CheckArguments& arguments, const Reference& reference,
                                     const PlanFile& file) {
  if (file.plan.topology != reference.topology.hash()) {
    return {wrong_topology(arguments, file, reference.topology)};
  }
  validate(file, reference.topology);
  std::vector<Violation> violations = check(file.plan, file.demand, Router(reference.topology));
  if (reference.demand && hash_of(*reference.demand) != hash_of(file.demand)) {
    violations.push_back(
        {ViolationCode::WrongDemand, "/demand",
         fmt::format("this demand is {}, and the scenario's is {}: plan the scenario again",
                     to_string(hash_of(file.demand)), to_string(hash_of(*reference.demand)))});
  }
  return violations;
}

}  // namespace

ExitStatus check_plan(const CheckArguments& arguments) {
  const Reference reference = reference_of(arguments);
  const PlanFile file = read_plan(arguments.plan);
  std::vector<Violation> violations;
  try {
    violations = violations_of(arguments, reference, file);
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
