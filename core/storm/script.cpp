#include "core/storm/script.hpp"

#include <algorithm>
#include <array>

namespace holdfast::storm {
namespace {

class Writer {
 public:
  explicit Writer(const World& world)
      : world_(world), dice_(world.seed, 0x5c), fault_dice_(world.seed, 0xfa) {}

  Script write() {
    script_.calm = dice_.between(seconds(2), seconds(dice_.chance(200) ? 20 : 8));
    for (std::size_t space = 0; space < world_.spaces.size(); ++space) next_.push_back({0, 1});
    versions_.resize(world_.spaces.size());
    const auto groups = static_cast<std::uint32_t>(world_.groups.size());
    const std::uint32_t tasks = dice_.between(4, 10 + std::min(30U, groups * 3));
    std::vector<Time> times(tasks);
    for (Time& at : times) at = dice_.between(milliseconds(1), script_.calm);
    std::sort(times.begin(), times.end());
    times.front() = milliseconds(1);
    for (const Time at : times) add_task(at, at == times.front());
    if (!dice_.chance(150)) add_faults();
    return std::move(script_);
  }

 private:
  Time patience() {
    return dice_.chance(300) ? dice_.between(milliseconds(5), milliseconds(400))
                             : dice_.between(seconds(1), seconds(10));
  }
  GroupId group_that(bool trains) {
    std::vector<GroupId> found;
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      if (world_.groups[g].trainer == trains) found.emplace_back(g);
    }
    return found.empty() ? GroupId(dice_.below(world_.groups.size()))
                         : found[dice_.below(found.size())];
  }
  Version known_version(SpaceId space) {
    const std::vector<Version>& known = versions_[space.index()];
    if (known.empty() || dice_.chance(50)) return {0, dice_.between(1, 9)};
    // Mostly a recent one.
    const auto back = dice_.below(std::min<std::size_t>(known.size(), dice_.chance(700) ? 2 : 9));
    return known[known.size() - 1 - back];
  }

  void add_task(Time at, bool first) {
    Task task;
    task.at = at;
    task.patience = patience();
    task.apart = dice_.chance(300) ? dice_.between(Time{}, milliseconds(50)) : Time{};
    const std::uint32_t kind = first ? 0 : dice_.below(1000);
    if (kind < 250) {
      add_publish(task);
    } else if (kind < 620) {
      add_fetch(task);
    } else if (kind < 690) {
      task.kind = TaskKind::Unpublish;
      task.group = group_that(dice_.chance(500));
      task.on_deadline = dice_.chance(500) ? OnDeadline::Revoke : OnDeadline::Fail;
    } else {
      add_single(task, kind);
    }
    script_.tasks.push_back(task);
  }

  void add_publish(Task& task) {
    task.kind = TaskKind::Publish;
    task.group = group_that(true);
    task.on_deadline = dice_.chance(600) ? OnDeadline::Revoke : OnDeadline::Fail;
    const SpaceId space = world_.groups[task.group.index()].space;
    std::vector<Version>& known = versions_[space.index()];
    Version& next = next_[space.index()];
    if (!known.empty() && dice_.chance(200)) {
      task.version = known_version(space);  // one more replica, or a conflict
      task.variant = dice_.chance(400) ? 1 : 0;
    } else {
      if (dice_.chance(100)) next = {next.lineage + 1, 1};
      task.version = next;
      next.number += dice_.chance(200) ? dice_.between(2, 5) : 1;
      known.push_back(task.version);
    }
    if (dice_.chance(60)) draw_odd(task);
  }

  void add_fetch(Task& task) {
    task.kind = TaskKind::Fetch;
    task.group = group_that(dice_.chance(50));
    const WorldGroup& group = world_.groups[task.group.index()];
    if (dice_.chance(350)) task.fetch.version = known_version(group.space);
    const bool second = world_.cards[group.members[0].index()].slots > 1;
    if (second && dice_.chance(700)) task.fetch.destination = Destination::Shadow;
    if (dice_.chance(300)) task.fetch.on_newer = OnNewer::Restart;
    if (dice_.chance(60)) draw_odd(task);
  }
  void draw_odd(Task& task) {
    const auto ranks = world_.groups[task.group.index()].members.size();
    if (ranks < 2) return;
    task.odd_member = dice_.below(ranks);
  }

