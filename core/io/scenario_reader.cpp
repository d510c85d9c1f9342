// The scenario as a whole: its keys, and what they mean to each other.
#include <algorithm>

#include <fmt/format.h>

#include "core/io/scenario.hpp"
#include "core/io/scenario_groups.hpp"
#include "core/io/share.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {
namespace {

using scenario_detail::NameIndex;

// Millionths. A block that takes no time, or less, would be none.
constexpr std::uint32_t kMostJitter = 900'000;

void refuse_later(YamlMap& map, std::string_view key, std::string_view what) {
  if (const auto value = map.find(key)) {
    value->refuse(ErrorCode::Unsupported,
                  fmt::format("this version cannot {} yet; leave the key away", what));
  }
}

ScenarioModel read_model(const YamlValue& value) {
  YamlMap map = value.map();
  const auto preset = map.find("preset");
  const auto file = map.find("safetensors");
  map.finish();
  if (preset.has_value() == file.has_value()) {
    value.refuse(preset ? ErrorCode::BadValue : ErrorCode::MissingKey,
                 "write either 'preset: NAME' or 'safetensors: PATH'");
  }
  return preset ? ScenarioModel{ModelSource::Preset, {preset->name(), preset->place()}}
                : ScenarioModel{ModelSource::Safetensors, {file->text(), file->place()}};
}

ScenarioOptions read_options(const YamlValue& value) {
  ScenarioOptions options;
  YamlMap map = value.map();
  const auto size = map.find("block_size");
  const auto pieces = map.find("blocks_per_eighth");
  if (size && pieces) {
    pieces->refuse(ErrorCode::BadValue, "'block_size' is given as well; write only one of them");
  }
  if (size) {
    options.block_size = size->bytes(Zero::Refused);
    options.block_place = size->place();
  }
  if (pieces) {
    options.blocks_per_eighth = static_cast<std::uint32_t>(pieces->integer(1, 1'000'000));
    options.block_place = pieces->place();
  }
  if (const auto serve = map.find("serve_from_spot")) {
    options.serve_from_spot = serve->boolean();
    options.serve_place = serve->place();
  }
  if (const auto objective = map.find("objective")) {
    options.objective =
        objective->one_of<Objective>({{to_string(Objective::Makespan), Objective::Makespan},
                                      {to_string(Objective::Stall), Objective::Stall}});
    options.objective_place = objective->place();
  }
  if (const auto jitter = map.find("jitter")) {
    options.jitter = read_share(*jitter, Zero::Allowed);
    if (options.jitter > kMostJitter) {
      jitter->refuse(ErrorCode::BadValue, "block times vary by at most 90% to either side");
    }
  }
  if (const auto cap = map.find("reader_cap")) {
    options.reader_cap = cap->one_of<std::optional<std::uint32_t>>(
        {{"1", 1U}, {"2", 2U}, {"4", 4U}, {"none", std::nullopt}});
    options.cap_place = cap->place();
  }
  refuse_later(map, "window", "set the window of edges by hand");
  refuse_later(map, "planning_time", "model the time that planning takes");
  refuse_later(map, "detection", "detect failures");
  map.finish();
  return options;
}

std::vector<Policy> read_policies(const YamlValue& value) {
  std::vector<Word> names;
  if (value.is_list()) {
    for (const YamlValue& item : value.list()) {
      names.push_back({item.name(), item.place()});
    }
    if (names.empty()) {
      value.refuse(ErrorCode::BadValue, "name at least one policy");
    }
  } else {
    names.push_back({value.name(), value.place()});
  }
  return policies_of(names);
}

ScenarioUpdate read_update(const YamlValue& value, const NameIndex& groups) {
  ScenarioUpdate update;
  update.place = value.place();
  YamlMap map = value.map();
  const YamlValue receivers = map.require("receivers");
  std::vector<YamlValue> items;
  if (receivers.is_list()) {
    items = receivers.list();
  } else {
    items.push_back(receivers);
  }
  if (items.empty()) {
    receivers.refuse(ErrorCode::BadValue, "name at least one group that receives the version");
  }
  std::vector<char> named(groups.size(), 0);
  for (const YamlValue& item : items) {
    const std::size_t group = groups.find(item);
    if (named[group] != 0) {
      item.refuse(ErrorCode::Duplicate,
                  fmt::format("group '{}' is listed twice; name it once", item.name()));
    }
    named[group] = 1;
    update.receivers.push_back({group, item.place()});
  }
  if (const auto destination = map.find("destination")) {
    update.destination = destination->one_of<Destination>(
        {{"in_place", Destination::InPlace}, {"shadow", Destination::Shadow}});
  }
  map.finish();
  return update;
}

std::vector<std::string> read_assumptions(const YamlValue& value) {
  std::vector<std::string> assumptions;
  for (const YamlValue& item : value.list()) {
    assumptions.push_back(item.text());
  }
  return assumptions;
}

void read_run(YamlMap& map, Scenario& scenario) {
  if (const auto policy = map.find("policy")) {
    scenario.policies = read_policies(*policy);
  } else {
    scenario.policies = {Policy::Auto};
  }
  scenario.options.block_place = map.place();
  if (const auto options = map.find("options")) {
    scenario.options = read_options(*options);
    if (scenario.options.block_place.line == 0) {
      scenario.options.block_place = options->place();
    }
  }
  if (const auto verify = map.find("verify")) {
    scenario.verify = verify->boolean();
  }
  if (const auto seed = map.find("seed")) {
    scenario.seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int64_t>::max()));
    if (!draws(scenario)) {
      scenario.warnings.push_back(to_string(seed->place()) +
                                  ": 'seed' has no effect: nothing draws random numbers here; "
                                  "'options: {jitter: 5%}' would");
    }
  }
  if (const auto assumptions = map.find("assumptions")) {
    scenario.assumptions = read_assumptions(*assumptions);
  }
}

