// What an agent knows, as it says it in Hello, and what is wrong with it if anything is.
#include <fmt/format.h>

#include <algorithm>

#include "core/catalog/agent_state.hpp"

namespace holdfast {
namespace {

std::shared_ptr<const std::vector<std::uint64_t>> digests_of(const ModelSpace& space, ShardId shard,
                                                             const UpdateTables& tables) {
  if (!tables.verify() || tables.block_bytes().size() != space.blocks()) return nullptr;
  auto digests = std::make_shared<std::vector<std::uint64_t>>();
  digests->reserve(space.blocks(shard));
  for (const BlockSpan& span : space.spans(shard)) {
    for (std::uint32_t i = 0; i < span.count; ++i) {
      digests->push_back(tables.digest(BlockId(span.first.value() + i)));
    }
  }
  return digests;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

}  // namespace

WorkerReport Agent::State::report() const {
  WorkerReport report;
  report.card = card;
  report.epoch = epoch;
  report.lineage = lineage;
  report.generation = generation;
  const bool open = fetch && !fetch->end && fetch->generation == generation;
  report.over = open ? fetch->n - 1 : last_n;
  report.decision = decision;
  if (open && fetch->asked.epoch != 0) {
    report.fetch = OpenFetch{fetch->n, fetch->call, told(fetch->deadline)};
  }
  for (const Slot& slot : slots) {
    if (!slot.holding) continue;
    Holding holding = *slot.holding;
    if (!holding.digests && slot.tables) {
      holding.digests = digests_of(*space, holding.shard, *slot.tables);
    }
    report.holdings.push_back(std::move(holding));
  }
  report.grants = grants;
  for (const Transfer& transfer : transfers) {
    report.transfers.push_back({transfer.ref, transfer.edges, transfer.stopping});
  }
  report.leaving = leaving;
  return report;
}

std::size_t Agent::State::memory_bytes() const {
  std::size_t bytes = sizeof(Agent) + sizeof(*this) + bytes_of(unsent) + bytes_of(calls) +
                      bytes_of(slots) + bytes_of(transfers) + bytes_of(grants) + bytes_of(phases) +
                      bytes_of(revokes) + bytes_of(requests) + bytes_of(serving);
  if (session) bytes += session->memory_bytes() - sizeof(*session);
  for (const Slot& slot : slots) {
    if (slot.holding) bytes += slot.holding->verified.words().size_bytes();
  }
  for (const Transfer& transfer : transfers) {
    bytes += bytes_of(transfer.edges) + bytes_of(transfer.orphans);
  }
  for (const GrantRequest& request : requests) {
    bytes += bytes_of(request.readers) + bytes_of(request.answer.readers) +
             bytes_of(request.answer.access) + bytes_of(request.answer.refused) +
             bytes_of(request.children);
  }
  return bytes;
}

// --- Invariants ----------------------------------------------------------------------------------

std::vector<std::string> Agent::State::problems(Time at) const {
  std::vector<std::string> wrong;
  check_slots(wrong);
  check_grants(wrong);
  check_waits(wrong, at);
  return wrong;
}

void Agent::State::check_slots(std::vector<std::string>& wrong) const {
  Bytes used;
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    used += slot.bytes;
    if (slot.holding && slot_of(slot.holding->version) != s) {
      wrong.push_back(
          fmt::format("11: slots hold version {} twice", to_string(slot.holding->version)));
    }
    if (!slot.holding) {
      if (slot.clearing || running == s) wrong.push_back("11: an empty slot is in use");
      continue;
    }
    const Holding& holding = *slot.holding;
    const HoldingState state = holding.state == HoldingState::Hidden ? slot.shown : holding.state;
    if (state != HoldingState::Filling && !holding.verified.all() && !card.host_memory) {
      wrong.push_back(fmt::format("12: slot {} counts as complete and lacks blocks", s));
    }
    if (holding.runs != (running == s)) wrong.push_back("8: two opinions about what runs");
    if (running == s && (holding.state == HoldingState::Hidden || !holding.verified.all())) {
      wrong.push_back("8: what runs is hidden or not complete");
    }
    if (slot.clearing && holding.state != HoldingState::Hidden) {
      wrong.push_back("4: what is cleared is not hidden");
    }
    std::size_t filled_by = 0;
    for (const Transfer& transfer : transfers) {
      if (transfer.slot != s) continue;
      if (transfer.ref->version != holding.version) {
        wrong.push_back("11: a transfer fills a slot of another version");
      }
      if (!transfer.filled && !transfer.stopping) ++filled_by;
    }
    if (filled_by > 1) wrong.push_back("11: two transfers fill one slot");
    if (filled_by == 1 && holding.state == HoldingState::Hidden) {
      wrong.push_back("11: a hidden slot is being filled");
    }
  }
  if (card.host_memory && used > card.budget) wrong.push_back("11: more than the budget is filled");
}

void Agent::State::check_grants(std::vector<std::string>& wrong) const {
  if (!std::is_sorted(grants.begin(), grants.end()) || phases.size() != grants.size()) {
    wrong.push_back("13: the table of grants is out of order");
  }
  for (std::size_t g = 0; g < grants.size(); ++g) {
    const ReadGrant& grant = grants[g];
    const auto slot = slot_of(grant.version);
    if (!slot) {
      wrong.push_back(fmt::format("7: worker {} reads version {}, which is not here",
                                  grant.reader.value(), to_string(grant.version)));
    } else if (slots[*slot].holding->state == HoldingState::Hidden &&
               phases[g] == GrantPhase::Allowing) {
      wrong.push_back("4: a hidden version gains a reader");
    }
    if (grant.reader == self) wrong.push_back("7: a worker reads from itself");
    if (phases[g] == GrantPhase::Ending && !revoking(grant.reader, grant.version)) {
      wrong.push_back("13: a grant ends and nobody revokes it");
    }
    for (std::size_t h = 0; h < g; ++h) {
      if (grants[h].reader == grant.reader && grants[h].incarnation != grant.incarnation &&
          phases[h] != GrantPhase::Ending && phases[g] != GrantPhase::Ending) {
        wrong.push_back("7: two incarnations of one reader are let in");
      }
      if (grants[h].reader == grant.reader && grants[h].version == grant.version &&
          phases[h] != phases[g] &&
          (phases[h] == GrantPhase::Ending || phases[g] == GrantPhase::Ending)) {
        wrong.push_back("4: a reader is let in while it is revoked");
      }
    }
  }
  for (const PlanNumber plan : serving) {
    if (!serves(plan)) wrong.push_back("13: children are told without a grant");
  }
}

void Agent::State::check_waits(std::vector<std::string>& wrong, Time at) const {
  for (const OpenCall& call : calls) {
    if (call.deadline <= at && !returns_soon(call)) wrong.push_back("15: a call is overdue");
  }
  if (fetch && !fetch->end && fetch->deadline <= at) wrong.push_back("15: a fetch is overdue");
  if (fetch && fetch->end && !reading()) wrong.push_back("15: a fetch that ended does not return");
  for (SlotNumber s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    if (!slot.clearing || !slot.holding) continue;
    const bool read = read_by_anyone(slot.holding->version);
    if (read && !slot.clearing->revoking && slot.clearing->deadline <= at) {
      wrong.push_back("15: a drain is overdue");
    }
    if (!read && !in_transfer(s) && !slot.digesting) wrong.push_back("15: a drain does not end");
  }
  for (const GrantRequest& request : requests) {
    const bool waits = std::any_of(
        request.readers.begin(), request.readers.end(), [&](const GrantedReader& reader) {
          const auto g = find_grant(
              {reader.reader, reader.incarnation, request.transfer->version, request.transfer->id});
          return (g && phases[*g] == GrantPhase::Allowing) ||
                 revoking(reader.reader, request.transfer->version);
        });
    if (!waits) wrong.push_back("15: a reader waits for nothing to be let in");
  }
  if (silent()) return;
  if (greeting && !fencing && hello_at <= at) wrong.push_back("15: a Hello is overdue");
  if (!greeting && !session) wrong.push_back("15: neither greeting nor in a session");
  if (!greeting && session && at - sent_at >= config.heartbeat) {
    wrong.push_back("15: a heartbeat is overdue");
  }
}

}  // namespace holdfast
