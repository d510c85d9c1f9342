#include "core/storm/cluster.hpp"

#include <algorithm>

#include "core/catalog/planning.hpp"
#include "core/mix.hpp"

namespace holdfast::storm {
namespace {

bool chosen(const std::optional<std::vector<std::uint32_t>>& list, std::size_t number) {
  return !list || std::binary_search(list->begin(), list->end(), number);
}

const char* name_of(const ToCoordinator& frame) {
  if (std::holds_alternative<Hello>(frame)) return "Hello";
  const auto& payload = std::get<WorkerFrame>(frame).payload;
  return payload ? holdfast::name_of(*payload) : "Heartbeat";
}

const char* name_of(const ToWorker& frame) {
  if (std::holds_alternative<Welcome>(frame)) return "Welcome";
  if (std::holds_alternative<FencedOff>(frame)) return "FencedOff";
  if (std::holds_alternative<UnknownSession>(frame)) return "UnknownSession";
  const auto& payload = std::get<CoordinatorFrame>(frame).payload;
  return payload ? holdfast::name_of(*payload) : "Acknowledgement";
}

const char* name_of_answer(const CoordinatorCommand& question) {
  if (std::holds_alternative<MakePlan>(question)) return "PlanMade";
  return std::holds_alternative<MakeJoin>(question) ? "JoinMade" : "RepairMade";
}

}  // namespace

Cluster::Cluster(const World& world, const Script& script, const Recipe& recipe,
                 DataNetwork& network, std::vector<Watcher*> watchers)
    : world_(world),
      script_(script),
      recipe_(recipe),
      watchers_(std::move(watchers)),
      network_(network),
      control_(world.cards.size(), world.seed, world.times.control_latency),
      control_cuts_(world.cards.size() * 2),
      data_cuts_(world.cards.size() * world.cards.size()),
      takes_part_(world.cards.size(), true),
      lives_(world.cards.size()),
      incarnations_(world.cards.size()),
      coordinator_next_(Time::never()),
      coordinator_returns_(Time::never()),
      zombie_next_(Time::never()),
      router_(*world.topology),
      planning_dice_(world.seed, 0x91),
      users_(*this, *this),
      scribble_(world.seed, 0x5b) {
  for (const WorkerCard& card : world.cards) roster_.push_back(card.node);
  network_.watch_reads([this](const ReadSight& sight) {
    mark(static_cast<std::uint64_t>(sight.kind) * 7 + sight.source.value() * 64 +
         sight.reader.value() * 4096);
    tell([&](Watcher& watcher) { watcher.read(*this, sight); });
  });
}

// What ends with the lives is no part of the run.
Cluster::~Cluster() {
  network_.watch_reads({});
}

void Cluster::mark(std::uint64_t value) {
  trace_ = (trace_ ^ value ^ static_cast<std::uint64_t>(now_.picoseconds()) * 3) * kGolden;
  trace_ ^= trace_ >> 29U;
}

void Cluster::schedule(Time at, Action action) {
  agenda_.push({std::max(at, now_), order_++, std::make_shared<Action>(std::move(action))});
}

void Cluster::load() {
  for (std::size_t g = 0; g < world_.groups.size(); ++g) {
    if (chosen(recipe_.groups, g)) continue;
    for (const WorkerId member : world_.groups[g].members) takes_part_[member.index()] = false;
  }
  start_coordinator();
  for (std::size_t w = 0; w < world_.cards.size(); ++w) {
    if (takes_part_[w]) {
      start_worker(WorkerId(w));
    } else {
      network_.crash(WorkerId(w));
    }
  }
  for (std::size_t i = 0; i < script_.tasks.size(); ++i) {
    if (!chosen(recipe_.tasks, i)) continue;
    // The first calls come when everybody knows everybody.
    const Task& task = script_.tasks[i];
    schedule(task.at + world_.coordinator.rebuild_time, [this, &task] {
      if (!calm_) users_.start(task);
    });
  }
  for (std::size_t i = 0; i < script_.faults.size(); ++i) {
    if (!chosen(recipe_.faults, i)) continue;
    const Fault& fault = script_.faults[i];
    schedule(fault.at + world_.coordinator.rebuild_time, [this, &fault] { light(fault); });
  }
  schedule(calm_at(), [this] { calm_down(); });
}

void Cluster::run(const std::function<bool()>& stop) {
  load();
  while (!over_ && !stuck() && !stop()) {
    const Time before = now_;
    step();
    at_once_ = now_ == before ? at_once_ + 1 : 0;
  }
  if (over_) {
    tell([&](Watcher& watcher) { watcher.ended(*this); });
  }
}

Time Cluster::next_time() const {
  Time next = control_.next();
  if (!agenda_.empty()) next = std::min(next, agenda_.top().at);
  if (coordinator_) next = std::min(next, coordinator_next_);
  if (zombie_) next = std::min({next, zombie_next_, zombie_until_});
  for (const auto& life : lives_) {
    if (life) next = std::min(next, life->next_deadline());
  }
  return next;
}

void Cluster::step() {
  ++steps_;
  for (std::size_t i = 0; i < fuses_.size(); ++i) {
    if (fuses_[i].step > steps_) continue;
    const Fault& fault = *fuses_[i].fault;
    fuses_.erase(fuses_.begin() + static_cast<std::ptrdiff_t>(i));
    return strike(fault);
  }
  if (!ready_.empty()) {
    const WorkerId worker = ready_.front();
    ready_.erase(ready_.begin());
    if (lives_[worker.index()]) {
      step_worker(worker, "Transfers", [](Life& life) { life.pump(); });
    }
    return;
  }
  happen();
}

void Cluster::happen() {
  const Time next = next_time();
  const bool before_data =
      control_.next() <= next || (!agenda_.empty() && agenda_.top().at <= next);
  if (network_.step(next, !before_data)) {
    now_ = network_.now();
    for (const WorkerId worker : network_.take_ready()) ready_.push_back(worker);
    return;
  }
  if (next == Time::never()) {
    over_ = true;
    return;
  }
  now_ = std::max(now_, next);
  if (!agenda_.empty() && agenda_.top().at <= now_) {
    const auto action = agenda_.top().action;
    agenda_.pop();
    return (*action)();
  }
  if (control_.next() <= now_) {
    if (const auto delivery = control_.take()) deliver(*delivery);
    return;
  }
  if (coordinator_ && coordinator_next_ <= now_) {
    return step_coordinator(CoordinatorTimePassed{}, "Time", {});
  }
  if (zombie_ && (zombie_next_ <= now_ || zombie_until_ <= now_)) return step_zombie();
  for (std::size_t w = 0; w < lives_.size(); ++w) {
    if (!lives_[w] || lives_[w]->next_deadline() > now_) continue;
    return step_worker(WorkerId(w), "Time", [](Life& life) { life.pump(); });
  }
}

void Cluster::deliver(const Delivery& delivery) {
  const WorkerId worker = delivery.worker;
  if (const auto* up = std::get_if<ToCoordinator>(&delivery.frame)) {
    if (coordinator_) step_coordinator(FromWorker{worker, *up}, name_of(*up), worker);
    return;
  }
  const ToWorker& down = std::get<ToWorker>(delivery.frame);
  if (!lives_[worker.index()]) return;
  step_worker(worker, name_of(down), [&](Life& life) { life.receive(down); });
}

void Cluster::step_worker(WorkerId worker, const char* event,
                          const std::function<void(Life&)>& act) {
  mark(worker.value() + 1000 + static_cast<std::uint64_t>(event[0]) * 3);
  const AgentSight sight{worker, event};
  tell([&](Watcher& watcher) { watcher.before_agent(*this, sight); });
  act(*lives_[worker.index()]);
  for (const WorkerId ready : network_.take_ready()) ready_.push_back(ready);
  if (!lives_[worker.index()]) return;
  tell([&](Watcher& watcher) { watcher.after_agent(*this, sight); });
}

// --- The coordinator ----------------------------------------------------------------------------

void Cluster::start_coordinator() {
  coordinator_ =
      std::make_unique<Coordinator>(*world_.topology, roster_, world_.spaces, world_.coordinator);
  ++coordinator_life_;
  tell([&](Watcher& watcher) { watcher.coordinator_started(*this); });
  step_coordinator(CoordinatorTimePassed{}, "Time", {});
}

void Cluster::step_coordinator(const CoordinatorEvent& event, const char* name, WorkerId worker) {
  mark(static_cast<std::uint64_t>(name[0]) * 5 + (worker.valid() ? worker.value() : 999U));
  std::vector<CoordinatorCommand> commands;
  coordinator_next_ = coordinator_->step(event, now_, commands);
  const CoordinatorSight sight{name, worker, commands, false};
  tell([&](Watcher& watcher) { watcher.after_coordinator(*this, sight); });
  for (const CoordinatorCommand& command : commands) {
    if (coordinator_dies_after_) {
      if (*coordinator_dies_after_ == 0) return crash_coordinator();
      --*coordinator_dies_after_;
    }
    carry_out(command);
  }
}

void Cluster::carry_out(const CoordinatorCommand& command) {
  if (const auto* send = std::get_if<SendToWorker>(&command)) {
    const Fate fate = control_.send(send->worker, send->frame, now_);
    mark(send->worker.value() * 8 + fate.copies);
    tell([&](Watcher& watcher) { watcher.sent(*this, send->worker, send->frame, fate); });
    return;
  }
  plan(command);
}

void Cluster::step_zombie() {
  if (zombie_until_ <= now_) {
    zombie_.reset();
    return;
  }
  std::vector<CoordinatorCommand> commands;
  zombie_next_ = zombie_->step(CoordinatorTimePassed{}, now_, commands);
  tell([&](Watcher& watcher) {
    watcher.after_coordinator(*this, {"Time", WorkerId{}, commands, true});
  });
  for (const CoordinatorCommand& command : commands) {
    if (std::holds_alternative<SendToWorker>(command)) carry_out(command);
  }
}

void Cluster::plan(const CoordinatorCommand& command) {
  const Time took = planning_dice_.between(world_.times.least_planning, world_.times.most_planning);
  schedule(now_ + took, [this, command, life = coordinator_life_] {
    if (!coordinator_ || coordinator_life_ != life) return;
    const auto answer = answer_question(router_, command, world_.policy, {});
    if (answer) step_coordinator(*answer, name_of_answer(command), {});
  });
}

// --- Workers ------------------------------------------------------------------------------------

void Cluster::start_worker(WorkerId worker) {
  if (!network_.alive(worker)) network_.restart(worker);
  const Incarnation incarnation = ++incarnations_[worker.index()];
  LifeWays ways;
  ways.send = [this, worker](const ToCoordinator& frame) {
    const Fate fate = control_.send(worker, frame, now_);
    mark(worker.value() * 16 + fate.copies);
    tell([&](Watcher& watcher) { watcher.sent(*this, worker, frame, fate); });
  };
  ways.finished = [this, worker](CallId id, const CallResult& result) {
    mark(id * 32 + static_cast<std::uint64_t>(result.status));
    tell([&](Watcher& watcher) {
      watcher.call_ended(*this, {worker, id, nullptr, Time::never()}, result);
    });
    users_.ended(worker, id, result);
  };
  lives_[worker.index()] =
      std::make_unique<Life>(world_, worker, incarnation, network_, std::move(ways));
  tell([&](Watcher& watcher) { watcher.started(*this, worker); });
  step_worker(worker, "Time", [](Life& life) { life.pump(); });
}

const Agent* Cluster::agent(WorkerId worker) const {
  const auto& life = lives_[worker.index()];
  return life ? &life->agent() : nullptr;
}

std::span<const std::byte> Cluster::memory(WorkerId worker, SlotNumber slot) const {
  const auto& life = lives_[worker.index()];
  return life ? life->memory(slot) : std::span<std::byte>{};
}

SlotNumber Cluster::slot_of(WorkerId worker, RegionId region) const {
  return lives_[worker.index()]->slot_of(region);
}

bool Cluster::reachable(WorkerId worker) const {
  const std::size_t count = lives_.size();
  if (control_cuts_[worker.index() * 2] > 0 || control_cuts_[worker.index() * 2 + 1] > 0) {
    return false;
  }
  for (std::size_t other = 0; other < count; ++other) {
    if (data_cuts_[worker.index() * count + other] > 0) return false;
    if (data_cuts_[other * count + worker.index()] > 0) return false;
  }
  return true;
}

// --- What users do ------------------------------------------------------------------------------

void Cluster::call(WorkerId worker, CallId id, const Call& call, Time deadline) {
  mark(id);
  tell([&](Watcher& watcher) { watcher.call_made(*this, {worker, id, &call, deadline}); });
  step_worker(worker, "Call", [&](Life& life) { life.call(id, call, deadline); });
}

void Cluster::write(WorkerId worker, SlotNumber slot, const Content* content) {
  const std::span<std::byte> memory = lives_[worker.index()]->memory(slot);
  const ModelSpace& space = *world_.spaces[world_.cards[worker.index()].space.index()];
  const ShardId shard = world_.cards[worker.index()].shard;
  if (content == nullptr) {
    for (std::byte& byte : memory) byte = static_cast<std::byte>(scribble_.next() & 0xffU);
  } else {
    std::size_t at = 0;
    for (std::uint32_t number = 0; number < space.blocks(shard); ++number) {
      const BlockId block = space.block(shard, number);
      const auto bytes = static_cast<std::size_t>(space.block_bytes()[block.index()].count());
      write_block(*content, block, memory.subspan(at, bytes));
      at += bytes;
    }
  }
  tell([&](Watcher& watcher) { watcher.wrote(*this, worker, slot, content); });
}

void Cluster::later(Time at, const Task& task, WorkerId worker) {
  schedule(at, [this, task, worker] { users_.perform(task, worker); });
}

}  // namespace holdfast::storm
