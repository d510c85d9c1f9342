#include "core/io/scenario_workload.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/io/drawn.hpp"
#include "core/io/scenario_detail.hpp"
#include "core/io/share.hpp"

namespace holdfast {
namespace {

using scenario_detail::NameIndex;

constexpr std::int64_t kMostSteps = 1'000'000;
constexpr std::int64_t kMostBatch = 10'000'000;
constexpr std::int64_t kMostSlots = 100'000;
constexpr std::int64_t kMostStaleness = 1'000;
constexpr std::int64_t kMostInitial = 1'000'000;

// The groups that a key names, each once over all keys of the workload.
class GroupLists {
 public:
  explicit GroupLists(const NameIndex& groups) : groups_(groups), used_(groups.size(), 0) {}

  std::vector<NamedGroup> read(const YamlValue& value) {
    std::vector<YamlValue> items;
    if (value.is_list()) {
      items = value.list();
    } else {
      items.push_back(value);
    }
    if (items.empty()) value.refuse(ErrorCode::BadValue, "name at least one group");
    std::vector<NamedGroup> named;
    for (const YamlValue& item : items) {
      const std::size_t group = groups_.find(item);
      if (used_[group] != 0) {
        item.refuse(ErrorCode::Duplicate,
                    fmt::format("group '{}' has a part in this workload already; name it once",
                                item.name()));
      }
      used_[group] = 1;
      named.push_back({group, item.place()});
    }
    return named;
  }

