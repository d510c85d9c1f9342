#include "core/io/scenario_faults.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/io/drawn.hpp"
#include "core/io/share.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostFaults = 10'000;
constexpr std::uint32_t kWhole = 1'000'000;
constexpr std::int64_t kMostUpdates = 10'000'000;

template <class E>
std::vector<std::pair<std::string, E>> words_for(const std::vector<E>& values) {
  std::vector<std::pair<std::string, E>> words;
  for (const E value : values) words.emplace_back(to_string(value), value);
  return words;
}

FaultKind read_kind(const YamlValue& value) {
  return value.one_of(words_for<FaultKind>({FaultKind::Worker, FaultKind::Host, FaultKind::Rack,
                                            FaultKind::Pod, FaultKind::Datacenter, FaultKind::Nic,
                                            FaultKind::Link, FaultKind::Coordinator}));
}

FaultAction read_action(const YamlValue& value, FaultKind kind) {
  const FaultAction action = value.one_of(
      words_for<FaultAction>({FaultAction::Kill, FaultAction::Down, FaultAction::Slow,
                              FaultAction::Flap, FaultAction::Partition, FaultAction::Crash}));
  if (!can(kind, action)) {
    std::string allowed;
    for (const FaultAction each : actions_of(kind)) {
      allowed += fmt::format("{}'{}'", allowed.empty() ? "" : ", ", to_string(each));
    }
    value.refuse(ErrorCode::BadValue, fmt::format("'{}' does not happen to a {}; write {}",
                                                  to_string(action), to_string(kind), allowed));
  }
  return action;
}

std::variant<AtTime, AtTransfer, AtRate> read_when(YamlMap& map) {
  const auto at = map.find("at");
  const auto transfer = map.find("at_transfer");
  const auto rate = map.find("rate");
  if (int{at.has_value()} + int{transfer.has_value()} + int{rate.has_value()} != 1) {
    map.value().refuse(at || transfer || rate ? ErrorCode::BadValue : ErrorCode::MissingKey,
                       "write exactly one of 'at: 2s', 'at_transfer: 50%' and 'rate: 0.5/h'");
  }
  if (!transfer) map.no_effect("update", "it says which update 'at_transfer' is about");
  if (at) return AtTime{at->time(Zero::Allowed)};
  if (rate) return AtRate{read_frequency(*rate)};
  AtTransfer when;
  when.share = read_share(*transfer, Zero::Allowed);
  if (when.share == kWhole) {
    transfer->refuse(ErrorCode::BadValue, "at 100% nothing is under way any more; write less");
  }
  if (const auto update = map.find("update")) {
    when.update = static_cast<std::uint32_t>(update->integer(1, kMostUpdates));
  }
  return when;
}

// `factor`, `period` and `duty`: each belongs to one action.
void read_strength(YamlMap& map, FaultRule& rule) {
  if (rule.action == FaultAction::Slow) {
    const YamlValue factor = map.require("factor");
    rule.share = read_share(factor, Zero::Refused);
    if (rule.share == kWhole) factor.refuse(ErrorCode::NoEffect, "100% is not slow; write less");
  } else {
    map.no_effect("factor", "only 'action: slow' leaves a share of the capacity");
  }
  if (rule.action != FaultAction::Flap) {
    map.no_effect("period", "only 'action: flap' has one");
    map.no_effect("duty", "only 'action: flap' has one");
    return;
  }
  const YamlValue period = map.require("period");
  rule.period = period.time(Zero::Refused);
  if (rule.period < microseconds(1)) {
    period.refuse(ErrorCode::BadValue, "write at least 1us");
  }
  rule.down_share = kWhole / 2;
  if (const auto duty = map.find("duty")) {
    rule.down_share = read_share(*duty, Zero::Refused);
    if (rule.down_share == kWhole) {
      duty->refuse(ErrorCode::BadValue, "100% is 'action: down'; write less");
    }
  }
}

void read_end(YamlMap& map, FaultRule& rule) {
  const bool stops = rule.action == FaultAction::Kill || rule.action == FaultAction::Crash;
  if (stops) {
    map.no_effect("duration", "what is killed or crashed comes back by 'restart_after'");
  } else {
    map.no_effect("restart_after", "nothing is stopped; 'duration' says how long it lasts");
  }
  if (const auto end = map.find(stops ? "restart_after" : "duration")) {
    rule.duration = end->time(Zero::Refused);
  }
}

