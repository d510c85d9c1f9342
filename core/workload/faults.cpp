#include "core/workload/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/workload/distribution.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kWhole = 1'000'000;

constexpr std::array kKinds{std::pair{FaultKind::Worker, "worker"},
                            std::pair{FaultKind::Host, "host"},
                            std::pair{FaultKind::Rack, "rack"},
                            std::pair{FaultKind::Pod, "pod"},
                            std::pair{FaultKind::Datacenter, "datacenter"},
                            std::pair{FaultKind::Nic, "nic"},
                            std::pair{FaultKind::Link, "link"},
                            std::pair{FaultKind::Coordinator, "coordinator"}};
constexpr std::array kActions{
    std::pair{FaultAction::Kill, "kill"},           std::pair{FaultAction::Down, "down"},
    std::pair{FaultAction::Slow, "slow"},           std::pair{FaultAction::Flap, "flap"},
    std::pair{FaultAction::Partition, "partition"}, std::pair{FaultAction::Crash, "crash"}};

void sort_unique(std::vector<LinkId>& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

// What one target loses, the same in each of its faults.
FaultChange losses(const FaultRule& rule, std::uint32_t id, const Topology& topology) {
  FaultChange lost;
  switch (rule.kind) {
    case FaultKind::Coordinator:
      lost.coordinator = true;
      break;
    case FaultKind::Worker:
      lost.workers.push_back(NodeId(id));
      break;
    case FaultKind::Link:
      lost.links.push_back(LinkId(id));
      break;
    case FaultKind::Nic:
      for (const Neighbour& next : topology.neighbours(NodeId(id))) {
        if (topology.link(next.link).kind == LinkKind::Fabric) lost.links.push_back(next.link);
      }
      break;
    default: {
      const std::span<const NodeId> inside = topology.members(DomainId(id));
      const bool kill = rule.action == FaultAction::Kill;
      for (const NodeId node : inside) {
        if (kill && is_endpoint(topology.node(node).kind)) lost.workers.push_back(node);
        for (const Neighbour& next : topology.neighbours(node)) {
          if (kill || !std::binary_search(inside.begin(), inside.end(), next.node)) {
            lost.links.push_back(next.link);
          }
        }
      }
    }
  }
  sort_unique(lost.links);
  lost.share = rule.action == FaultAction::Slow ? rule.share : 0;
  return lost;
}

// Times of a share of a period, rounded to a picosecond.
Time part_of(Time period, std::uint32_t share) {
  const std::int64_t whole = period.picoseconds() / kWhole;
  const std::int64_t rest = period.picoseconds() % kWhole;
  return Time(whole * share + rest * share / kWhole);
}

class ScheduleMaker {
 public:
  ScheduleMaker(std::span<const FaultRule> rules, const Topology& topology, Time horizon,
                std::uint64_t seed)
      : rules_(rules), topology_(topology), horizon_(horizon), seed_(seed) {}

  FaultSchedule make() {
    FaultSchedule schedule;
    for (rule_ = 0; rule_ < rules_.size(); ++rule_) {
      const FaultRule& rule = rules_[rule_];
      const std::size_t targets = rule.kind == FaultKind::Coordinator ? 1 : rule.targets.size();
      std::vector<FaultChange> changes;
      for (target_ = 0; target_ < targets; ++target_) add_target(rule, changes);
      if (const auto* const when = std::get_if<AtTransfer>(&rule.when)) {
        schedule.triggered.push_back({*when, std::move(changes)});
      } else {
        std::move(changes.begin(), changes.end(), std::back_inserter(schedule.timed));
      }
    }
    std::uint32_t fault = 0;
    fault = number(schedule.timed, fault);
    for (FaultSchedule::Triggered& each : schedule.triggered) fault = number(each.changes, fault);
    return schedule;
  }

 private:
  void add_target(const FaultRule& rule, std::vector<FaultChange>& changes) {
    const bool coordinator = rule.kind == FaultKind::Coordinator;
    lost_ = losses(rule, coordinator ? 0 : rule.targets[target_], topology_);
    if (const auto* const when = std::get_if<AtTime>(&rule.when)) {
      strike(rule, when->at, changes);
      return;
    }
    if (std::holds_alternative<AtTransfer>(rule.when)) {
      strike(rule, Time(), changes);
      return;
    }
    const double rate = std::get<AtRate>(rule.when).per_hour;
    if (!(rate > 0)) return;
    const Distribution gap = Distribution::exponential(3600 / rate, 4e6);
    Random random(seed_, rule_ * 0x100000000 + target_);
    Time at;
    while (true) {
      at += std::max(picoseconds(1), time_from_seconds(gap.draw(random)));
      if (at >= horizon_) return;
      strike(rule, at, changes);
      if (!rule.duration) return;
      at += *rule.duration;
    }
  }

  // One strike of the rule at its target: one fault, or those of a flap.
  void strike(const FaultRule& rule, Time at, std::vector<FaultChange>& changes) {
    if (rule.action != FaultAction::Flap) {
      add(at, rule.duration ? std::optional<Time>(at + *rule.duration) : std::nullopt, changes);
      return;
    }
    const Time end = rule.duration ? at + *rule.duration : horizon_;
    const Time down = std::max(picoseconds(1), part_of(rule.period, rule.down_share));
    for (; at < end && at < horizon_; at += rule.period) {
      add(at, std::min(at + down, end), changes);
    }
  }

  void add(Time begin, std::optional<Time> end, std::vector<FaultChange>& changes) {
    if (begin >= horizon_) return;
    if ((made_ += 2) > kMostFaultChanges) {
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("rule {} of the faults gives more than {} changes; take a smaller "
                              "rate, a longer period or fewer targets",
                              rule_, kMostFaultChanges));
    }
    FaultChange change = lost_;
    change.at = begin;
    change.rule = static_cast<std::uint32_t>(rule_);
    change.target = static_cast<std::uint32_t>(target_);
    changes.push_back(change);
    if (end) {
      change.at = *end;
      change.step = FaultStep::End;
      changes.push_back(std::move(change));
    }
  }

  // Sorts and gives each fault its number in the order of their beginnings. An End comes before a
  // Begin of the same time, so that a flap without a gap is two faults.
  static std::uint32_t number(std::vector<FaultChange>& changes, std::uint32_t fault) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const FaultChange& a, const FaultChange& b) {
                       return std::tuple(a.at, a.step == FaultStep::Begin, a.rule, a.target) <
                              std::tuple(b.at, b.step == FaultStep::Begin, b.rule, b.target);
                     });
    // A target of a rule has one fault at a time.
    std::unordered_map<std::uint64_t, std::uint32_t> open;
    for (FaultChange& change : changes) {
      const std::uint64_t key = (std::uint64_t{change.rule} << 32U) | change.target;
      if (change.step == FaultStep::Begin) open[key] = fault++;
      change.fault = open[key];
    }
    return fault;
  }

  std::span<const FaultRule> rules_;
  const Topology& topology_;
  Time horizon_;
  std::uint64_t seed_;
  std::size_t rule_ = 0;
  std::size_t target_ = 0;
  FaultChange lost_;
  std::size_t made_ = 0;
};

}  // namespace

