#include "core/io/scenario_detail.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/io/pattern_list.hpp"
#include "core/io/share.hpp"
#include "core/nearest.hpp"

namespace holdfast::scenario_detail {
namespace {

constexpr std::int64_t kMostReplicas = 1'000'000;
constexpr std::size_t kMostLayouts = 64;
constexpr std::size_t kMostHolders = 10'000;

void add_patterns(const YamlValue& value, GroupPlacement& placement) {
  for (PlacedPattern& placed : read_patterns(value)) {
    placement.patterns.push_back(std::move(placed.pattern));
    placement.pattern_places.push_back(std::move(placed.place));
  }
  placement.place = placement.pattern_places.front();
}

GroupPlacement read_placement(const YamlValue& value) {
  YamlMap map = value.map();
  const auto hosts = map.find("hosts");
  const auto gpus = map.find("gpus");
  const auto memory = map.find("host_memory");
  map.finish();
  if (int{hosts.has_value()} + int{gpus.has_value()} + int{memory.has_value()} != 1) {
    value.refuse(ErrorCode::BadValue,
                 "write exactly one of 'hosts: [...]', 'gpus: [...]' and 'host_memory: [...]'");
  }
  GroupPlacement placement;
  placement.on = memory ? PlacedOn::HostMemory : PlacedOn::Gpus;
  placement.by_node = gpus.has_value();
  add_patterns(hosts ? *hosts : gpus ? *gpus : *memory, placement);
  return placement;
}

ScenarioGroup read_group(Word name, YamlMap& map, const NameIndex& layouts) {
  ScenarioGroup group;
  group.name = std::move(name);
  group.placement = read_placement(map.require("place"));
  group.layout = layouts.find(map.require("layout"));
  if (const auto role = map.find("role")) {
    group.role = role->one_of<Role>({{"trainer", Role::Trainer}, {"rollout", Role::Rollout}});
  }
  if (const auto reliability = map.find("reliability")) {
    group.reliability = reliability->one_of<Reliability>(
        {{"reliable", Reliability::Reliable}, {"spot", Reliability::Spot}});
  }
  if (const auto replicas = map.find("replicas")) {
    group.replicas_place = replicas->place();
    if (!replicas->is_scalar() || replicas->text() != "all") {
      group.replicas = static_cast<std::uint32_t>(replicas->integer(1, kMostReplicas));
    }
  }
  map.finish();
  return group;
}

HeldPart read_part(const YamlValue& value) {
  YamlMap map = value.map();
  const auto first = map.find("first");
  const auto last = map.find("last");
  map.finish();
  if (first.has_value() == last.has_value()) {
    value.refuse(ErrorCode::BadValue, "write either 'first: SHARE' or 'last: SHARE'");
  }
  const YamlValue& written = first ? *first : *last;
  const std::uint32_t share = read_share(written, Zero::Refused);
  if (share == 1'000'000) {
    written.refuse(ErrorCode::NoEffect, "100% is all that the shard holds; leave 'part' away");
  }
  return {last.has_value(), share};
}

ScenarioLayout read_layout(Word name, const YamlValue& body) {
  ScenarioLayout layout;
  layout.name = std::move(name);
  layout.layout.name = layout.name.text;
  YamlMap map = body.map();
  const auto read = [&](LayoutKey key, const YamlValue& value) {
    layout.places.emplace_back(key, value.place());
    return static_cast<std::uint32_t>(value.integer(1, 4'096));
  };
  layout.layout.tensor_parallel = read(LayoutKey::TensorParallel, map.require("tensor_parallel"));
  if (const auto stages = map.find("pipeline_parallel")) {
    layout.layout.pipeline_parallel = read(LayoutKey::PipelineParallel, *stages);
  }
  if (const auto ranks = map.find("expert_parallel")) {
    layout.layout.expert_parallel = read(LayoutKey::ExpertParallel, *ranks);
  } else {
    map.no_effect("expert_tensor_parallel", "there is no 'expert_parallel'");
  }
  if (const auto cuts = map.find("expert_tensor_parallel")) {
    layout.layout.expert_tensor_parallel = read(LayoutKey::ExpertTensorParallel, *cuts);
  }
  map.finish();
  if (const auto fault = fault_of(layout.layout)) {
    throw Error(fault->code, fault->message, layout.place_of(fault->key));
  }
  return layout;
}

std::vector<std::uint32_t> read_numbers(const YamlValue& value) {
  if (value.is_scalar() && value.text() == "all") {
    return {};
  }
  if (!value.is_list()) {
    value.refuse(ErrorCode::BadValue, "write 'all' or a list of replica numbers like [0, 3]");
  }
  std::vector<std::uint32_t> numbers;
  for (const YamlValue& item : value.list()) {
    numbers.push_back(static_cast<std::uint32_t>(item.integer(0, kMostReplicas)));
  }
  if (numbers.empty()) {
    value.refuse(ErrorCode::BadValue, "name at least one replica");
  }
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
    value.refuse(ErrorCode::Duplicate, "a replica is named twice");
  }
  return numbers;
}

ScenarioHolder read_holder(const YamlValue& value, const NameIndex& groups) {
  ScenarioHolder holder;
  holder.place = value.place();
  if (value.is_scalar()) {
    holder.group = groups.find(value);
    return holder;
  }
  YamlMap map = value.map();
  holder.group = groups.find(map.require("group"));
  if (const auto replicas = map.find("replicas")) {
    holder.replicas = read_numbers(*replicas);
    holder.replicas_place = replicas->place();
  }
  if (const auto part = map.find("part")) {
    holder.part = read_part(*part);
  }
  map.finish();
  return holder;
}

}  // namespace

NameIndex::NameIndex(std::string kind, std::vector<std::string> names)
    : kind_(std::move(kind)), names_(std::move(names)) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    index_.emplace(names_[i], i);
  }
}