ScenarioFault read_fault(const YamlValue& value) {
  ScenarioFault fault;
  fault.place = value.place();
  YamlMap map = value.map();
  FaultRule& rule = fault.rule;
  rule.kind = read_kind(map.require("kind"));
  rule.action = read_action(map.require("action"), rule.kind);
  if (rule.kind == FaultKind::Coordinator) {
    map.no_effect("target", "there is one coordinator");
  } else {
    fault.targets = read_patterns(map.require("target"));
  }
  rule.when = read_when(map);
  read_strength(map, rule);
  read_end(map, rule);
  map.finish();
  return fault;
}

// The names of everything of a kind, by id; empty where an id is something else.
std::vector<std::string_view> names_of(FaultKind kind, const Topology& topology) {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& things, const auto& wanted) {
    for (const auto& thing : things) {
      names.push_back(wanted(thing) ? std::string_view(thing.name) : std::string_view());
    }
  };
  const auto add_level = [&](Level level) {
    add(topology.domains(), [level](const Domain& domain) { return domain.level == level; });
  };
  switch (kind) {
    case FaultKind::Worker:
      add(topology.nodes(), [](const Node& node) { return is_endpoint(node.kind); });
      break;
    case FaultKind::Nic:
      add(topology.nodes(), [](const Node& node) { return node.kind == NodeKind::Nic; });
      break;
    case FaultKind::Link:
      add(topology.links(), [](const Link&) { return true; });
      break;
    case FaultKind::Host:
      add_level(Level::Host);
      break;
    case FaultKind::Rack:
      add_level(Level::Rack);
      break;
    case FaultKind::Pod:
      add_level(Level::Pod);
      break;
    case FaultKind::Datacenter:
      add_level(Level::Datacenter);
      break;
    case FaultKind::Coordinator:
      break;
  }
  return names;
}

std::vector<std::uint32_t> targets_of(const ScenarioFault& fault, const Topology& topology,
                                      std::vector<std::string>* warnings) {
  const char* const what = to_string(fault.rule.kind);
  const std::vector<std::string_view> names = names_of(fault.rule.kind, topology);
  std::vector<std::uint32_t> targets;
  for (const PlacedPattern& placed : fault.targets) {
    std::vector<std::string_view> matched;
    for (std::size_t id = 0; id < names.size(); ++id) {
      if (names[id].empty() || !placed.pattern.matches(names[id])) continue;
      matched.push_back(names[id]);
      targets.push_back(static_cast<std::uint32_t>(id));
    }
    if (matched.empty()) {
      std::vector<std::string> known;
      for (const std::string_view name : names) {
        if (!name.empty()) known.emplace_back(name);
      }
      if (known.empty()) {
        throw Error(ErrorCode::UnknownName, fmt::format("this topology has no {}", what),
                    placed.place);
      }
      refuse_unknown(placed, what, known);
    }
    warn_of_unused(placed, what, matched, warnings);
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

}  // namespace

std::vector<ScenarioFault> read_faults(const YamlValue& value) {
  const std::vector<YamlValue> items = value.list();
  if (items.empty()) {
    value.refuse(ErrorCode::BadValue,
                 "write at least one entry like '{kind: host, target: h0, action: kill, at: 2s}', "
                 "or leave the key away");
  }
  if (items.size() > kMostFaults) {
    value.refuse(ErrorCode::LimitExceeded,
                 fmt::format("{} entries; at most {} are read", items.size(), kMostFaults));
  }
  std::vector<ScenarioFault> faults;
  for (const YamlValue& item : items) faults.push_back(read_fault(item));
  return faults;
}

std::vector<FaultRule> rules_of(const std::vector<ScenarioFault>& faults, const Topology& topology,
                                std::vector<std::string>* warnings) {
  std::vector<FaultRule> rules;
  for (const ScenarioFault& fault : faults) {
    rules.push_back(fault.rule);
    rules.back().targets = targets_of(fault, topology, warnings);
  }
  return rules;
}

}  // namespace holdfast
