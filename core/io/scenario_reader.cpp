// The scenario as a whole: its keys, and what they mean to each other.
#include <algorithm>

#include <fmt/format.h>

#include "core/io/scenario.hpp"
#include "core/io/scenario_detail.hpp"
#include "core/io/share.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {
namespace {

using scenario_detail::NameIndex;

// Millionths. A block that takes no time, or less, would be none.
constexpr std::uint32_t kMostJitter = 900'000;
constexpr std::uint32_t kMostReaders = 65'536;  // of one source, as `reader_cap`

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

std::vector<std::pair<std::string, Destination>> destinations() {
  return {{to_string(Destination::InPlace), Destination::InPlace},
          {to_string(Destination::Shadow), Destination::Shadow}};
}

// Nothing: without a limit.
std::optional<std::uint32_t> read_reader_cap(const YamlValue& value) {
  const std::string text = value.text();
  if (text == "none") return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string::npos) {
    value.refuse(ErrorCode::BadValue,
                 fmt::format("it is a whole number from 1 to {}, or none", kMostReaders));
  }
  return static_cast<std::uint32_t>(value.integer(1, kMostReaders));
}

ScenarioOptions read_options(YamlMap& map) {
  ScenarioOptions options;
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
    options.reader_cap = read_reader_cap(*cap);
    options.cap_place = cap->place();
  }
  refuse_later(map, "window", "set the window of edges by hand");
  return options;
}

// `destination` in `options` is that of a workload's fetches; an update has its own key.
void read_destination(YamlMap& options, Scenario& scenario) {
  if (!scenario.workload) {
    options.no_effect("destination", "write it in 'update'");
  } else if (const auto destination = options.find("destination")) {
    scenario.update.destination = destination->one_of<Destination>(destinations());
  }
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
    update.destination = destination->one_of<Destination>(destinations());
  }
  map.finish();
  return update;
}

// The largest update of a workload, which sizes its demand: all trainers hold, all others receive.
void stand_in(Scenario& scenario) {
  const ScenarioWorkload& workload = *scenario.workload;
  scenario.holders_place = workload.place;
  scenario.update.place = workload.place;
  for (const NamedGroup& trainer : workload.trainers) {
    ScenarioHolder holder;
    holder.group = trainer.group;
    holder.place = trainer.place;
    holder.replicas_place = trainer.place;
    scenario.holders.push_back(std::move(holder));
  }
  for (const auto* groups : {&workload.rollouts, &workload.staging}) {
    for (const NamedGroup& named : *groups) {
      scenario.update.receivers.push_back({named.group, named.place});
    }
  }
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
    YamlMap keys = options->map();
    scenario.options = read_options(keys);
    const std::optional<ScenarioRetain> retain = scenario.protocol.retain;
    scenario.protocol = scenario_detail::read_protocol(keys);
    scenario.protocol.retain = retain;
    read_destination(keys, scenario);
    keys.finish();
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

void warn_of_protocol(Scenario& scenario) {
  for (const auto& [key, place] : scenario.protocol.written) {
    if (!is_more_than_an_update(scenario)) {
      scenario.warnings.push_back(
          fmt::format("{}: '{}' has no effect: one update without 'faults' or 'retain' does not "
                      "need the protocol",
                      to_string(place), key));
    } else if (key == "host_memory_budget" && !scenario.protocol.retain) {
      scenario.warnings.push_back(fmt::format(
          "{}: '{}' has no effect: nothing is kept without 'retain'", to_string(place), key));
    }
  }
}

// What is well-formed and would change nothing.
void warn(Scenario& scenario) {
  warn_of_protocol(scenario);
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
      if (scenario.options.serve_from_spot && !is_more_than_an_update(scenario)) {
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

// What moves: one update of what the holders hold, or what a workload publishes and fetches.
void read_task(YamlMap& map, const NameIndex& names, Scenario& scenario) {
  const auto update = map.find("update");
  const auto workload = map.find("workload");
  if (update && workload) {
    workload->refuse(ErrorCode::BadValue, "'update' is given as well; write only one of them");
  }
  if (!update && !workload) {
    map.value().refuse(ErrorCode::MissingKey,
                       "write either 'update: {receivers: [...]}', for one update, or 'workload: "
                       "{kind: ...}', for a training run");
  }
  if (update) {
    const YamlValue holders = map.require("holders");
    scenario.holders = scenario_detail::read_holders(holders, names);
    scenario.holders_place = holders.place();
    scenario.update = read_update(*update, names);
  } else {
    map.no_effect("holders", "the trainers of a workload hold what they publish");
    scenario.workload = scenario_detail::read_workload(*workload, names, scenario.groups);
    stand_in(scenario);
  }
  if (const auto faults = map.find("faults")) scenario.faults = read_faults(*faults);
  if (const auto retain = map.find("retain")) {
    scenario.protocol.retain = scenario_detail::read_retain(*retain);
  }
  if (const auto baselines = map.find("baselines")) {
    scenario.baselines = scenario_detail::read_baselines(*baselines);
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
  read_task(map, names, scenario);
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
  const ScenarioBaselines& baselines = scenario.baselines;
  for (const auto& [policy, place] :
       {std::pair{Policy::Nccl, baselines.nccl.place}, std::pair{Policy::Ucx, baselines.ucx.place},
        std::pair{Policy::Store, baselines.store.place}}) {
    if (place && std::find(policies.begin(), policies.end(), policy) == policies.end()) {
      warnings.push_back(fmt::format("{}: '{}' has no effect: the policy of that name does not run",
                                     to_string(*place), to_string(policy)));
    }
  }
  return warnings;
}

bool draws(const Scenario& scenario) {
  const bool rates = std::any_of(
      scenario.faults.begin(), scenario.faults.end(),
      [](const ScenarioFault& fault) { return std::holds_alternative<AtRate>(fault.rule.when); });
  return scenario.options.jitter > 0 || scenario.workload || rates;
}

bool is_more_than_an_update(const Scenario& scenario) {
  return scenario.workload || !scenario.faults.empty() || scenario.protocol.retain;
}

void refuse_more_than_an_update(const Scenario& scenario) {
  const char* what = nullptr;
  Place place;
  if (scenario.workload) {
    what = "a workload";
    place = scenario.workload->place;
  } else if (!scenario.faults.empty()) {
    what = "faults";
    place = scenario.faults.front().place;
  } else if (scenario.protocol.retain) {
    what = "versions that are retained";
    place = scenario.protocol.retain->place;
  } else {
    return;
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("this is about one update without failures, and the scenario has {}; "
                          "'holdfast simulate' runs it",
                          what),
              std::move(place));
}

std::vector<Policy> policies_of(const std::vector<Word>& names) {
  std::vector<Policy> policies;
  for (const Word& name : names) {
    std::vector<std::string> wanted = {name.text};
    if (name.text == "all") {
      wanted = policy_names();
      std::erase_if(wanted,
                    [](const std::string& each) { return is_baseline(*parse_policy(each)); });
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