// What is well-formed and would change nothing.
void warn(Scenario& scenario) {
  std::vector<char> used(scenario.groups.size(), 0);
  for (const ScenarioHolder& holder : scenario.holders) {
    used[holder.group] = 1;
  }
  for (const ScenarioReceiver& receiver : scenario.update.receivers) {
    used[receiver.group] = 1;
  }
  std::vector<char> layout_used(scenario.layouts.size(), 0);
  bool spot = false;
  for (std::size_t g = 0; g < used.size(); ++g) {
    const ScenarioGroup& group = scenario.groups[g];
    layout_used[group.layout] = 1;
    if (used[g] == 0) {
      scenario.warnings.push_back(
          fmt::format("{}: group '{}' has no effect: it neither holds nor receives the version",
                      to_string(group.name.place), group.name.text));
      continue;
    }
    if (group.reliability == Reliability::Spot) {
      spot = true;
      if (scenario.options.serve_from_spot) {
        scenario.warnings.push_back(
            fmt::format("{}: 'reliability: spot' of group '{}' has no effect: nothing fails in "
                        "this scenario; 'options: {{serve_from_spot: false}}' keeps readers away",
                        to_string(group.name.place), group.name.text));
      }
    }
  }
  for (std::size_t i = 0; i < layout_used.size(); ++i) {
    if (layout_used[i] == 0) {
      scenario.warnings.push_back(fmt::format("{}: layout '{}' has no effect: no group uses it",
                                              to_string(scenario.layouts[i].name.place),
                                              scenario.layouts[i].name.text));
    }
  }
  if (scenario.options.serve_place && !spot) {
    scenario.warnings.push_back(to_string(*scenario.options.serve_place) +
                                ": 'serve_from_spot' has no effect: no group is on spot machines");
  }
}

void read_format(YamlMap& map) {
  const YamlValue format = map.require("format");
  const std::int64_t number = format.integer(0, std::numeric_limits<std::int64_t>::max());
  if (number != static_cast<std::int64_t>(kScenarioFormat)) {
    format.refuse(ErrorCode::Unsupported,
                  fmt::format("format {} is not read by this version; it reads format {}", number,
                              kScenarioFormat));
  }
}

}  // namespace

Scenario parse_scenario(std::string_view text, const std::string& file) {
  const YamlDocument document = YamlDocument::parse(text, file);
  YamlMap map = document.root().map();
  Scenario scenario;
  scenario.file = file;
  read_format(map);
  scenario.name = map.require("name").name();
  if (const auto teaches = map.find("teaches")) {
    scenario.teaches = teaches->text();
  }
  const YamlValue topology = map.require("topology");
  scenario.topology = {topology.text(), topology.place()};
  scenario.model = read_model(map.require("model"));
  scenario.layouts = scenario_detail::read_layouts(map.require("layouts"));
  scenario.groups = scenario_detail::read_groups(map.require("groups"), scenario.layouts);
  const NameIndex names = scenario_detail::index_of(scenario.groups);
  const YamlValue holders = map.require("holders");
  scenario.holders = scenario_detail::read_holders(holders, names);
  scenario.holders_place = holders.place();
  refuse_later(map, "workload", "run workloads");
  refuse_later(map, "faults", "inject faults");
  scenario.update = read_update(map.require("update"), names);
  if (const auto traffic = map.find("other_traffic")) {
    scenario.other_traffic = read_other_traffic(*traffic);
  }
  read_run(map, scenario);
  map.finish();
  warn(scenario);
  return scenario;
}

std::vector<std::string> idle_options(const Scenario& scenario,
                                      const std::vector<Policy>& policies) {
  std::vector<std::string> warnings;
  const bool chooses = std::any_of(policies.begin(), policies.end(), [](Policy policy) {
    return policy == Policy::Auto || policy == Policy::Hierarchical;
  });
  const ScenarioOptions& options = scenario.options;
  if (options.objective != Objective::Makespan && !chooses) {
    warnings.push_back(
        to_string(*options.objective_place) +
        ": 'objective' has no effect: only the policies auto and hierarchical look at it");
  }
  const bool greedy = std::find(policies.begin(), policies.end(), Policy::Greedy) != policies.end();
  if (options.cap_place && !greedy) {
    warnings.push_back(to_string(*options.cap_place) +
                       ": 'reader_cap' has no effect: only the policy greedy looks at it");
  }
  return warnings;
}

bool draws(const Scenario& scenario) {
  return scenario.options.jitter > 0;
}

std::vector<Policy> policies_of(const std::vector<Word>& names) {
  std::vector<Policy> policies;
  for (const Word& name : names) {
    std::vector<std::string> wanted = {name.text};
    if (name.text == "all") {
      wanted = policy_names();
    }
    for (const std::string& text : wanted) {
      const Parsed<Policy> policy = parse_policy(text);
      if (!policy) {
        throw Error(ErrorCode::UnknownName, policy.error(), name.place);
      }
      if (std::find(policies.begin(), policies.end(), *policy) == policies.end()) {
        policies.push_back(*policy);
      } else if (name.text != "all") {
        throw Error(ErrorCode::Duplicate, fmt::format("policy '{}' is named twice", text),
                    name.place);
      }
    }
  }
  return policies;
}

const Place& ScenarioLayout::place_of(LayoutKey key) const {
  const auto at =
      std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == key; });
  return at == places.end() ? name.place : at->second;
}

const char* to_string(Role role) {
  return role == Role::Trainer ? "trainer" : "rollout";
}

const char* to_string(Destination destination) {
  return destination == Destination::InPlace ? "in_place" : "shadow";
}

}  // namespace holdfast
