// The user's calls: how each starts, is asked of the coordinator, and ends.
#include <algorithm>

#include "core/catalog/agent_state.hpp"

namespace holdfast {

void Agent::State::on(const CallMade& event) {
  if (stopped || left) return finish(event.id, CallStatus::Stopped);
  if (event.deadline <= now) return finish(event.id, CallStatus::DeadlineExceeded);
  std::visit(
      [&](const auto& call) {
        if constexpr (requires { start(event, call); }) {
          start(event, call);
        } else {
          open(event);
        }
      },
      event.call);
}

void Agent::State::open(const CallMade& made) {
  OpenCall call;
  call.id = made.id;
  call.call = made.call;
  call.deadline = made.deadline;
  calls.push_back(call);
  ask(calls.back());
}

// --- Publish and unpublish -----------------------------------------------------------------------

void Agent::State::start(const CallMade& made, const PublishCall& call) {
  if (leaving) return finish(made.id, CallStatus::Stopped, "the worker leaves");
  if (card.host_memory) {
    return finish(made.id, CallStatus::BufferBusy, "host memory keeps copies for others");
  }
  if (fetch || called_about(call.version)) {
    return finish(made.id, CallStatus::BufferBusy, "another call is open");
  }
  std::optional<SlotNumber> slot = slot_of(call.version);
  const bool was_there = slot.has_value();
  for (SlotNumber s = 0; s < slots.size() && !slot; ++s) {
    if (is_empty(s)) slot = s;
  }
  if (!slot) return finish(made.id, CallStatus::BufferBusy, "another version is in the buffer");
  Slot& buffer = slots[*slot];
  if (buffer.digesting) return finish(made.id, CallStatus::BufferBusy, "a publish is open");
  if (was_there && (buffer.holding->state == HoldingState::Hidden ||
                    buffer.holding->state == HoldingState::Filling)) {
    return finish(made.id, CallStatus::BufferBusy, "the version drains or is not all here");
  }
  OpenCall opened;
  opened.id = made.id;
  opened.call = call;
  opened.deadline = made.deadline;
  opened.ready = false;
  opened.was_there = was_there;
  opened.slot = *slot;
  calls.push_back(opened);
  buffer.digesting = true;
  emit(DigestSlot{*slot, card.shard});
}

void Agent::State::on(const SlotDigested& event) {
  if (event.slot >= slots.size() || !slots[event.slot].digesting) return;
  Slot& slot = slots[event.slot];
  slot.digesting = false;
  const auto call = std::find_if(calls.begin(), calls.end(), [&](const OpenCall& c) {
    return !c.ready && c.slot == event.slot;
  });
  if (call == calls.end()) return;  // its deadline came first
  if (!event.digests || event.digests->size() != space->blocks(card.shard)) {
    return finish(call->id, CallStatus::BufferBusy, "the digests do not fit the shard");
  }
  if (!call->was_there) {
    Holding holding;
    holding.version = std::get<PublishCall>(call->call).version;
    holding.shard = card.shard;
    holding.verified = BlockSet::full(space->blocks(card.shard));
    slot.holding = std::move(holding);
    slot.shown = HoldingState::Published;
    slot.tables = nullptr;
    slot.unheard = call->id;
  }
  if (slot.holding) slot.holding->digests = event.digests;
  call->ready = true;
  ask(*call);
}

// A version that is refused is not there. What ended for want of time may have been recorded: the
// answer comes later, or it is asked for again.
void Agent::State::published(SlotNumber slot, bool was_there, const CallResult& result) {
  switch (result.status) {
    case CallStatus::Ok:
      slots[slot].holding->root = result.root;
      slots[slot].unheard.reset();
      return;
    case CallStatus::VersionConflict:
    case CallStatus::VersionNotNew:
    case CallStatus::UnknownVersion:
    case CallStatus::Withdrawn:
    case CallStatus::BufferBusy:
      if (!was_there || slots[slot].unheard) drop_or_clear(slot);
      return;
    default:
      return;
  }
}

// Publishes that ended before a coordinator answered: this one may not have them.
void Agent::State::ask_unheard() {
  for (const Slot& slot : slots) {
    if (!slot.unheard) continue;
    const bool open = std::any_of(calls.begin(), calls.end(),
                                  [&](const OpenCall& call) { return call.id == *slot.unheard; });
    if (!open) tell(Publish{*slot.unheard, slot.holding->version, slot.holding->digests, now});
  }
}

bool Agent::State::called_about(const Version& version) const {
  return std::any_of(calls.begin(), calls.end(), [&](const OpenCall& open) {
    const auto* unpublish = std::get_if<UnpublishCall>(&open.call);
    const auto* publish = std::get_if<PublishCall>(&open.call);
    return (unpublish != nullptr && unpublish->version == version) ||
           (publish != nullptr && publish->version == version);
  });
}

void Agent::State::start(const CallMade& made, const UnpublishCall& call) {
  const auto slot = slot_of(call.version);
  if (!slot) return finish(made.id, CallStatus::UnknownVersion);
  if (called_about(call.version) || filling(*slot)) {
    return finish(made.id, CallStatus::BufferBusy, "another call is about it");
  }
  // What the group is about to run is not taken back before the fetch is over for all.
  const bool fetched = fetch && decision.n == fetch->n &&
                       decision.generation == fetch->generation &&
                       decision.result.version == call.version;
  if (fetch && (fetched || fetch->call.destination == Destination::InPlace)) {
    return finish(made.id, CallStatus::BufferBusy, "a fetch is open");
  }
  open(made);
}

// --- The others ----------------------------------------------------------------------------------

void Agent::State::start(const CallMade& made, const LeaveCall&) {
  const bool asked = std::any_of(calls.begin(), calls.end(), [](const OpenCall& open) {
    return std::holds_alternative<LeaveCall>(open.call);
  });
  if (asked) return finish(made.id, CallStatus::BufferBusy, "a leave is open");
  leaving = true;
  open(made);
}

void Agent::State::start(const CallMade& made, const CancelCall& call) {
  if (!fetch || fetch->id != call.fetch) return finish(made.id, CallStatus::Ok);  // it has ended
  open(made);
}

void Agent::State::on(const LeaveNow& /*message*/) {
  left = true;
  leaving = true;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    if (!std::holds_alternative<LeaveCall>(calls[c].call)) continue;
    finish(calls[c].id, CallStatus::Ok);
    break;
  }
  finish_all(CallStatus::Stopped);
  for (Transfer& transfer : transfers) stop_transfer(transfer);
  requests.clear();
  end_grants(nullptr);
  run_slot(std::nullopt);
}