  void add_single(Task& task, std::uint32_t kind) {
    task.worker = WorkerId(dice_.below(world_.cards.size()));
    const SpaceId space = world_.cards[task.worker.index()].space;
    task.version = known_version(space);
    if (kind < 790) {
      task.kind = TaskKind::Retain;
      task.retention = {dice_.chance(500) ? 1 : dice_.between(2, 3),
                        dice_.chance(600) ? Level::Host : Level::Rack};
    } else if (kind < 840) {
      task.kind = TaskKind::Release;
    } else if (kind < 880) {
      task.kind = TaskKind::Cancel;
    } else if (kind < 910) {
      task.kind = TaskKind::Withdraw;
    } else if (kind < 940) {
      task.kind = TaskKind::Installed;
      task.groups = dice_.between(1, 2);
    } else if (kind < 970) {
      task.kind = TaskKind::Lineage;
    } else {
      task.kind = TaskKind::Leave;
    }
  }

  void add_faults() {
    // Each seed has its own mix, so that each kind is alone now and then.
    std::array<std::uint32_t, kFaultKinds> weights{};
    for (std::uint32_t& weight : weights) {
      weight = fault_dice_.chance(450) ? fault_dice_.between(1, 10) : 0;
    }
    std::uint32_t sum = 0;
    for (const std::uint32_t weight : weights) sum += weight;
    if (sum == 0) return;
    const std::uint32_t count = fault_dice_.between(1, fault_dice_.chance(300) ? 14 : 5);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t left = fault_dice_.below(sum);
      std::size_t kind = 0;
      for (; left >= weights[kind]; ++kind) left -= weights[kind];
      add_fault(static_cast<FaultKind>(kind));
    }
    std::stable_sort(script_.faults.begin(), script_.faults.end(),
                     [](const Fault& a, const Fault& b) { return a.at < b.at; });
  }

  void add_fault(FaultKind kind) {
    Fault fault;
    fault.kind = kind;
    if (fault_dice_.chance(600)) {  // where something happens
      const Task& task = script_.tasks[fault_dice_.below(script_.tasks.size())];
      fault.at = task.at + fault_dice_.between(Time{}, milliseconds(300));
    } else {
      fault.at = fault_dice_.between(Time{}, script_.calm);
    }
    fault.steps = fault_dice_.chance(500) ? fault_dice_.below(40) : 0;
    fault.lasts = fault_dice_.chance(400)
                      ? fault_dice_.between(milliseconds(1), milliseconds(400))
                      : fault_dice_.between(milliseconds(400), world_.coordinator.detection * 3);
    fault.worker = WorkerId(fault_dice_.below(world_.cards.size()));
    fault.other = WorkerId(fault_dice_.below(world_.cards.size()));
    const bool rack = fault_dice_.chance(300);
    const NodeId node = world_.cards[fault.worker.index()].node;
    fault.domain = world_.topology->around(node, rack ? Level::Rack : Level::Host);
    fault.returns = fault_dice_.chance(700);
    fault.ways = fault_dice_.between(1, 3);
    draw_amount(fault);
    script_.faults.push_back(fault);
  }
  void draw_amount(Fault& fault) {
    switch (fault.kind) {
      case FaultKind::Corrupt:
        fault.amount = fault_dice_.below(8);
        return;
      case FaultKind::SlowPort:
        fault.amount = fault_dice_.between(2, 50);
        return;
      case FaultKind::CoordinatorCrash:
        fault.amount = fault_dice_.chance(500) ? fault_dice_.below(6) : 1000;
        return;
      case FaultKind::ControlWeather:
      case FaultKind::DataWeather:
        fault.control.lost_per_mille = fault_dice_.below(400);
        fault.control.doubled_per_mille = fault_dice_.below(300);
        fault.control.late_per_mille = fault_dice_.below(200);
        fault.control.jitter = fault_dice_.between(Time{}, milliseconds(30));
        fault.control.late = fault_dice_.between(Time{}, seconds(4));
        return;
      default:
        return;
    }
  }

  const World& world_;
  Dice dice_;
  Dice fault_dice_;
  Script script_;
  std::vector<Version> next_;                   // by space
  std::vector<std::vector<Version>> versions_;  // by space: those to be published
};

}  // namespace

Script make_script(const World& world) {
  return Writer(world).write();
}

const char* to_string(TaskKind kind) {
  static constexpr std::array<const char*, kTaskKinds> kNames{
      "publish", "unpublish", "fetch",     "cancel",  "withdraw",
      "retain",  "release",   "installed", "lineage", "leave"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* to_string(FaultKind kind) {
  static constexpr std::array<const char*, kFaultKinds> kNames{"worker crash",
                                                               "domain crash",
                                                               "coordinator crash",
                                                               "zombie coordinator",
                                                               "control cut",
                                                               "data cut",
                                                               "island",
                                                               "stall",
                                                               "slow port",
                                                               "corruption",
                                                               "control weather",
                                                               "data weather"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace holdfast::storm
