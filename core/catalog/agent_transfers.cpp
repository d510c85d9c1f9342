// Transfers that fill this worker's buffers, and what is in the buffers.
#include <algorithm>

#include "core/catalog/agent_state.hpp"

namespace holdfast {

// --- Commands of the coordinator -----------------------------------------------------------------

void Agent::State::on(const Begin& message) {
  if (!message.transfer || find_transfer(message.transfer->id) != nullptr) return;
  const PlannedTransfer& planned = *message.transfer;
  const auto slot = prepare(planned);
  if (!slot || filling(*slot)) {
    const auto here = slot_of(planned.version);
    const bool part = here && same_content(*slots[*here].holding, planned);
    tell(TransferStopped{planned.id, planned.version,
                         part ? slots[*here].holding->verified : BlockSet()});
    return;
  }
  std::erase(serving, planned.id);
  Transfer transfer;
  transfer.ref = message.transfer;
  transfer.slot = *slot;
  transfer.edges = message.edges;
  emit(StartTransfer{message.transfer, *slot, slots[*slot].holding->shard, message.sources,
                     message.edges});
  transfers.push_back(std::move(transfer));
  check_filled(transfers.back(), false);
}

void Agent::State::on(const Change& message) {
  Transfer* transfer = find_transfer(message.plan);
  if (transfer == nullptr || transfer->stopping) return;
  const auto changed = [&](StripeId stripe) {
    return std::find(message.drops.begin(), message.drops.end(), stripe) != message.drops.end() ||
           std::any_of(message.edges.begin(), message.edges.end(),
                       [stripe](const LiveEdge& edge) { return edge.stripe == stripe; });
  };
  std::erase_if(transfer->orphans, [&](const ParentWanted& o) { return changed(o.stripe); });
  std::erase_if(transfer->edges, [&](const LiveEdge& edge) { return changed(edge.stripe); });
  transfer->edges.insert(transfer->edges.end(), message.edges.begin(), message.edges.end());
  emit(ChangeTransfer{message.plan, message.drops, message.edges, message.sources});
}

void Agent::State::on(const Stop& message) {
  Transfer* transfer = find_transfer(message.plan);
  if (transfer == nullptr) return tell(TransferStopped{message.plan, {}, {}});
  stop_transfer(*transfer);
}

void Agent::State::on(const Tell& message) {
  const auto slot = slot_of(message.version);
  Progress progress;
  progress.version = message.version;
  progress.told = true;
  progress.n = message.n;
  if (slot) {
    // What nobody has agreed to is no part of the version; who asks knows of it, if it is.
    if (!slots[*slot].unheard) progress.verified = slots[*slot].holding->verified;
    const auto transfer = std::find_if(transfers.begin(), transfers.end(),
                                       [&](const Transfer& t) { return t.slot == *slot; });
    if (transfer != transfers.end()) progress.plan = transfer->ref->id;
    slots[*slot].news = false;
  }
  tell(std::move(progress));
}

void Agent::State::on(const Note& message) {
  const auto slot = slot_of(message.version);
  if (!slot) return;
  slots[*slot].holding->withdrawn = message.withdrawn;
  slots[*slot].holding->retention = message.retention;
}

// --- News of the transfers -----------------------------------------------------------------------

void Agent::State::on(const BlockHere& event) {
  Transfer* transfer = find_transfer(event.plan);
  if (transfer == nullptr) return;
  Slot& slot = slots[transfer->slot];
  const ShardId shard = slot.holding->shard;
  const auto number = space->number(shard, event.block);
  if (!number || !slot.holding->verified.add(*number)) return;
  slot.news = true;
  check_filled(*transfer, false);
}

void Agent::State::on(const TransferFilled& event) {
  Transfer* transfer = find_transfer(event.plan);
  if (transfer != nullptr) check_filled(*transfer, true);
}

// Every block of the shard is here, whoever brought it. Host memory is given a part of the model.
void Agent::State::check_filled(Transfer& transfer, bool told_all) {
  Slot& slot = slots[transfer.slot];
  if (!slot.holding->verified.all() && !(told_all && card.host_memory)) return;
  HoldingState& state =
      slot.holding->state == HoldingState::Hidden ? slot.shown : slot.holding->state;
  if (state == HoldingState::Filling) state = HoldingState::Complete;
  if (transfer.filled || transfer.stopping) return;
  transfer.filled = true;
  slot.news = false;
  pause(transfer.slot);
  tell(Filled{transfer.ref->id, transfer.ref->version});
}

void Agent::State::on(const TransferQuiet& event) {
  for (Transfer& transfer : transfers) {
    if (transfer.ref->id == event.plan && transfer.stopping) transfer.quiet = true;
  }
}

void Agent::State::on(const TransferIdle& event) {
  const auto transfer = std::find_if(transfers.begin(), transfers.end(), [&](const Transfer& t) {
    return t.ref->id == event.plan && t.stopping;
  });
  if (transfer == transfers.end()) return;
  Slot& slot = slots[transfer->slot];
  tell(TransferStopped{event.plan, transfer->ref->version, slot.holding->verified});
  slot.news = false;
  transfers.erase(transfer);
}

void Agent::State::on(const TransferSwitched& event) {
  Transfer* transfer = find_transfer(event.plan);
  if (transfer == nullptr) return;
  const auto edge = std::find_if(transfer->edges.begin(), transfer->edges.end(),
                                 [&](const LiveEdge& e) { return e.stripe == event.stripe; });
  if (edge != transfer->edges.end()) {
    edge->parent = event.to;
    edge->parent_has_all = edge->alternate_has_all;
    edge->path = edge->alternate_path;
    edge->alternate = {};
  } else {
    LiveEdge live;
    live.stripe = event.stripe;
    live.child = self;
    live.parent = event.to;
    transfer->edges.push_back(live);
  }
  mention(Switched{event.plan, event.stripe, event.from, event.to, event.cause});
}

void Agent::State::on(const TransferWantsParent& event) {
  Transfer* transfer = find_transfer(event.plan);
  if (transfer == nullptr || transfer->stopping) return;
  const ParentWanted wanted{event.plan, event.stripe, event.first_missing, event.lost, event.cause};
  std::erase_if(transfer->orphans, [&](const ParentWanted& o) { return o.stripe == event.stripe; });
  transfer->orphans.push_back(wanted);
  tell(wanted);
}

void Agent::State::on(const TransferSlow& event) {
  if (find_transfer(event.plan) == nullptr) return;
  mention(SourceIsSlow{event.plan, event.stripe, event.source});
}

void Agent::State::tell_progress() {
  if (!connected() || now < progress_at) return;
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    if (!slots[s].news) continue;
    const auto transfer = std::find_if(transfers.begin(), transfers.end(),
                                       [s](const Transfer& t) { return t.slot == s; });
    slots[s].news = false;
    if (transfer == transfers.end()) continue;
    mention(Progress{transfer->ref->id, transfer->ref->version, slots[s].holding->verified, false});
    progress_at = now + config.progress_interval;
  }
}

