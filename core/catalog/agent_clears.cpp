// How a version leaves its buffer: hidden, drained by the worker's own table, revoked if need be.
#include <algorithm>

#include "core/catalog/agent_state.hpp"
#include "core/mutant.hpp"

namespace holdfast {

void Agent::State::on(const Clear& message) {
  const auto number = slot_of(message.version);
  if (!number) return tell(Cleared{message.version, 0});
  Slot& slot = slots[*number];
  Clearing clearing;
  if (slot.clearing) clearing = *slot.clearing;  // only its terms change
  clearing.reason = message.reason;
  clearing.on_deadline = message.on_deadline;
  clearing.deadline = message.deadline;
  if (const OpenCall* call = unpublish_of(message.version)) {
    clearing.on_deadline = std::get<UnpublishCall>(call->call).on_deadline;
  }
  slot.clearing = clearing;
  hide(*number);
  settle_clear(*number);  // what comes next may need the buffer
}

// No reader gets in any more, nor those who were about to: they were not told yet. Nothing more is
// read into it.
void Agent::State::hide(SlotNumber number) {
  Slot& slot = slots[number];
  Holding& holding = *slot.holding;
  if (holding.state != HoldingState::Hidden) slot.shown = holding.state;
  holding.state = HoldingState::Hidden;
  if (running == number) run_slot(std::nullopt);
  for (Transfer& transfer : transfers) {
    if (transfer.slot == number && !transfer.filled) stop_transfer(transfer);
  }
  std::vector<ReadGrant> gone;
  for (std::size_t g = grants.size(); g-- > 0;) {
    const ReadGrant grant = grants[g];
    if (grant.version != holding.version || phases[g] != GrantPhase::Allowing) continue;
    if (end_grant(g)) gone.push_back(grant);
  }
  if (!gone.empty()) tell(GrantsGone{std::move(gone)});
}

// What is not drained yet serves again. The group does not run it: other members may have cleared
// it.
void Agent::State::on(const Unhide& message) {
  const auto slot = slot_of(message.version);
  if (!slot || slots[*slot].holding->state != HoldingState::Hidden) return;
  slots[*slot].holding->state = slots[*slot].shown;
  slots[*slot].clearing.reset();
}

void Agent::State::settle_clear(SlotNumber number) {
  Slot& slot = slots[number];
  if (!slot.clearing) return;
  if (read_by_anyone(slot.holding->version) && !mutated(Mutant::SkipDrain)) {
    if (slot.clearing->deadline <= now && !slot.clearing->revoking) clear_overdue(number);
    return;
  }
  // Filled transfers told the readers what is here until now.
  for (Transfer& transfer : transfers) {
    if (transfer.slot == number) stop_transfer(transfer);
  }
  if (!in_transfer(number) && !slot.digesting) cleared(number);
}

void Agent::State::clear_overdue(SlotNumber number) {
  Slot& slot = slots[number];
  const Version version = slot.holding->version;
  const std::vector<WorkerId> readers = readers_of(version);
  if (slot.clearing->on_deadline == OnDeadline::Fail) {
    const bool given_up = slot.clearing->reason == ClearReason::Unpublish;
    slot.clearing.reset();
    tell(ClearFailed{version, readers});
    const OpenCall* call = unpublish_of(version);
    if (call == nullptr) {
      // Its owner did not ask for it: it is offered again, also if no coordinator is left to say
      // so.
      if (!given_up) slot.holding->state = slot.shown;
      return;
    }
    CallResult result;
    result.status = CallStatus::DrainTimeout;
    result.version = version;
    result.who = readers;
    return finish(call->id, std::move(result));
  }
  slot.clearing->revoking = true;
  for (const WorkerId reader : readers) {
    if (!revoking(reader, version)) ++slot.clearing->revoked;
  }
  end_grants(&version);
}

void Agent::State::cleared(SlotNumber number) {
  const Version version = slots[number].holding->version;
  const std::uint32_t revoked = slots[number].clearing->revoked;
  for (OpenCall& call : calls) {
    const auto* unpublish = std::get_if<UnpublishCall>(&call.call);
    if (unpublish != nullptr && unpublish->version == version) call.revoked = revoked;
  }
  empty_slot(number);
  tell(Cleared{version, revoked});
  const OpenCall* call = unpublish_of(version);
  if (call == nullptr || !call->answered) return;
  CallResult result;
  result.version = version;
  result.revoked = revoked;
  finish(call->id, std::move(result));
}

// The user has its buffer back at once, or as soon as nobody can read from it.
void Agent::State::drop_or_clear(SlotNumber number) {
  if (!read_by_anyone(slots[number].holding->version) && !in_transfer(number)) {
    return empty_slot(number);
  }
  slots[number].clearing = Clearing{ClearReason::Unpublish, OnDeadline::Revoke, now, false, 0};
  hide(number);
}

const Agent::State::OpenCall* Agent::State::unpublish_of(const Version& version) const {
  const auto call = std::find_if(calls.begin(), calls.end(), [&](const OpenCall& open) {
    const auto* unpublish = std::get_if<UnpublishCall>(&open.call);
    return unpublish != nullptr && unpublish->version == version;
  });
  return call == calls.end() ? nullptr : &*call;
}

}  // namespace holdfast
