// How an agent finds its coordinator: greeting, sessions, fencing.
#include <algorithm>

#include "core/catalog/agent_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {
namespace {

constexpr Time kLongestHelloWait = seconds(1);

}  // namespace

void Agent::State::on(const FromCoordinator& event) {
  if (stopped) return;
  std::visit([this](const auto& frame) { take(frame); }, event.frame);
}

// A key is used once: a Welcome that comes again must not start its session anew, and one of an
// epoch that is over must not bring it back.
void Agent::State::take(const Welcome& welcome) {
  if (left || welcome.incarnation != incarnation || fencing) return;
  const SessionKey key{welcome.epoch, welcome.incarnation};
  if (welcome.epoch < epoch || key < last_key) return;
  if (!greeting) {
    // It answers an old Hello: let the coordinator hear what is so now.
    if (key > last_key) say_hello();
    return;
  }
  if (key == last_key && !session) return;
  if (key != last_key) {
    epoch = welcome.epoch;
    last_key = key;
    session.emplace(key, config.session);
  }
  greeting = false;
  sent_at = now;
  enter_generation(welcome.generation);
  for (WorkerMessageRef& message : unsent) session->send(std::move(message), now);
  unsent = {};
  for (const Transfer& transfer : transfers) {
    for (const ParentWanted& wanted : transfer.orphans) tell(wanted);
    if (transfer.filled) tell(Filled{transfer.ref->id, transfer.ref->version});
  }
  ask_unheard();
  ask_all();
}

// The old self is over: nobody reads from it, it reads nothing, its calls end. What it has verified
// is as good as before.
void Agent::State::take(const FencedOff& fenced) {
  if (left || fenced.incarnation != incarnation || fenced.epoch < epoch) return;
  epoch = fenced.epoch;
  incarnation = std::max(fenced.largest, incarnation) + 1;
  session.reset();
  unsent.clear();
  requests.clear();
  run_slot(std::nullopt);
  paused.reset();
  last_n = 0;
  leaving = false;
  finish_all(CallStatus::Fenced);
  for (Transfer& transfer : transfers) stop_transfer(transfer);
  end_grants(nullptr);
  for (Slot& slot : slots) slot.clearing.reset();
  fencing = true;
  say_hello();
}

void Agent::State::take(const UnknownSession& unknown) {
  if (left || unknown.incarnation != incarnation || greeting) return;
  if (unknown.epoch != 0 && unknown.epoch < epoch) return;
  say_hello();
}

void Agent::State::take(const CoordinatorFrame& frame) {
  // A frame of another session: of an epoch or incarnation that is over, or of one whose Welcome
  // has not come yet. The coordinator sends the latter again.
  // What comes after Hello is not in the report: from a coordinator that is still there it comes
  // again, from one that is gone it must not count.
  if (!session || greeting) return;
  if (mutated(Mutant::SkipEpochCheck) && frame.key.epoch < epoch &&
      frame.key.incarnation == incarnation) {
    CoordinatorFrame renamed = frame;
    renamed.key = session->key();
    return take(renamed);
  }
  std::vector<CoordinatorMessageRef> messages;
  if (session->receive(frame, now, messages) != FrameAnswer::Taken) return;
  for (const CoordinatorMessageRef& message : messages) {
    if (!left) std::visit([this](const auto& m) { on(m); }, *message);
  }
  if (left) emit(SendToCoordinator{WorkerFrame{session->key(), 0, session->received(), nullptr}});
}

// The session, if there is one, is kept: the coordinator may still have it.
void Agent::State::say_hello() {
  ++greetings;
  greeting = true;
  first_hello = true;
  hello_at = now;
  hello_wait = config.hello_interval;
}

// Whom the coordinator has declared dead comes back only when nothing of the old self is left: no
// byte can be read from it, and it reads none.
void Agent::State::finish_fencing() {
  if (!fencing || !grants.empty() || !transfers.empty()) return;
  fencing = false;
  hello_at = now;
}

void Agent::State::greet() {
  if (silent() || !greeting || fencing || hello_at > now) return;
  if (first_hello) unsent.clear();  // the report has it
  first_hello = false;
  emit(SendToCoordinator{
      Hello{incarnation, std::make_shared<const WorkerReport>(report()), greetings}});
  hello_at = now + hello_wait;
  hello_wait = std::min(hello_wait * 2, std::max(kLongestHelloWait, config.hello_interval));
}

void Agent::State::flush() {
  if (silent() || !connected()) return;
  std::vector<WorkerFrame> frames;
  session->due(now, frames);
  if (frames.empty() && now - sent_at >= config.heartbeat) {
    frames.push_back({session->key(), 0, session->received(), nullptr});
  }
  if (!frames.empty()) sent_at = now;
  for (WorkerFrame& frame : frames) emit(SendToCoordinator{std::move(frame)});
}

void Agent::State::tell(WorkerMessage message) {
  if (silent()) return;
  auto shared = std::make_shared<const WorkerMessage>(std::move(message));
  if (connected()) {
    session->send(std::move(shared), now);
  } else {
    unsent.push_back(std::move(shared));
  }
}

void Agent::State::mention(WorkerMessage message) {
  if (connected() && !silent()) {
    session->send(std::make_shared<const WorkerMessage>(std::move(message)), now);
  }
}

}  // namespace holdfast
