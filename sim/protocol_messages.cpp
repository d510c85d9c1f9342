// The coordinator of a ProtocolService, its planner, and the frames between it and the workers.
#include <algorithm>

#include "sim/protocol_state.hpp"
#include "sim/source_filter.hpp"

namespace holdfast::sim {
namespace {

constexpr Time kFirstRebuild = milliseconds(1);

}  // namespace

void ProtocolService::State::start_coordinator() {
  if (coordinator) return;
  CoordinatorConfig config = options.coordinator;
  // Nobody can know anything of a coordinator before the first one.
  if (coordinator_life == 0) config.rebuild_time = std::min(config.rebuild_time, kFirstRebuild);
  coordinator = std::make_unique<Coordinator>(router.topology(), roster, setup.spaces, config);
  ++coordinator_life;
  armed = Time::never();
  step_coordinator(CoordinatorTimePassed{});
}

void ProtocolService::State::stop_coordinator() {
  coordinator.reset();
  ++coordinator_life;  // plans that are being made are nobody's
}

// --- Frames --------------------------------------------------------------------------------------

void ProtocolService::State::send_up(WorkerId worker, ToCoordinator frame) {
  const NodeId node = workers[worker.index()].node;
  listen(worker, frame);
  if (!ways.reaches(node)) {
    ++traffic.lost;
    return;
  }
  const Time at = network->now() + ways.latency(node);
  network->call_at(at, [this, worker, frame = std::move(frame)] {
    if (!coordinator || !ways.reaches(workers[worker.index()].node)) {
      ++traffic.lost;
      return;
    }
    ++traffic.to_coordinator;
    step_coordinator(FromWorker{worker, frame});
    settle();
  });
}

void ProtocolService::State::send_down(WorkerId worker, const ToWorker& frame) {
  const NodeId node = workers[worker.index()].node;
  if (!ways.reaches(node)) {
    ++traffic.lost;
    return;
  }
  const Time at = network->now() + ways.latency(node);
  network->call_at(at, [this, worker, frame] {
    const Worker& to = workers[worker.index()];
    if (!to.life || !ways.reaches(to.node)) {
      ++traffic.lost;
      return;
    }
    ++traffic.to_workers;
    to.life->loop().receive(frame);
    pump(worker);
    if (to.card.group.valid()) release_calls(to.card.group);
    settle();
  });
}

// What a worker says of its sources' loss, once for each source and life.
void ProtocolService::State::listen(WorkerId worker, const ToCoordinator& frame) {
  const auto* told = std::get_if<WorkerFrame>(&frame);
  if (told == nullptr || !told->payload) return;
  WorkerId lost;
  if (const auto* switched = std::get_if<Switched>(told->payload.get())) {
    if (switched->cause == FailureKind::SourceLost) lost = switched->from;
  } else if (const auto* wanted = std::get_if<ParentWanted>(told->payload.get())) {
    if (wanted->cause == FailureKind::SourceLost) lost = wanted->lost;
  }
  if (!lost.valid()) return;
  std::vector<WorkerId>& missed = workers[worker.index()].missed;
  if (std::find(missed.begin(), missed.end(), lost) != missed.end()) return;
  missed.push_back(lost);
  notify([lost, worker](ServiceObserver& to) { to.fault_detected(lost, worker); });
}

// --- The coordinator -----------------------------------------------------------------------------

void ProtocolService::State::step_coordinator(const CoordinatorEvent& event) {
  if (!coordinator) return;
  std::vector<CoordinatorCommand> out = std::move(commands);
  out.clear();
  coordinator_next = coordinator->step(event, network->now(), out);
  for (const CoordinatorCommand& command : out) carry_out(command);
  commands = std::move(out);
  look_for_expiry();
  if (options.check_invariants) {
    check(broken_invariants(*coordinator, network->now()), "coordinator");
  }
  arm();
}

void ProtocolService::State::carry_out(const CoordinatorCommand& command) {
  if (const auto* send = std::get_if<SendToWorker>(&command)) {
    send_down(send->worker, send->frame);
  } else {
    ask_planner(command);
  }
}

// One alarm, at the earliest time known when it was set; one that comes too early is set again.
void ProtocolService::State::arm() {
  if (coordinator_next >= armed) return;
  armed = coordinator_next;
  network->call_at(armed, [this, at = armed, life = coordinator_life] {
    if (life != coordinator_life || at != armed) return;
    armed = Time::never();
    if (coordinator_next > network->now()) {
      arm();
      return;
    }
    step_coordinator(CoordinatorTimePassed{});
    settle();
  });
}

// The answer itself takes no time here: it is made when it is due.
void ProtocolService::State::ask_planner(const CoordinatorCommand& question) {
  const Time at = network->now() + options.planning_time;
  network->call_at(at, [this, question, life = coordinator_life] {
    if (life != coordinator_life) return;
    const auto answer =
        options.sources == Sources::Anyone
            ? answer_question(router, question, options.policy, options.plan)
            : answer_question_from(router, question, [this](WorkerId source, WorkerId reader) {
                return may_read(source, reader);
              });
    if (!answer) return;
    if (const auto* asked = std::get_if<MakePlan>(&question)) {
      ++traffic.plans;
      const auto& made = std::get<PlanMade>(*answer);
      notify([demand = asked->demand, plan = made.plan, problem = made.problem](
                 ServiceObserver& to) { to.planned(*demand, plan.get(), problem); });
    } else {
      ++traffic.repairs;
    }
    step_coordinator(*answer);
    settle();
  });
}

bool ProtocolService::State::may_read(WorkerId source, WorkerId reader) const {
  const auto is_store = [this](WorkerId worker) {
    const GroupId group = workers[worker.index()].card.group;
    return std::find(options.stores.begin(), options.stores.end(), group) != options.stores.end();
  };
  const GroupId group = workers[source.index()].card.group;
  const bool trains = group.valid() && groups[group.index()].trainer;
  if (options.sources == Sources::Trainers || is_store(reader)) return trains;
  return is_store(source);
}

// Of those that were killed: whom the coordinator has given up since.
void ProtocolService::State::look_for_expiry() {
  std::erase_if(suspects, [this](WorkerId worker) {
    if (coordinator->alive(worker)) return false;
    notify([worker](ServiceObserver& to) { to.fault_detected(worker, {}); });
    return true;
  });
}

}  // namespace holdfast::sim
