// What breaks in a run, and how it heals.
#include <fmt/format.h>

#include <algorithm>

#include "core/storm/cluster.hpp"

namespace holdfast::storm {
namespace {

// For the fetches after the faults.
constexpr Time kLastPatience = seconds(60);
constexpr Time kLook = milliseconds(250);
constexpr std::uint32_t kAtOnce = 1000;

}  // namespace

void Cluster::light(const Fault& fault) {
  if (calm_) return;
  if (fault.steps == 0) return strike(fault);
  fuses_.push_back({steps_ + fault.steps, &fault});
}

void Cluster::strike(const Fault& fault) {
  if (calm_) return;
  mark(static_cast<std::uint64_t>(fault.kind) + 77);
  switch (fault.kind) {
    case FaultKind::WorkerCrash:
    case FaultKind::DomainCrash:
    case FaultKind::Stall:
    case FaultKind::SlowPort:
    case FaultKind::Corrupt:
      return strike_workers(fault);
    case FaultKind::CoordinatorCrash:
    case FaultKind::Zombie:
      return strike_coordinator(fault);
    default:
      return strike_network(fault);
  }
}

std::vector<WorkerId> Cluster::inside(DomainId domain) const {
  std::vector<WorkerId> found;
  for (std::size_t w = 0; w < world_.cards.size(); ++w) {
    const NodeId node = world_.cards[w].node;
    for (const Level level : {Level::Host, Level::Rack}) {
      if (world_.topology->around(node, level) == domain) found.emplace_back(w);
    }
  }
  return found;
}

void Cluster::strike_workers(const Fault& fault) {
  std::string what = fmt::format("worker {}", fault.worker.value());
  if (fault.kind == FaultKind::DomainCrash) {
    what = "all workers of " + world_.topology->domain(fault.domain).name;
  }
  what = fmt::format("{} of {} for {}", to_string(fault.kind), what, to_string(fault.lasts));
  tell([&](Watcher& watcher) { watcher.broke(*this, fault, what); });
  const Time until = std::min(now_ + fault.lasts, calm_at());
  switch (fault.kind) {
    case FaultKind::WorkerCrash:
      return crash_worker(fault.worker, fault.returns ? until : Time::never());
    case FaultKind::DomainCrash:
      for (const WorkerId worker : inside(fault.domain)) {
        crash_worker(worker, fault.returns ? until : Time::never());
      }
      return;
    case FaultKind::Stall:
      return network_.stall(fault.worker, until);
    case FaultKind::SlowPort:
      network_.set_rate(fault.worker,
                        std::max(Rate(1), world_.times.port / std::max(1U, fault.amount)));
      return schedule(until,
                      [this, &fault] { network_.set_rate(fault.worker, world_.times.port); });
    default:
      return network_.corrupt(fault.worker, fault.amount);
  }
}

void Cluster::crash_worker(WorkerId worker, Time returns) {
  std::unique_ptr<Life>& life = lives_[worker.index()];
  if (!life) return;
  tell([&](Watcher& watcher) { watcher.died(*this, worker); });
  incarnations_[worker.index()] =
      std::max(incarnations_[worker.index()], life->agent().incarnation());
  network_.crash(worker);
  users_.died(worker);
  life.reset();
  if (returns == Time::never()) return;
  schedule(returns, [this, worker] {
    if (!lives_[worker.index()]) start_worker(worker);
  });
}

void Cluster::strike_coordinator(const Fault& fault) {
  if (!coordinator_) return;
  tell([&](Watcher& watcher) {
    watcher.broke(*this, fault,
                  fmt::format("{} for {}", to_string(fault.kind), to_string(fault.lasts)));
  });
  if (fault.kind == FaultKind::Zombie) {
    if (zombie_) return;
    tell([&](Watcher& watcher) { watcher.coordinator_died(*this); });
    zombie_ = std::move(coordinator_);
    zombie_next_ = coordinator_next_;
    zombie_until_ = std::min(now_ + fault.lasts, calm_at());
    return start_coordinator();
  }
  coordinator_returns_ = std::min(now_ + fault.lasts, calm_at());
  if (fault.amount >= kAtOnce) return crash_coordinator();
  coordinator_dies_after_ = fault.amount;
}

void Cluster::crash_coordinator() {
  coordinator_dies_after_.reset();
  tell([&](Watcher& watcher) { watcher.coordinator_died(*this); });
  coordinator_.reset();
  coordinator_next_ = Time::never();
  schedule(std::max(now_, coordinator_returns_), [this] {
    if (!coordinator_) start_coordinator();
  });
}

void Cluster::cut_control(WorkerId worker, std::uint32_t ways, int by) {
  for (const Direction direction : {Direction::ToCoordinator, Direction::ToWorker}) {
    const auto way = static_cast<std::uint32_t>(direction);
    if ((ways >> way & 1U) == 0) continue;
    std::uint32_t& count = control_cuts_[worker.index() * 2 + way];
    count = by > 0 ? count + 1 : count - 1;
    control_.cut(worker, direction, count > 0);
  }
}

void Cluster::cut_data(WorkerId from, WorkerId to, int by) {
  std::uint32_t& count = data_cuts_[from.index() * lives_.size() + to.index()];
  count = by > 0 ? count + 1 : count - 1;
  network_.cut(from, to, count > 0);
}

void Cluster::strike_network(const Fault& fault) {
  std::string what = fmt::format("{} for {}", to_string(fault.kind), to_string(fault.lasts));
  Action heal;
  switch (fault.kind) {
    case FaultKind::ControlCut:
      what += fmt::format(": worker {}{}{}", fault.worker.value(),
                          (fault.ways & 1U) != 0 ? ", what it says" : "",
                          (fault.ways & 2U) != 0 ? ", what it hears" : "");
      cut_control(fault.worker, fault.ways, 1);
      heal = [this, &fault] { cut_control(fault.worker, fault.ways, -1); };
      break;
    case FaultKind::DataCut: {
      what += fmt::format(": workers {} and {}, ways {}", fault.worker.value(), fault.other.value(),
                          fault.ways);
      const auto both = [this, &fault](int by) {
        if ((fault.ways & 1U) != 0) cut_data(fault.worker, fault.other, by);
        if ((fault.ways & 2U) != 0) cut_data(fault.other, fault.worker, by);
      };
      both(1);
      heal = [both] { both(-1); };
      break;
    }
    case FaultKind::Island: {
      what += fmt::format(": {}, ways {}", world_.topology->domain(fault.domain).name, fault.ways);
      const auto all = [this, &fault](int by) {
        const std::vector<WorkerId> island = inside(fault.domain);
        for (const WorkerId worker : island) {
          cut_control(worker, fault.ways, by);
          for (std::size_t w = 0; w < lives_.size(); ++w) {
            const WorkerId other(w);
            if (std::find(island.begin(), island.end(), other) != island.end()) continue;
            if ((fault.ways & 1U) != 0) cut_data(worker, other, by);
            if ((fault.ways & 2U) != 0) cut_data(other, worker, by);
          }
        }
      };
      all(1);
      heal = [all] { all(-1); };
      break;
    }
    case FaultKind::ControlWeather:
      control_.set_faults(fault.control);
      heal = [this] { control_.set_faults({}); };
      break;
    default:
      network_.set_message_faults(fault.control.lost_per_mille, fault.control.doubled_per_mille,
                                  fault.control.jitter);
      heal = [this] { network_.set_message_faults(0, 0, Time{}); };
      break;
  }
  tell([&](Watcher& watcher) { watcher.broke(*this, fault, what); });
  // Never later than the calm.
  schedule(std::min(now_ + fault.lasts, calm_at()), std::move(heal));
}

Time Cluster::calm_at() const {
  return script_.calm + world_.coordinator.rebuild_time;
}

// Cuts, weather and dead workers heal by themselves no later than now: their times were set so.
void Cluster::calm_down() {
  fuses_.clear();
  coordinator_dies_after_.reset();
  schedule(now_, [this] {
    calm_ = true;
    zombie_.reset();
    for (std::size_t w = 0; w < lives_.size(); ++w) {
      network_.set_rate(WorkerId(w), world_.times.port);
      if (network_.alive(WorkerId(w))) network_.stall(WorkerId(w), now_);
    }
    tell([&](Watcher& watcher) { watcher.calmed(*this); });
    // False deaths are noticed and mended, a new coordinator has heard everybody.
    const CoordinatorConfig& config = world_.coordinator;
    wait_for_rest(now_, config.detection * 2 + config.rebuild_time + seconds(3), [this] {
      users_.fetch_all(kLastPatience);
      wait_for_rest(now_, world_.coordinator.detection + seconds(3), [this] { over_ = true; });
    });
  });
}

// Until no call has been open for `least`.
void Cluster::wait_for_rest(Time since, Time least, const Action& then) {
  schedule(now_ + kLook, [this, since, least, then] {
    const Time quiet = users_.open_calls() == 0 ? since : now_;
    if (now_ - quiet >= least) return then();
    wait_for_rest(quiet, least, then);
  });
}

}  // namespace holdfast::storm