// --- Slots ---------------------------------------------------------------------------------------

std::optional<ShardId> Agent::State::shard_of(const PlannedTransfer& planned) const {
  if (planned.space != card.space || planned.shards.size() <= self.index()) return std::nullopt;
  const ShardId shard = planned.shards[self.index()];
  if (!space->valid(shard) || (!card.host_memory && shard != card.shard)) return std::nullopt;
  return shard;
}

// The slot that the transfer fills: the one with that version, or an empty one that is then the
// version's. Nothing unless this worker is to be filled now and has room.
std::optional<SlotNumber> Agent::State::prepare(const PlannedTransfer& planned) {
  const auto shard = shard_of(planned);
  if (!shard) return std::nullopt;
  if (!card.host_memory && (!fetch || fetch->end)) return std::nullopt;
  auto slot = slot_of(planned.version);
  if (slot) {
    const Holding& holding = *slots[*slot].holding;
    if (holding.state == HoldingState::Hidden || holding.shard != *shard ||
        slots[*slot].digesting || !same_content(holding, planned)) {
      return std::nullopt;
    }
  }
  if (card.host_memory) {
    slot = host_slot(planned, slot);
  } else if (!slot) {
    slot = free_slot();
  }
  if (slot) hold(*slot, planned, *shard);
  return slot;
}

// What was published here and never answered may be other bytes under the planned number: its own
// digests tell before a root does.
bool Agent::State::same_content(const Holding& holding, const PlannedTransfer& planned) const {
  if (holding.root != Hash128{}) return holding.root == planned.root;
  if (!holding.digests || !planned.tables || !planned.tables->verify() ||
      planned.tables->block_bytes().size() != space->blocks()) {
    return true;
  }
  for (std::uint32_t number = 0; number < holding.digests->size(); ++number) {
    const BlockId block = space->block(holding.shard, number);
    if ((*holding.digests)[number] != planned.tables->digest(block)) return false;
  }
  return true;
}

std::optional<SlotNumber> Agent::State::free_slot() const {
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    if (is_empty(s)) return s;
  }
  return std::nullopt;
}

