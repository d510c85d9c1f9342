#include "core/storm/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace holdfast::storm {

Oracle::Oracle(const World& world)
    : world_(world),
      seen_(world.cards.size()),
      written_(world.cards.size()),
      reads_(world.cards.size()),
      in_touch_since_(world.cards.size(), Time::never()),
      group_lives_(world.groups.size()) {}

void Oracle::fail(const Stage& stage, std::string rule, std::string text) {
  if (!violation_) violation_ = Violation{std::move(rule), std::move(text), stage.now()};
}

void Oracle::started(const Stage& /*stage*/, WorkerId worker) {
  seen_[worker.index()].clear();
  written_[worker.index()].clear();
  in_touch_since_[worker.index()] = Time::never();
}

void Oracle::died(const Stage& stage, WorkerId worker) {
  note_group_lives(stage, worker, false);
  for (auto call = calls_.begin(); call != calls_.end();) {
    if (call->first.first != worker) {
      ++call;
      continue;
    }
    deadlines_.erase({call->second.deadline, worker, call->first.second});
    call = calls_.erase(call);
  }
  for (const auto& holding : stage.agent(worker)->holdings()) {
    if (!holding || holding->state == HoldingState::Hidden) continue;
    ghosts_.push_back({worker, holding->version, holding->shard, holding->verified, stage.now()});
  }
  seen_[worker.index()].clear();
  written_[worker.index()].clear();
  reads_[worker.index()].clear();
  in_touch_since_[worker.index()] = Time::never();
}

void Oracle::coordinator_started(const Stage& /*stage*/) {
  ++coordinator_life_;
}
void Oracle::coordinator_died(const Stage& stage) {
  note_group_lives(stage, {}, true);
}
void Oracle::broke(const Stage& /*stage*/, const Fault& /*fault*/, const std::string& /*what*/) {}
void Oracle::calmed(const Stage& /*stage*/) {
  calm_ = true;
}

void Oracle::call_made(const Stage& stage, const CallSight& sight) {
  OpenCall open;
  open.call = *sight.call;
  open.made = stage.now();
  open.deadline = sight.deadline;
  const SpaceId space = world_.cards[sight.worker.index()].space;
  if (const auto* call = std::get_if<WithdrawCall>(sight.call)) {
    unsure_.insert({space, call->version});
  } else if (const auto* retain = std::get_if<RetainCall>(sight.call)) {
    retained_.insert({space, retain->version});
  } else if (const auto* unpublish = std::get_if<UnpublishCall>(sight.call)) {
    given_up_[{space, unpublish->version}] = stage.now();
  } else if (const auto* fetch = std::get_if<FetchCall>(sight.call); fetch != nullptr && calm_) {
    open.judged = !fetch->version && open.deadline - open.made >= seconds(60);
    if (open.judged) open.due = latest_there(stage, space);
  }
  deadlines_.insert({open.deadline, sight.worker, sight.id});
  calls_.emplace(std::pair(sight.worker, sight.id), open);
}

void Oracle::call_ended(const Stage& stage, const CallSight& sight, const CallResult& result) {
  const auto found = calls_.find({sight.worker, sight.id});
  if (found == calls_.end()) {
    return fail(stage, "calls",
                fmt::format("worker {}: call {} ended but was not open ({})", sight.worker.value(),
                            sight.id, to_string(result)));
  }
  const OpenCall open = found->second;
  calls_.erase(found);
  deadlines_.erase({open.deadline, sight.worker, sight.id});
  ++calls_ended_;
  if (result.status == CallStatus::Ok) ++calls_ok_;
  if (stage.now() > open.deadline) {
    fail(stage, "deadline",
         fmt::format("worker {}: call {} ended {} after its deadline with {}", sight.worker.value(),
                     sight.id, to_string(stage.now() - open.deadline), to_string(result)));
  }
  if (result.status == CallStatus::Superseded) {
    fail(stage, "calls",
         fmt::format("worker {}: Superseded reached its user", sight.worker.value()));
  }
  if (std::holds_alternative<FetchCall>(open.call)) {
    if (result.status == CallStatus::Ok) check_fetched(stage, sight.worker, open, result);
    if (open.judged) check_last_fetch(stage, sight.worker, open, result);
  }
  if (result.status != CallStatus::Ok) return;
  if (std::holds_alternative<PublishCall>(open.call)) {
    check_published(stage, sight.worker, result);
  } else if (const auto* unpublish = std::get_if<UnpublishCall>(&open.call)) {
    const Agent& agent = *stage.agent(sight.worker);
    for (const ReadGrant& grant : agent.grants()) {
      if (grant.version != unpublish->version) continue;
      fail(stage, "drain",
           fmt::format("worker {}: unpublish of {} returned while worker {} may "
                       "still read",
                       sight.worker.value(), to_string(grant.version), grant.reader.value()));
    }
  }
}

void Oracle::check_overdue(const Stage& stage) {
  if (deadlines_.empty() || std::get<0>(*deadlines_.begin()) >= stage.now()) return;
  const auto& [deadline, worker, id] = *deadlines_.begin();
  fail(stage, "deadline",
       fmt::format("worker {}: call {} is open {} after its deadline", worker.value(), id,
                   to_string(stage.now() - deadline)));
}

void Oracle::wrote(const Stage& /*stage*/, WorkerId worker, SlotNumber slot,
                   const Content* content) {
  auto& written = written_[worker.index()];
  if (written.size() <= slot) written.resize(slot + 1);
  written[slot] = content != nullptr ? std::optional(*content) : std::nullopt;
  auto& seen = seen_[worker.index()];
  if (slot < seen.size()) seen[slot].reset();
  if (content != nullptr) {
    variants_[{content->space, content->version}].insert(content->variant);
  }
}