const char* to_string(FaultKind kind) {
  for (const auto& [value, name] : kKinds) {
    if (value == kind) return name;
  }
  return "unknown";
}

const char* to_string(FaultAction action) {
  for (const auto& [value, name] : kActions) {
    if (value == action) return name;
  }
  return "unknown";
}

std::vector<FaultAction> actions_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::Worker:
      return {FaultAction::Kill};
    case FaultKind::Coordinator:
      return {FaultAction::Crash};
    case FaultKind::Nic:
    case FaultKind::Link:
      return {FaultAction::Down, FaultAction::Slow, FaultAction::Flap};
    default:
      return {FaultAction::Kill, FaultAction::Partition};
  }
}

bool can(FaultKind kind, FaultAction action) {
  const std::vector<FaultAction> actions = actions_of(kind);
  return std::find(actions.begin(), actions.end(), action) != actions.end();
}

FaultSchedule make_schedule(std::span<const FaultRule> rules, const Topology& topology,
                            Time horizon, std::uint64_t seed) {
  return ScheduleMaker(rules, topology, horizon, seed).make();
}

ActiveFaults::ActiveFaults(const Topology& topology)
    : stops_(topology.nodes().size(), 0), shares_(topology.links().size()) {}

void ActiveFaults::apply(const FaultChange& change) {
  const bool begins = change.step == FaultStep::Begin;
  for (const NodeId worker : change.workers) {
    std::uint32_t& stops = stops_[worker.index()];
    stops = begins ? stops + 1 : stops - 1;
  }
  for (const LinkId link : change.links) {
    std::vector<std::uint32_t>& shares = shares_[link.index()];
    const auto at = std::lower_bound(shares.begin(), shares.end(), change.share);
    if (begins) {
      shares.insert(at, change.share);
    } else {
      shares.erase(at);
    }
  }
  if (change.coordinator) coordinator_ = begins ? coordinator_ + 1 : coordinator_ - 1;
}

std::uint32_t ActiveFaults::share(LinkId link) const {
  const std::vector<std::uint32_t>& shares = shares_[link.index()];
  return shares.empty() ? kWhole : shares.front();
}

}  // namespace holdfast