std::size_t NameIndex::find(const YamlValue& value) const {
  const std::string name = value.name();
  const auto found = index_.find(name);
  if (found == index_.end()) {
    value.refuse(ErrorCode::UnknownName,
                 fmt::format("no {} is called '{}'{}", kind_, name, suggestion(name, names_)));
  }
  return found->second;
}

NameIndex index_of(const std::vector<ScenarioGroup>& groups) {
  std::vector<std::string> names;
  for (const ScenarioGroup& group : groups) {
    names.push_back(group.name.text);
  }
  return {"group", std::move(names)};
}

std::vector<ScenarioLayout> read_layouts(const YamlValue& value) {
  std::vector<ScenarioLayout> layouts;
  YamlMap map = value.map();
  for (const auto& [key, body] : map.entries()) {
    layouts.push_back(read_layout({key.name(), key.place()}, body));
  }
  if (layouts.size() > kMostLayouts) {
    value.refuse(ErrorCode::LimitExceeded,
                 fmt::format("{} layouts; at most {} are read", layouts.size(), kMostLayouts));
  }
  if (layouts.empty()) {
    value.refuse(ErrorCode::BadValue, "name at least one layout, like 'tp8: {tensor_parallel: 8}'");
  }
  return layouts;
}

std::vector<ScenarioGroup> read_groups(const YamlValue& value,
                                       const std::vector<ScenarioLayout>& all_layouts) {
  std::vector<std::string> layout_names;
  for (const ScenarioLayout& layout : all_layouts) {
    layout_names.push_back(layout.name.text);
  }
  const NameIndex layouts("layout", std::move(layout_names));
  std::vector<ScenarioGroup> groups;
  if (value.is_list()) {
    std::unordered_map<std::string, int> lines;
    for (const YamlValue& item : value.list()) {
      YamlMap map = item.map();
      const YamlValue name = map.require("name");
      const auto [before, fresh] = lines.emplace(name.name(), name.place().line);
      if (!fresh) {
        name.refuse(ErrorCode::Duplicate,
                    fmt::format("a group called '{}' stands in line {} already", before->first,
                                before->second));
      }
      groups.push_back(read_group({name.name(), name.place()}, map, layouts));
    }
  } else {
    YamlMap map = value.map();
    for (const auto& [key, body] : map.entries()) {
      YamlMap group = body.map();
      groups.push_back(read_group({key.name(), key.place()}, group, layouts));
    }
  }
  if (groups.empty()) {
    value.refuse(ErrorCode::BadValue, "name at least one group");
  }
  return groups;
}

std::vector<ScenarioHolder> read_holders(const YamlValue& value, const NameIndex& groups) {
  std::vector<ScenarioHolder> holders;
  std::vector<char> named(groups.size(), 0);     // groups of earlier entries ...
  std::vector<char> hold_all(groups.size(), 0);  // ... that hold the whole version
  for (const YamlValue& item : value.list()) {
    ScenarioHolder holder = read_holder(item, groups);
    const bool has_all = holder.replicas.empty() && !holder.part;
    if (hold_all[holder.group] != 0 || (has_all && named[holder.group] != 0)) {
      item.refuse(ErrorCode::Duplicate, "the group holds the whole version already; name it once");
    }
    named[holder.group] = 1;
    hold_all[holder.group] = has_all ? 1 : 0;
    holders.push_back(std::move(holder));
  }
  if (holders.size() > kMostHolders) {
    value.refuse(ErrorCode::LimitExceeded,
                 fmt::format("{} entries; at most {} are read", holders.size(), kMostHolders));
  }
  if (holders.empty()) {
    value.refuse(ErrorCode::BadValue, "somebody must hold the version; name at least one group");
  }
  return holders;
}

}  // namespace holdfast::scenario_detail