 private:
  const NameIndex& groups_;
  std::vector<char> used_;
};

[[noreturn]] void refuse_group(const NamedGroup& named, const std::vector<ScenarioGroup>& groups,
                               const char* message) {
  throw Error(ErrorCode::BadValue,
              fmt::format("group '{}' {}", groups[named.group].name.text, message), named.place);
}

void check_groups(const ScenarioWorkload& workload, const std::vector<ScenarioGroup>& groups) {
  for (const NamedGroup& named : workload.trainers) {
    const ScenarioGroup& group = groups[named.group];
    if (group.role == Role::Rollout) refuse_group(named, groups, "has 'role: rollout'");
    if (group.reliability == Reliability::Spot) {
      refuse_group(named, groups, "is on spot machines; trainers need reliable ones");
    }
  }
  for (const NamedGroup& named : workload.rollouts) {
    const ScenarioGroup& group = groups[named.group];
    if (group.role == Role::Trainer) refuse_group(named, groups, "has 'role: trainer'");
    if (group.placement.on == PlacedOn::HostMemory) {
      refuse_group(named, groups, "is on host memory, where nothing is generated");
    }
  }
}

ScenarioMembers read_members(const YamlValue& value) {
  ScenarioMembers members;
  members.place = value.place();
  YamlMap map = value.map();
  if (const auto trace = map.find("trace")) {
    for (const char* key : {"arrivals", "lifetime", "notice", "initial", "without_notice"}) {
      map.no_effect(key, "the trace says who comes and goes when");
    }
    map.finish();
    members.trace = Word{trace->text(), trace->place()};
    return members;
  }
  SpotProcess process;
  process.lifetime = read_distribution(map.require("lifetime"), Drawn::Times);
  const auto arrivals = map.find("arrivals");
  const auto initial = map.find("initial");
  if (arrivals) process.arrivals_per_hour = read_frequency(*arrivals);
  if (initial) process.initial = static_cast<std::uint32_t>(initial->integer(0, kMostInitial));
  if (!arrivals && process.initial == 0) {
    value.refuse(ErrorCode::MissingKey,
                 "nobody ever joins; write 'arrivals: 20/h', 'initial: 8' or both");
  }
  if (const auto notice = map.find("notice")) process.notice = notice->time(Zero::Allowed);
  if (process.notice == Time()) {
    map.no_effect("without_notice", "without 'notice' nobody gets one");
  } else if (const auto share = map.find("without_notice")) {
    process.unannounced = read_share(*share, Zero::Allowed);
  }
  map.finish();
  members.process = std::move(process);
  return members;
}

void read_generation(YamlMap& map, ScenarioWorkload& workload) {
  workload.batch = static_cast<std::uint32_t>(map.require("batch").integer(1, kMostBatch));
  workload.lengths = read_distribution(map.require("lengths"), Drawn::Tokens);
  workload.token_time = map.require("token_time").time(Zero::Refused);
  if (const auto slots = map.find("slots")) {
    workload.slots = static_cast<std::uint32_t>(slots->integer(1, kMostSlots));
  }
  if (const auto partial = map.find("partial_rollouts")) {
    workload.partial_rollouts = partial->boolean();
  }
  if (workload.loop == TrainingLoop::Synchronous) {
    map.no_effect("staleness", "in a synchronous loop rollouts begin under the latest version");
    return;
  }
  workload.staleness = 1;
  if (const auto staleness = map.find("staleness")) {
    workload.staleness = static_cast<std::uint32_t>(staleness->integer(0, kMostStaleness));
  }
}

void read_training(YamlMap& map, ScenarioWorkload& workload) {
  workload.loop = map.require("loop").one_of<TrainingLoop>(
      {{to_string(TrainingLoop::Synchronous), TrainingLoop::Synchronous},
       {to_string(TrainingLoop::Asynchronous), TrainingLoop::Asynchronous}});
  workload.steps = static_cast<std::uint32_t>(map.require("steps").integer(1, kMostSteps));
  workload.step_time = map.require("step_time").time(Zero::Refused);
  if (const auto write = map.find("write_time")) {
    workload.write_time = write->time(Zero::Allowed);
    if (workload.write_time > workload.step_time) {
      write->refuse(ErrorCode::BadValue, "it is a part of 'step_time', and longer than that");
    }
  }
}

void read_kind(YamlMap& map, ScenarioWorkload& workload, GroupLists& lists,
               const std::vector<ScenarioGroup>& groups) {
  if (workload.kind == WorkloadKind::Elastic) {
    workload.members = read_members(map.require("members"));
    bool spot = false;
    for (const NamedGroup& named : workload.rollouts) {
      spot = spot || groups[named.group].reliability == Reliability::Spot;
    }
    if (!spot) {
      throw Error(ErrorCode::BadValue,
                  "'members': no rollout group comes and goes; write 'reliability: spot' on one",
                  workload.members->place);
    }
  } else {
    map.no_effect("members", "only 'kind: elastic' has workers that come and go");
  }
  if (workload.kind == WorkloadKind::CrossDatacenter) {
    if (const auto staging = map.find("staging")) workload.staging = lists.read(*staging);
    for (const NamedGroup& named : workload.staging) {
      if (groups[named.group].placement.on != PlacedOn::HostMemory) {
        refuse_group(named, groups, "is on GPUs; staging needs 'place: {host_memory: [...]}'");
      }
    }
  } else {
    map.no_effect("staging", "only 'kind: cross_dc' stages in host memory");
  }
}

}  // namespace

const char* to_string(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::Standalone:
      return "standalone";
    case WorkloadKind::Elastic:
      return "elastic";
    case WorkloadKind::CrossDatacenter:
      return "cross_dc";
  }
  return "unknown";
}

const char* to_string(TrainingLoop loop) {
  return loop == TrainingLoop::Synchronous ? "synchronous" : "asynchronous";
}

namespace scenario_detail {

ScenarioWorkload read_workload(const YamlValue& value, const NameIndex& names,
                               const std::vector<ScenarioGroup>& groups) {
  ScenarioWorkload workload;
  workload.place = value.place();
  YamlMap map = value.map();
  workload.kind = map.require("kind").one_of<WorkloadKind>(
      {{to_string(WorkloadKind::Standalone), WorkloadKind::Standalone},
       {to_string(WorkloadKind::Elastic), WorkloadKind::Elastic},
       {to_string(WorkloadKind::CrossDatacenter), WorkloadKind::CrossDatacenter}});
  GroupLists lists(names);
  workload.trainers = lists.read(map.require("trainers"));
  workload.rollouts = lists.read(map.require("rollouts"));
  check_groups(workload, groups);
  read_training(map, workload);
  read_generation(map, workload);
  read_kind(map, workload, lists, groups);
  map.finish();
  return workload;
}

}  // namespace scenario_detail
}  // namespace holdfast