void Oracle::before_agent(const Stage& /*stage*/, const AgentSight& /*sight*/) {}

void Oracle::after_agent(const Stage& stage, const AgentSight& sight) {
  if (violation_) return;
  check_overdue(stage);
  const Agent& agent = *stage.agent(sight.worker);
  for (const std::string& broken : broken_invariants(agent, stage.now())) {
    fail(stage, "invariant", fmt::format("worker {}: {}", sight.worker.value(), broken));
  }
  check_growth(stage, sight.worker);
  Time& since = in_touch_since_[sight.worker.index()];
  if (!in_touch(stage, sight.worker)) {
    since = Time::never();
  } else if (since == Time::never()) {
    since = stage.now();
  }
  const GroupId group = world_.cards[sight.worker.index()].group;
  if (!group.valid()) return;
  if (const auto runs = agent.runs()) {
    for (const WorkerId member : world_.groups[group.index()].members) {
      const Agent* other = stage.agent(member);
      if (other == nullptr || !other->runs() || *other->runs() == *runs) continue;
      fail(stage, "versions",
           fmt::format("group {}: worker {} runs {}, worker {} runs {}", group.value(),
                       sight.worker.value(), to_string(*runs), member.value(),
                       to_string(*other->runs())));
    }
  }
  if (std::strcmp(sight.event, "Time") == 0 || std::strcmp(sight.event, "Transfers") == 0 ||
      std::strcmp(sight.event, "Acknowledgement") == 0) {
    return;
  }
  check_decision(stage, sight.worker);
}

void Oracle::check_decision(const Stage& stage, WorkerId worker) {
  const WorkerReport report = stage.agent(worker)->report();
  const Decision& decision = report.decision;
  const GroupId group = report.card.group;
  GroupLife& life = group_lives_[group.index()];
  life.generation = std::max(life.generation, report.generation);
  if (decision.n == 0) return;
  const auto [known, fresh] =
      decisions_.emplace(std::tuple(group, life.number, decision.generation, decision.n), decision);
  if (fresh || (known->second.call == decision.call && known->second.result == decision.result)) {
    return;
  }
  fail(stage, "decisions",
       fmt::format("group {}, generation {}, fetch {}: decided {} {}, at worker {} now {} {}",
                   group.value(), decision.generation, decision.n, to_string(known->second.result),
                   to_string(known->second.result.version), worker.value(),
                   to_string(decision.result), to_string(decision.result.version)));
}

// Who dies takes what only he knew with him.
void Oracle::note_group_lives(const Stage& stage, WorkerId dying, bool coordinator_dies) {
  for (std::size_t g = 0; g < group_lives_.size(); ++g) {
    GroupLife& life = group_lives_[g];
    bool known = false;
    const Coordinator* coordinator = coordinator_dies ? nullptr : stage.coordinator();
    if (coordinator != nullptr && !coordinator->rebuilding()) {
      for (const Coordinator::GroupView& view : coordinator->groups()) {
        known = known || (view.group == GroupId(g) && view.generation >= life.generation);
      }
    }
    for (const WorkerId member : world_.groups[g].members) {
      if (member == dying || stage.agent(member) == nullptr) continue;
      known = known || stage.agent(member)->report().generation >= life.generation;
    }
    if (!known) life = {life.number + 1, 0};
  }
}

void Oracle::after_coordinator(const Stage& stage, const CoordinatorSight& sight) {
  if (violation_ || sight.zombie) return;
  check_overdue(stage);
  // A late word of somebody dead counts as any other: there is no clock that both ends share. So
  // detection begins with the last one that comes.
  if (sight.worker.valid() && stage.agent(sight.worker) == nullptr) {
    for (Ghost& ghost : ghosts_) {
      if (ghost.worker == sight.worker && counts(stage, ghost)) ghost.heard = stage.now();
    }
  }
  for (const std::string& broken : broken_invariants(*stage.coordinator(), stage.now())) {
    fail(stage, "invariant", "coordinator: " + broken);
  }
  check_durable(stage);
  check_claims(stage);
  for (const CoordinatorCommand& command : sight.commands) {
    const auto* send = std::get_if<SendToWorker>(&command);
    const auto* frame = send != nullptr ? std::get_if<CoordinatorFrame>(&send->frame) : nullptr;
    if (frame == nullptr || !frame->payload) continue;
    if (const auto* decided = std::get_if<Decided>(frame->payload.get())) {
      check_lost(stage, send->worker, decided->decision.result);
    } else if (const auto* done = std::get_if<FetchDone>(frame->payload.get())) {
      check_lost(stage, send->worker, done->result);
    }
  }
}

void Oracle::sent(const Stage& /*stage*/, WorkerId /*worker*/, const ToCoordinator& /*frame*/,
                  const Fate& /*fate*/) {}
void Oracle::sent(const Stage& /*stage*/, WorkerId /*worker*/, const ToWorker& /*frame*/,
                  const Fate& /*fate*/) {}

void Oracle::read(const Stage& stage, const ReadSight& sight) {
  if (violation_) return;
  switch (sight.kind) {
    case ReadSight::Kind::Posted:
      return check_posted(stage, sight);
    case ReadSight::Kind::Served:
      return check_served(stage, sight);
    case ReadSight::Kind::Arrived:
      return;
    case ReadSight::Kind::Ended:
      reads_[sight.reader.index()].erase(sight.id);
  }
}

void Oracle::ended(const Stage& stage) {
  if (!violation_) check_rest(stage);
}

}  // namespace holdfast::storm
