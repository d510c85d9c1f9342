// Who may read from this worker: its own table, the truth about what can leave.
#include <algorithm>

#include "core/catalog/agent_state.hpp"

namespace holdfast {

void Agent::State::on(const GrantReads& message) {
  if (!message.transfer || !session) return;
  GrantRequest request;
  request.asked = session->key();
  request.transfer = message.transfer;
  request.readers = message.readers;
  request.answer.plan = message.transfer->id;
  requests.push_back(std::move(request));
}

void Agent::State::settle_requests() {
  for (GrantRequest& request : requests) {
    const std::vector<GrantedReader> waiting = std::move(request.readers);
    request.readers.clear();
    for (const GrantedReader& reader : waiting) try_grant(request, reader);
  }
  for (GrantRequest& request : requests) {
    if (!request.readers.empty()) continue;
    if (!request.children.empty()) add_children(request);
    if (connected() && request.asked == session->key()) tell(std::move(request.answer));
  }
  std::erase_if(requests, [](const GrantRequest& request) { return request.readers.empty(); });
}

// Lets the reader in, refuses it, or puts it back among those who wait.
void Agent::State::try_grant(GrantRequest& request, const GrantedReader& reader) {
  const PlannedTransfer& planned = *request.transfer;
  const ReadGrant grant{reader.reader, reader.incarnation, planned.version, planned.id};
  const auto at = find_grant(grant);
  if (at && phases[*at] == GrantPhase::Allowing) {
    request.readers.push_back(reader);
    return;
  }
  const auto slot = source_slot(planned);
  bool stale = reader.reader == self;
  for (std::size_t g = 0; g < grants.size(); ++g) {
    if (grants[g].reader == reader.reader && grants[g].incarnation > reader.incarnation) {
      stale = true;
    }
  }
  if (!slot || stale) {
    request.answer.refused.push_back(reader.reader);
    return;
  }
  end_older(reader);
  if (revoking(reader.reader, planned.version)) {
    request.readers.push_back(reader);
    return;
  }
  if (at) {
    phases[*at] = GrantPhase::Allowing;
  } else {
    add_grant(grant);
  }
  emit(AllowReader{grant, *slot});
  request.readers.push_back(reader);
}

// Where a reader of this transfer finds its bytes. A worker that is filled itself by the transfer
// may be asked before it begins.
std::optional<SlotNumber> Agent::State::source_slot(const PlannedTransfer& planned) {
  const Transfer* own = find_transfer(planned.id);
  if (own != nullptr && own->stopping) return std::nullopt;
  auto slot = slot_of(planned.version);
  if (!slot && to_be_filled(planned)) slot = prepare(planned);
  if (!slot) return std::nullopt;
  const Holding& holding = *slots[*slot].holding;
  if (holding.state == HoldingState::Hidden || !same_content(holding, planned)) {
    return std::nullopt;
  }
  return slot;
}

bool Agent::State::to_be_filled(const PlannedTransfer& planned) const {
  if (!card.host_memory) {
    return fetch && !fetch->end && decision.n == fetch->n &&
           decision.generation == fetch->generation && decision.result.status == CallStatus::Ok &&
           decision.result.version == planned.version;
  }
  return planned.tables && self.index() < planned.tables->workers() &&
         !planned.tables->in_edges(self).empty();
}

// The reader came back as another incarnation: its earlier self is cut off first.
void Agent::State::end_older(const GrantedReader& reader) {
  std::vector<ReadGrant> gone;
  for (std::size_t g = grants.size(); g-- > 0;) {
    const ReadGrant grant = grants[g];
    if (grant.reader != reader.reader || grant.incarnation >= reader.incarnation) continue;
    if (phases[g] != GrantPhase::Ending && end_grant(g)) gone.push_back(grant);
  }
  if (!gone.empty()) tell(GrantsGone{std::move(gone)});
}

void Agent::State::on(const ReaderAllowed& event) {
  const auto at = find_grant(event.grant);
  const bool asked = at && phases[*at] == GrantPhase::Allowing;
  const bool let_in = asked && event.access.size != 0;
  if (let_in) {
    phases[*at] = GrantPhase::Allowed;
  } else if (asked && end_grant(*at)) {
    tell(GrantsGone{{event.grant}});
  }
  answer_requests(event.grant, let_in ? &event.access : nullptr);
}

// `access`: null if the reader is refused.
void Agent::State::answer_requests(const ReadGrant& grant, const Access* access) {
  for (GrantRequest& request : requests) {
    if (request.transfer->id != grant.plan) continue;
    const auto reader =
        std::find_if(request.readers.begin(), request.readers.end(), [&](const GrantedReader& r) {
          return r.reader == grant.reader && r.incarnation == grant.incarnation;
        });
    if (reader == request.readers.end()) continue;
    if (access != nullptr) {
      request.answer.readers.push_back(grant.reader);
      request.answer.access.push_back(*access);
      request.children.insert(request.children.end(), reader->edges.begin(), reader->edges.end());
    } else {
      request.answer.refused.push_back(grant.reader);
    }
    request.readers.erase(reader);
  }
}

// Before Granted: the first word to a child must not wait for its question.
void Agent::State::add_children(const GrantRequest& request) {
  const auto slot = slot_of(request.transfer->version);
  if (!slot) return;
  const PlanNumber plan = request.transfer->id;
  const bool served = std::find(serving.begin(), serving.end(), plan) != serving.end();
  const bool granted = std::any_of(grants.begin(), grants.end(),
                                   [plan](const ReadGrant& g) { return g.plan == plan; });
  if (!granted) return;  // ended meanwhile
  if (find_transfer(plan) == nullptr && !served) serving.push_back(plan);
  emit(AddChildren{request.transfer, *slot, request.children});
}

void Agent::State::on(const EndReads& message) {
  std::vector<ReadGrant> gone;
  for (const ReadGrant& grant : message.grants) {
    answer_requests(grant, nullptr);
    const auto at = find_grant(grant);
    // What is not here is gone; what ends already is told when it has ended.
    if (!at || (phases[*at] != GrantPhase::Ending && end_grant(*at))) gone.push_back(grant);
  }
  if (!gone.empty()) tell(GrantsGone{std::move(gone)});
}

void Agent::State::on(const ReaderRevoked& event) {
  if (std::erase(revokes, std::pair(event.reader, event.version)) == 0) return;
  std::vector<ReadGrant> gone;
  for (std::size_t g = grants.size(); g-- > 0;) {
    if (grants[g].reader != event.reader || grants[g].version != event.version ||
        phases[g] != GrantPhase::Ending) {
      continue;
    }
    gone.push_back(grants[g]);
    drop_grant(g);
  }
  if (!gone.empty()) tell(GrantsGone{std::move(gone)});
}

// --- The table -----------------------------------------------------------------------------------

void Agent::State::add_grant(const ReadGrant& grant) {
  const auto at = std::lower_bound(grants.begin(), grants.end(), grant);
  phases.insert(phases.begin() + (at - grants.begin()), GrantPhase::Allowing);
  grants.insert(at, grant);
}

void Agent::State::drop_grant(std::size_t at) {
  grants.erase(grants.begin() + static_cast<std::ptrdiff_t>(at));
  phases.erase(phases.begin() + static_cast<std::ptrdiff_t>(at));
}

bool Agent::State::end_grant(std::size_t at) {
  const ReadGrant grant = grants[at];
  for (std::size_t g = 0; g < grants.size(); ++g) {
    const bool same = grants[g].reader == grant.reader && grants[g].version == grant.version;
    if (g == at || !same || phases[g] == GrantPhase::Ending) continue;
    drop_grant(at);
    return true;
  }
  phases[at] = GrantPhase::Ending;
  if (!revoking(grant.reader, grant.version)) {
    revokes.emplace_back(grant.reader, grant.version);
    emit(RevokeReader{grant.reader, grant.version});
  }
  return false;
}

void Agent::State::end_grants(const Version* version) {
  std::vector<ReadGrant> gone;
  for (std::size_t g = grants.size(); g-- > 0;) {
    const ReadGrant grant = grants[g];
    if (version != nullptr && grant.version != *version) continue;
    if (phases[g] != GrantPhase::Ending && end_grant(g)) gone.push_back(grant);
  }
  if (!gone.empty()) tell(GrantsGone{std::move(gone)});
}

std::optional<std::size_t> Agent::State::find_grant(const ReadGrant& grant) const {
  const auto at = std::lower_bound(grants.begin(), grants.end(), grant);
  if (at == grants.end() || *at != grant) return std::nullopt;
  return static_cast<std::size_t>(at - grants.begin());
}

bool Agent::State::revoking(WorkerId reader, const Version& version) const {
  return std::find(revokes.begin(), revokes.end(), std::pair(reader, version)) != revokes.end();
}

bool Agent::State::serves(PlanNumber plan) const {
  return std::any_of(grants.begin(), grants.end(),
                     [plan](const ReadGrant& grant) { return grant.plan == plan; }) ||
         std::any_of(requests.begin(), requests.end(),
                     [plan](const GrantRequest& request) { return request.transfer->id == plan; });
}

bool Agent::State::read_by_anyone(const Version& version) const {
  return std::any_of(grants.begin(), grants.end(),
                     [&](const ReadGrant& grant) { return grant.version == version; });
}

std::vector<WorkerId> Agent::State::readers_of(const Version& version) const {
  std::vector<WorkerId> readers;
  for (const ReadGrant& grant : grants) {
    if (grant.version != version) continue;
    if (readers.empty() || readers.back() != grant.reader) readers.push_back(grant.reader);
  }
  return readers;
}

}  // namespace holdfast