void Agent::State::on(const Answer& message) {
  const auto call = std::find_if(calls.begin(), calls.end(),
                                 [&](const OpenCall& c) { return c.id == message.call; });
  if (call == calls.end()) {
    for (SlotNumber slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot].unheard == message.call) published(slot, false, message.result);
    }
    return;
  }
  if (!call->ready) return;
  CallResult result = message.result;
  if (const auto* publish = std::get_if<PublishCall>(&call->call)) {
    if (const auto slot = slot_of(publish->version)) published(*slot, call->was_there, result);
  }
  if (const auto* unpublish = std::get_if<UnpublishCall>(&call->call)) {
    // Only what has drained here is done, whatever the coordinator thinks.
    if (result.status == CallStatus::Ok && slot_of(unpublish->version)) {
      return drain_by_itself(*call);
    }
    result.revoked = call->revoked;
  }
  if (std::holds_alternative<LeaveCall>(call->call)) {
    if (result.status == CallStatus::Ok) return on(LeaveNow{});  // which may be lost
    leaving = false;
  }
  if (std::holds_alternative<LineageCall>(call->call)) {
    lineage = std::max(lineage, result.version.lineage);
  }
  finish(message.call, std::move(result));
}

// The coordinator does not know the version, so that it sends no Clear.
void Agent::State::drain_by_itself(OpenCall& call) {
  const auto& unpublish = std::get<UnpublishCall>(call.call);
  const SlotNumber slot = *slot_of(unpublish.version);
  call.answered = true;
  slots[slot].clearing =
      Clearing{ClearReason::Unpublish, unpublish.on_deadline, call.deadline, false, 0};
  hide(slot);
}

// --- Asking and ending ---------------------------------------------------------------------------

// The answer, with the name of the error, has to come back by the deadline.
Time Agent::State::told(Time deadline) const {
  if (deadline == Time::never() || deadline <= now) return deadline;
  return deadline - std::min(config.answer_time, (deadline - now) / 2);
}

