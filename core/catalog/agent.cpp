#include "core/catalog/agent.hpp"

#include <algorithm>
#include <cassert>

#include "core/catalog/agent_state.hpp"

namespace holdfast {

Agent::State::State(WorkerId worker, Incarnation first, const WorkerCard& worker_card,
                    std::shared_ptr<const ModelSpace> model, const AgentConfig& agent_config)
    : self(worker),
      incarnation(first),
      card(worker_card),
      space(std::move(model)),
      config(agent_config),
      hello_wait(agent_config.hello_interval) {
  if (!card.host_memory) slots.resize(std::max(card.slots, 1U));
}

Time Agent::State::step(const AgentEvent& event, Time at, std::vector<AgentCommand>& commands) {
  now = at;
  out = &commands;
  std::visit([this](const auto& e) { on(e); }, event);
  settle();
  out = nullptr;
  return next_deadline();
}

// What became possible or overdue, and then everything that is to be said.
void Agent::State::settle() {
  expire_fetch();
  for (SlotNumber slot = 0; slot < slots.size(); ++slot) settle_clear(slot);
  expire_calls();
  settle_requests();
  settle_slots();
  settle_fetch();
  tell_progress();
  finish_fencing();
  greet();
  flush();
}

void Agent::State::shutdown(Time at, std::vector<AgentCommand>& commands) {
  now = at;
  out = &commands;
  finish_all(CallStatus::Stopped);
  for (Transfer& transfer : transfers) stop_transfer(transfer);
  requests.clear();
  end_grants(nullptr);
  run_slot(std::nullopt);
  stopped = true;
  settle();
  out = nullptr;
}

Time Agent::State::next_deadline() const {
  Time next = Time::never();
  const auto at = [&](Time time) { next = std::min(next, time); };
  for (const OpenCall& call : calls) {
    if (!returns_soon(call)) at(call.deadline);
  }
  if (fetch && !fetch->end) at(given_up_at(*fetch));
  for (const Slot& slot : slots) {
    if (slot.clearing && !slot.clearing->revoking && read_by_anyone(slot.holding->version)) {
      at(slot.clearing->deadline);
    }
    if (slot.news && connected()) at(progress_at);
  }
  if (silent()) return next;
  if (greeting) {
    if (!fencing) at(hello_at);
  } else {
    at(session->next_deadline());
    at(sent_at + config.heartbeat);
  }
  return next;
}

// --- The machine from outside --------------------------------------------------------------------

Agent::Agent(WorkerId worker, Incarnation incarnation, const WorkerCard& card,
             std::shared_ptr<const ModelSpace> space, const AgentConfig& config)
    : state_(std::make_unique<State>(worker, incarnation, card, std::move(space), config)) {}
Agent::~Agent() = default;
Agent::Agent(Agent&&) noexcept = default;
Agent& Agent::operator=(Agent&&) noexcept = default;

Time Agent::step(const AgentEvent& event, Time now, std::vector<AgentCommand>& out) {
  const Time next = state_->step(event, now, out);
  assert(broken_invariants(*this, now).empty());
  return next;
}

Time Agent::shutdown(Time now, std::vector<AgentCommand>& out) {
  state_->shutdown(now, out);
  return state_->next_deadline();
}

bool Agent::idle() const {
  const auto digesting = [](const State::Slot& slot) { return slot.digesting; };
  return state_->calls.empty() && !state_->fetch && state_->transfers.empty() &&
         state_->grants.empty() && state_->serving.empty() &&
         std::none_of(state_->slots.begin(), state_->slots.end(), digesting);
}

WorkerId Agent::worker() const {
  return state_->self;
}
Incarnation Agent::incarnation() const {
  return state_->incarnation;
}
Epoch Agent::epoch() const {
  return state_->epoch;
}
bool Agent::connected() const {
  return state_->connected();
}
bool Agent::left() const {
  return state_->left;
}

std::optional<Version> Agent::runs() const {
  if (!state_->running) return std::nullopt;
  return state_->slots[*state_->running].holding->version;
}

WorkerReport Agent::report() const {
  return state_->report();
}

std::vector<std::optional<Holding>> Agent::holdings() const {
  std::vector<std::optional<Holding>> result;
  result.reserve(state_->slots.size());
  for (const State::Slot& slot : state_->slots) result.push_back(slot.holding);
  return result;
}

std::span<const ReadGrant> Agent::grants() const {
  return state_->grants;
}
std::size_t Agent::open_calls() const {
  return state_->calls.size() + (state_->fetch ? 1 : 0);
}
std::size_t Agent::open_transfers() const {
  return state_->transfers.size();
}
std::size_t Agent::memory_bytes() const {
  return state_->memory_bytes();
}

std::vector<std::string> broken_invariants(const Agent& agent, Time now) {
  return agent.state_->problems(now);
}

}  // namespace holdfast
