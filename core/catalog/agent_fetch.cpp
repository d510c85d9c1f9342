// Fetches: their numbers, what was decided, how they end, and what the group then runs.
#include <algorithm>

#include "core/catalog/agent_state.hpp"

namespace holdfast {

void Agent::State::start(const CallMade& made, const FetchCall& call) {
  if (!card.group.valid()) {
    return finish(made.id, CallStatus::GroupMismatch, "the worker is in no group");
  }
  const bool busy = std::any_of(calls.begin(), calls.end(), [](const OpenCall& open) {
    return std::holds_alternative<PublishCall>(open.call) ||
           std::holds_alternative<UnpublishCall>(open.call);
  });
  // Every call counts, whatever comes of it: the other members count theirs. The coordinator ends
  // the numbers that it never heard of.
  ++last_n;
  if (leaving) return finish(made.id, CallStatus::Stopped, "the worker leaves");
  if (fetch || busy) return finish(made.id, CallStatus::BufferBusy, "another call is open");
  Fetch opened;
  opened.id = made.id;
  opened.call = call;
  opened.deadline = made.deadline;
  opened.stop_at = made.deadline == Time::never()
                       ? made.deadline
                       : made.deadline - std::min(config.stop_time, (made.deadline - now) / 2);
  opened.n = last_n;
  opened.generation = generation;
  fetch = std::move(opened);
  ask_fetch();
}

void Agent::State::ask_fetch() {
  if (!fetch || fetch->end || !connected() || fetch->asked == session->key()) return;
  fetch->asked = session->key();
  tell(AskFetch{fetch->n, fetch->generation, fetch->call, told(fetch->deadline)});
}

void Agent::State::on(const Decided& message) {
  const Decision& told = message.decision;
  const auto order = [](const Decision& d) { return std::pair(d.generation, d.n); };
  // A decision never changes: one that is known brings nothing but its end.
  if (order(told) > order(decision)) {
    decision = told;
  } else if (order(told) == order(decision) && told.finished && !decision.finished) {
    decision.finished = true;
    decision.end = told.end;
  }
  if (!fetch || fetch->n != told.n || fetch->generation != told.generation) return;
  if (const auto here = slot_of(told.result.version);
      here && told.result.status == CallStatus::Ok && slots[*here].holding->verified.all()) {
    pause(*here);
  }
  if (told.result.status != CallStatus::Ok) {
    end_fetch(told.result);
  } else if (told.finished) {
    end_fetch(told.end);
  }
}

void Agent::State::on(const FetchDone& message) {
  if (decision.n == message.n && decision.generation == message.generation && !decision.finished) {
    decision.finished = true;
    decision.end = message.result;
  }
  // The call may be over, by its deadline here, while the group made it: it runs as one.
  const bool known_later = decision.generation == generation && decision.n > message.n;
  const bool latest = message.generation == generation && !known_later &&
                      (!fetch || fetch->end || fetch->n > message.n);
  // It may never have been called here: the calls of all members are counted alike from now on.
  if (message.generation == generation) last_n = std::max(last_n, message.n);
  const bool ok = message.result.status == CallStatus::Ok;
  if (latest && ok) (void)run(message.result.version);
  const bool same = fetch && !fetch->end && fetch->generation == message.generation;
  if (!ok && message.generation == generation && (latest || (same && fetch->n == message.n))) {
    resume();
  }
  if (same && fetch->n == message.n) return end_fetch(message.result);
  if (same && fetch->n == message.n + 1 && fetch->asked.epoch != 0) {
    // Asked too early: the group had not ended the fetch before.
    fetch->asked = {};
    ask_fetch();
  }
}

// Another incarnation in the group: fetches count from 1, and nothing runs. The open fetch is of
// the generation that is over, asked or not, and ends like everybody's, by FetchDone. Only who is
// that other incarnation has made its call for the new one.
void Agent::State::on(const GenerationIs& message) {
  enter_generation(message.generation);
}

void Agent::State::enter_generation(Generation to) {
  const bool joins = counted_as != incarnation;
  counted_as = incarnation;
  if (to <= generation) return;
  generation = to;
  last_n = 0;
  run_slot(std::nullopt);
  paused.reset();
  if (joins && fetch && !fetch->end) {
    fetch->n = ++last_n;
    fetch->generation = generation;
  }
}

void Agent::State::end_fetch(CallResult result) {
  if (!fetch || fetch->end) return;
  const bool again = result.status == CallStatus::Superseded && !fetch->call.version &&
                     fetch->call.on_newer == OnNewer::Restart && fetch->generation == generation &&
                     fetch->deadline > now;
  if (result.status != CallStatus::Ok) stop_filling();
  if (again) {
    fetch->n = ++last_n;
    fetch->asked = {};
    for (OpenCall& call : calls) {
      if (std::holds_alternative<CancelCall>(call.call)) call.asked = {};
    }
    return ask_all();
  }
  if (result.status == CallStatus::Ok && !run(result.version)) {
    result = {};
    result.status = CallStatus::GroupBroken;
    result.reason = "the version is not all here";
    stop_filling();
  }
  fetch->end = std::move(result);
}

Time Agent::State::given_up_at(const Fetch& open) const {
  return reading() ? open.stop_at : open.deadline;
}

void Agent::State::expire_fetch() {
  if (!fetch || fetch->end || given_up_at(*fetch) > now) return;
  CallResult result;
  result.status = connected() ? CallStatus::DeadlineExceeded : CallStatus::CoordinatorUnreachable;
  end_fetch(std::move(result));
}

// A fetch that failed returns when nothing is read any more.
void Agent::State::settle_fetch() {
  if (!fetch || !fetch->end || reading()) return;
  const CallId id = fetch->id;
  CallResult result = std::move(*fetch->end);
  fetch.reset();
  finish(id, std::move(result));
  std::vector<CallId> cancels;
  for (const OpenCall& call : calls) {
    const auto* cancel = std::get_if<CancelCall>(&call.call);
    if (cancel != nullptr && cancel->fetch == id) cancels.push_back(call.id);
  }
  for (const CallId cancel : cancels) finish(cancel, CallStatus::Ok);
}

// False unless every block of it is here and may be read.
bool Agent::State::run(const Version& version) {
  const auto slot = slot_of(version);
  if (!slot) return false;
  const Holding& holding = *slots[*slot].holding;
  if (!holding.verified.all() || holding.state == HoldingState::Hidden) return false;
  run_slot(*slot);
  paused.reset();
  return true;
}

// The new version is here: from now on the group may switch to it at any moment, and no member must
// be found with the old one. The coordinator says how it ended.
void Agent::State::pause(SlotNumber slot) {
  if (!running || *running == slot) return;
  paused = slots[*running].holding->version;
  run_slot(std::nullopt);
}

void Agent::State::resume() {
  if (paused && !running) (void)run(*paused);
  paused.reset();
}

void Agent::State::run_slot(std::optional<SlotNumber> slot) {
  if (running == slot) return;
  if (running) slots[*running].holding->runs = false;
  running = slot;
  if (slot) {
    slots[*slot].holding->runs = true;
    emit(Runs{slots[*slot].holding->version, *slot});
  } else {
    emit(Runs{});
  }
}

}  // namespace holdfast