void Agent::State::ask(OpenCall& call) {
  if (!connected() || !call.ready || call.asked == session->key()) return;
  call.asked = session->key();
  const Time deadline = told(call.deadline);
  struct Asker {
    State& state;
    const OpenCall& call;
    Time deadline;
    void operator()(const PublishCall& c) const {
      const auto slot = state.slot_of(c.version);
      if (!slot) return;  // cleared meanwhile: the deadline ends it
      state.tell(Publish{call.id, c.version, state.slots[*slot].holding->digests, deadline});
    }
    void operator()(const UnpublishCall& c) const {
      state.tell(AskUnpublish{call.id, c.version, deadline});
    }
    void operator()(const FetchCall&) const {}
    void operator()(const CancelCall&) const {
      if (state.fetch) state.tell(AskCancel{state.fetch->n});
    }
    void operator()(const WithdrawCall& c) const { state.tell(AskWithdraw{call.id, c.version}); }
    void operator()(const RetainCall& c) const {
      state.tell(AskRetain{call.id, c.version, {c.copies, c.level}, deadline});
    }
    void operator()(const ReleaseCall& c) const { state.tell(AskRelease{call.id, c.version}); }
    void operator()(const InstalledCall& c) const {
      state.tell(AskInstalled{call.id, c.version, c.root, c.groups, deadline});
    }
    void operator()(const LineageCall&) const { state.tell(AskLineage{call.id}); }
    void operator()(const LeaveCall&) const { state.tell(AskLeave{call.id, deadline}); }
  };
  std::visit(Asker{*this, call, deadline}, call.call);
}

// The fetch first: a cancellation names its number.
void Agent::State::ask_all() {
  ask_fetch();
  for (OpenCall& call : calls) ask(call);
}

// True where only this worker's own transport is waited for.
bool Agent::State::returns_soon(const OpenCall& call) const {
  const auto* unpublish = std::get_if<UnpublishCall>(&call.call);
  if (unpublish == nullptr) return false;
  const auto slot = slot_of(unpublish->version);
  if (!slot || !slots[*slot].clearing) return false;
  return slots[*slot].clearing->revoking || !read_by_anyone(unpublish->version);
}

void Agent::State::expire_calls() {
  std::vector<CallId> over;
  for (const OpenCall& call : calls) {
    if (call.deadline <= now && !returns_soon(call)) over.push_back(call.id);
  }
  for (const CallId id : over) {
    const auto call =
        std::find_if(calls.begin(), calls.end(), [id](const OpenCall& c) { return c.id == id; });
    CallResult result = overdue(*call);
    if (call->asked.epoch != 0) tell(CallEnded{id});
    if (std::holds_alternative<LeaveCall>(call->call)) leaving = false;
    finish(id, std::move(result));
  }
}

CallResult Agent::State::overdue(const OpenCall& call) const {
  CallResult result;
  result.status = connected() ? CallStatus::DeadlineExceeded : CallStatus::CoordinatorUnreachable;
  const auto* unpublish = std::get_if<UnpublishCall>(&call.call);
  if (unpublish == nullptr) return result;
  result.version = unpublish->version;
  const auto slot = slot_of(unpublish->version);
  if (!slot) {
    result.status = CallStatus::Ok;  // drained here, and no read can succeed any more
    result.revoked = call.revoked;
  } else if (slots[*slot].clearing) {
    result.status = CallStatus::DrainTimeout;
    result.who = readers_of(unpublish->version);
  }
  return result;
}

void Agent::State::finish(CallId id, CallResult result) {
  std::erase_if(calls, [id](const OpenCall& call) { return call.id == id; });
  emit(FinishCall{id, std::move(result)});
}

void Agent::State::finish(CallId id, CallStatus status, const std::string& reason) {
  CallResult result;
  result.status = status;
  result.reason = reason;
  finish(id, std::move(result));
}

void Agent::State::finish_all(CallStatus status) {
  while (!calls.empty()) finish(calls.front().id, status);
  if (!fetch) return;
  CallResult result;
  result.status = status;
  if (status == CallStatus::Fenced) {
    result.status = CallStatus::GroupBroken;
    result.who = {self};
  }
  end_fetch(std::move(result));
}

}  // namespace holdfast
