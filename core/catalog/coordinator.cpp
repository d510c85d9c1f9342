#include "core/catalog/coordinator.hpp"

#include <algorithm>
#include <cassert>

#include "core/catalog/coordinator_state.hpp"

namespace holdfast {

Coordinator::Coordinator(const Topology& topology, std::vector<NodeId> roster,
                         std::vector<std::shared_ptr<const ModelSpace>> spaces,
                         const CoordinatorConfig& config)
    : state_(std::make_unique<State>(topology, std::move(roster), std::move(spaces), config)) {}
Coordinator::~Coordinator() = default;
Coordinator::Coordinator(Coordinator&&) noexcept = default;
Coordinator& Coordinator::operator=(Coordinator&&) noexcept = default;

Time Coordinator::step(const CoordinatorEvent& event, Time now,
                       std::vector<CoordinatorCommand>& out) {
  const Time next = state_->step(event, now, out);
  if (!state_->start_again) {
    assert(broken_invariants(*this, now).empty());
    return next;
  }
  const Epoch reported = state_->reported_epoch;
  state_ = std::make_unique<State>(state_->topology, std::move(state_->roster),
                                   std::move(state_->spaces), state_->config);
  state_->reported_epoch = reported;
  return state_->step(CoordinatorTimePassed{}, now, out);
}
bool Coordinator::rebuilding() const {
  return state_->rebuilding;
}
Epoch Coordinator::epoch() const {
  return state_->epoch;
}

Coordinator::State::State(const Topology& the_topology, std::vector<NodeId> the_roster,
                          std::vector<std::shared_ptr<const ModelSpace>> the_spaces,
                          const CoordinatorConfig& the_config)
    : topology(the_topology),
      domains(the_topology),
      roster(std::move(the_roster)),
      spaces(std::move(the_spaces)),
      config(the_config),
      largest_lineage(spaces.size()),
      workers(roster.size()),
      clears(roster.size()) {
  validate(config.session);
}

Time Coordinator::State::step(const CoordinatorEvent& event, Time at,
                              std::vector<CoordinatorCommand>& commands) {
  now = at;
  out = &commands;
  if (!started) {
    started = true;
    arm(now + config.rebuild_time, TimerKind::Rebuild);
  }
  if (const auto* from = std::get_if<FromWorker>(&event)) {
    if (from->worker.index() < workers.size()) {
      if (const auto* hello = std::get_if<Hello>(&from->frame)) {
        on(from->worker, *hello);
      } else {
        on(from->worker, std::get<WorkerFrame>(from->frame));
      }
    }
  } else if (const auto* plan = std::get_if<PlanMade>(&event)) {
    on(*plan);
  } else if (const auto* mended = std::get_if<RepairMade>(&event)) {
    on(*mended);
  }
  settle();
  while (!timers.empty() && timers.top().at <= now) {
    // All that is due, then its consequences once: many workers may expire together.
    while (!timers.empty() && timers.top().at <= now) {
      const Timer timer = timers.top();
      timers.pop();
      fire(timer);
    }
    settle();
  }
  flush();
  out = nullptr;
  return timers.empty() ? Time::never() : timers.top().at;
}

void Coordinator::State::take(WorkerId worker, const WorkerMessage& message) {
  std::visit([&](const auto& m) { on(worker, m); }, message);
}

void Coordinator::State::send(WorkerId worker, CoordinatorMessage message) {
  Worker& w = workers[worker.index()];
  if (!w.session) return;
  w.session->send(std::make_shared<const CoordinatorMessage>(std::move(message)), now);
  if (w.touched) return;
  w.touched = true;
  touched.push_back(worker);
}

void Coordinator::State::arm(Time at, TimerKind kind, std::uint64_t id, VersionKey version) {
  if (at == Time::never()) return;
  timers.push({at, timer_order++, kind, id, version});
}

void Coordinator::State::fire(const Timer& timer) {
  const WorkerId worker(static_cast<std::uint32_t>(timer.id));
  switch (timer.kind) {
    case TimerKind::Rebuild:
      if (rebuilding) finish_rebuild();
      break;
    case TimerKind::Expiry:
      expire(worker);
      break;
    case TimerKind::Session:
      if (workers[worker.index()].armed != timer.at) break;
      workers[worker.index()].armed = Time::never();
      if (!workers[worker.index()].touched) {
        workers[worker.index()].touched = true;
        touched.push_back(worker);
      }
      break;
    case TimerKind::FetchDeadline: {
      Group& group = groups[timer.id];
      if (group.phase == Phase::Idle || group.deadline > now) break;
      CallResult result;
      result.status = CallStatus::DeadlineExceeded;
      if (group.phase == Phase::Collecting) {
        for (std::size_t rank = 0; rank < group.members.size(); ++rank) {
          if (!group.asked[rank]) result.who.push_back(group.members[rank]);
        }
      } else if (group.phase == Phase::Securing) {
        result.status = CallStatus::RetentionBlocked;
        result.reason = group.trouble;
      } else {
        result.reason = group.trouble;
      }
      finish_fetch(GroupId(static_cast<std::uint32_t>(timer.id)), result);
      break;
    }
    case TimerKind::Gather:
      gather(timer.version);
      break;
    case TimerKind::Judge:
      judge(timer.version);
      break;
    case TimerKind::ClearDeadline:
      clear_deadline(worker, timer.version);
      break;
    case TimerKind::Waits:
      expire_waits();
      break;
    case TimerKind::Plan:
      plan_overdue(timer.id);
      break;
  }
}

// Consequences may have consequences: until nothing is left.
void Coordinator::State::settle() {
  if (rebuilding) return;
  while (!dirty_versions.empty() || !dirty_groups.empty() || !dirty_transfers.empty() ||
         !dirty_leaves.empty()) {
    if (!dirty_versions.empty()) {
      const VersionKey key = *dirty_versions.begin();
      dirty_versions.erase(dirty_versions.begin());
      judge_cover(key);
    } else if (!dirty_groups.empty()) {
      const GroupId group = *dirty_groups.begin();
      dirty_groups.erase(dirty_groups.begin());
      advance(group);
    } else if (!dirty_transfers.empty()) {
      const PlanNumber plan = *dirty_transfers.begin();
      dirty_transfers.erase(dirty_transfers.begin());
      repair(plan);
    } else {
      const WorkerId worker = *dirty_leaves.begin();
      dirty_leaves.erase(dirty_leaves.begin());
      continue_leave(worker);
    }
  }
}

// Frames of all sessions that have something to send.
void Coordinator::State::flush() {
  for (const WorkerId worker : touched) {
    Worker& w = workers[worker.index()];
    w.touched = false;
    if (!w.session) continue;
    frames.clear();
    w.session->due(now, frames);
    for (CoordinatorFrame& f : frames) frame(worker, std::move(f));
    const Time next = w.session->next_deadline();
    if (next == w.armed) continue;
    w.armed = next;
    arm(next, TimerKind::Session, worker.value());
  }
  touched.clear();
}

}  // namespace holdfast