// Room for what the plan brings beside what is here; `here`: the slot with the version.
std::optional<SlotNumber> Agent::State::host_slot(const PlannedTransfer& planned,
                                                  std::optional<SlotNumber> here) {
  if (!planned.demand) return std::nullopt;
  BlockSet blocks(space->blocks(kWholeModel));
  if (here) blocks.add(slots[*here].holding->verified);
  for (const BlockClass& c : planned.demand->classes) {
    if (!std::binary_search(c.receivers.begin(), c.receivers.end(), self)) continue;
    for (const BlockId block : blocks_of(c)) {
      if (block.index() < space->blocks()) blocks.add(block.value());
    }
  }
  Bytes bytes;
  for (std::uint32_t b = 0; b < space->blocks(); ++b) {
    if (blocks.has(b)) bytes += space->block_bytes()[b];
  }
  Bytes others;
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    if (s != here) others += slots[s].bytes;
  }
  if (others + bytes > card.budget) return std::nullopt;
  auto number = here ? *here : static_cast<SlotNumber>(slots.size());
  for (SlotNumber s = 0; s < slots.size() && !here && number == slots.size(); ++s) {
    if (!slots[s].there) number = s;
  }
  if (number == slots.size()) slots.emplace_back();
  slots[number].bytes = std::max(slots[number].bytes, bytes);
  if (here) return number;
  slots[number].there = true;
  emit(AllocateSlot{number, space->bytes(kWholeModel)});
  return number;
}

void Agent::State::hold(SlotNumber number, const PlannedTransfer& planned, ShardId shard) {
  Slot& slot = slots[number];
  slot.tables = planned.tables;
  slot.unheard.reset();
  if (slot.holding) {
    slot.holding->root = planned.root;
    return;
  }
  Holding holding;
  holding.version = planned.version;
  holding.root = planned.root;
  holding.shard = shard;
  holding.state = HoldingState::Filling;
  holding.verified = BlockSet(space->blocks(shard));
  holding.retention = planned.retention;
  slot.holding = std::move(holding);
  slot.shown = HoldingState::Filling;
}

void Agent::State::empty_slot(SlotNumber number) {
  Slot& slot = slots[number];
  if (running == number) run_slot(std::nullopt);
  slot.holding.reset();
  slot.tables = nullptr;
  slot.clearing.reset();
  slot.unheard.reset();
  slot.news = false;
  if (!card.host_memory) return;
  slot.there = false;
  slot.bytes = {};
  emit(FreeSlot{number});
}

// A transfer that has filled the slot goes on while it has children to tell. What was prepared or
// begun and brought nothing leaves nothing.
void Agent::State::settle_slots() {
  for (Transfer& transfer : transfers) {
    const PlanNumber plan = transfer.ref->id;
    if (transfer.filled && !serves(plan)) stop_transfer(transfer);
  }
  std::erase_if(serving, [this](PlanNumber plan) {
    if (serves(plan)) return false;
    emit(StopTransfer{plan});
    return true;
  });
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    if (!slot.holding || slot.holding->state != HoldingState::Filling || in_transfer(s)) continue;
    if (!slot.holding->verified.none() || read_by_anyone(slot.holding->version)) continue;
    empty_slot(s);
  }
}

std::optional<SlotNumber> Agent::State::slot_of(const Version& version) const {
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    if (slots[s].holding && slots[s].holding->version == version) return s;
  }
  return std::nullopt;
}

bool Agent::State::is_empty(SlotNumber slot) const {
  return slots[slot].there && !slots[slot].holding && !slots[slot].digesting && !in_transfer(slot);
}

// --- Transfers -----------------------------------------------------------------------------------

Agent::State::Transfer* Agent::State::find_transfer(PlanNumber plan) {
  const auto found = std::find_if(transfers.begin(), transfers.end(),
                                  [plan](const Transfer& t) { return t.ref->id == plan; });
  return found == transfers.end() ? nullptr : &*found;
}

void Agent::State::stop_transfer(Transfer& transfer) {
  if (transfer.stopping) return;
  transfer.stopping = true;
  transfer.orphans.clear();
  emit(StopTransfer{transfer.ref->id});
}

void Agent::State::stop_filling() {
  for (Transfer& transfer : transfers) {
    if (!transfer.filled) stop_transfer(transfer);
  }
}

bool Agent::State::filling(SlotNumber slot) const {
  return std::any_of(transfers.begin(), transfers.end(),
                     [slot](const Transfer& t) { return t.slot == slot && !t.filled; });
}

bool Agent::State::reading() const {
  return std::any_of(transfers.begin(), transfers.end(),
                     [](const Transfer& t) { return !t.filled && !t.quiet; });
}

bool Agent::State::in_transfer(SlotNumber slot) const {
  return std::any_of(transfers.begin(), transfers.end(),
                     [slot](const Transfer& t) { return t.slot == slot; });
}

}  // namespace holdfast
