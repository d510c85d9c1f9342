// The oracle's rules about copies: claims of safety, losses, and what must come of the last
// fetches.
#include <fmt/format.h>

#include <algorithm>

#include "core/storm/oracle.hpp"

namespace holdfast::storm {
namespace {

// How long a loss may be unknown to the coordinator beyond its detection time.
constexpr Time kGrace = seconds(1);
// How long somebody must have been in touch to be counted as known to the coordinator.
constexpr Time kKnown = seconds(2);

}  // namespace

bool Oracle::in_touch(const Stage& stage, WorkerId worker) const {
  const Agent* agent = stage.agent(worker);
  const Coordinator* coordinator = stage.coordinator();
  return agent != nullptr && coordinator != nullptr && !coordinator->rebuilding() &&
         agent->connected() && agent->epoch() == coordinator->epoch() &&
         coordinator->alive(worker) && stage.reachable(worker);
}

bool Oracle::counts(const Stage& stage, const Ghost& ghost) const {
  return stage.now() - ghost.heard <= world_.coordinator.detection + kGrace;
}

std::vector<Oracle::Copy> Oracle::copies(const Stage& stage, VersionKey key, bool ghosts) const {
  const ModelSpace& space = *world_.spaces[key.first.index()];
  std::vector<Copy> found;
  const auto add = [&](WorkerId worker, ShardId shard, const BlockSet& verified) -> Copy& {
    Copy copy{worker, std::vector<bool>(space.blocks()), std::nullopt};
    for (std::uint32_t number = 0; number < verified.size(); ++number) {
      if (verified.has(number)) copy.blocks[space.block(shard, number).index()] = true;
    }
    found.push_back(std::move(copy));
    return found.back();
  };
  for (std::size_t w = 0; w < world_.cards.size(); ++w) {
    const Agent* agent = stage.agent(WorkerId(w));
    if (agent == nullptr || world_.cards[w].space != key.first) continue;
    const auto holdings = agent->holdings();
    for (std::size_t slot = 0; slot < holdings.size(); ++slot) {
      const auto& holding = holdings[slot];
      if (!holding || holding->version != key.second) continue;
      if (holding->state == HoldingState::Hidden) continue;
      Copy& copy = add(WorkerId(w), holding->shard, holding->verified);
      const auto& written = written_[w];
      if (holding->state == HoldingState::Published && slot < written.size() && written[slot]) {
        copy.variant = written[slot]->variant;
      }
    }
  }
  if (!ghosts) return found;
  for (const Ghost& ghost : ghosts_) {
    const bool other =
        world_.cards[ghost.worker.index()].space != key.first || ghost.version != key.second;
    if (other || !counts(stage, ghost)) continue;
    add(ghost.worker, ghost.shard, ghost.verified);
  }
  return found;
}

bool Oracle::covered(VersionKey key, const std::vector<Copy>& copies,
                     const std::vector<DomainId>& without, Level level, bool spot) const {
  std::vector<bool> there(world_.spaces[key.first.index()]->blocks());
  for (const Copy& copy : copies) {
    const WorkerCard& card = world_.cards[copy.worker.index()];
    if (!spot && !card.reliable) continue;
    const DomainId domain = world_.topology->around(card.node, level);
    if (std::find(without.begin(), without.end(), domain) != without.end()) continue;
    for (std::size_t b = 0; b < there.size(); ++b) there[b] = there[b] || copy.blocks[b];
  }
  return std::find(there.begin(), there.end(), false) == there.end();
}

// Safe(k): without any k - 1 domains and all spot workers it is still there.
void Oracle::check_claims(const Stage& stage) {
  std::map<VersionKey, Claim> now;
  std::set<VersionKey> suspected;
  for (const Coordinator::VersionView& view : stage.coordinator()->versions()) {
    if (view.retention.copies == 0 || view.safe == 0) continue;
    const VersionKey key{view.space, view.version};
    // What is kept: a leave or a fetch in place may lower what is more than was asked for.
    now[key] = {std::min(view.safe, view.retention.copies), view.retention.level, stage.now()};
    const std::vector<Copy> all = copies(stage, key, true);
    std::set<DomainId> domains;
    for (const Copy& copy : all) {
      const NodeId node = world_.cards[copy.worker.index()].node;
      domains.insert(world_.topology->around(node, view.retention.level));
    }
    const std::vector<DomainId> list(domains.begin(), domains.end());
    const std::size_t gone = std::min<std::size_t>(view.safe - 1, list.size());
    // All choices of `gone` domains.
    std::vector<bool> chosen(list.size());
    std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(gone), true);
    do {
      std::vector<DomainId> without;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (chosen[i]) without.push_back(list[i]);
      }
      if (covered(key, all, without, view.retention.level, false)) continue;
      // It is judged anew a while after something changes.
      const Time since = suspects_.emplace(key, stage.now()).first->second;
      suspected.insert(key);
      if (stage.now() - since <= world_.coordinator.judge_interval * 2) break;
      return fail(
          stage, "safe",
          fmt::format("{} is said to be safe({}) by {}, but would not "
                      "survive the loss of {} of them and all spot workers",
                      to_string(view.version), view.safe, to_string(view.retention.level), gone));
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
  }
  claims_ = std::move(now);
  for (auto at = suspects_.begin(); at != suspects_.end();) {
    at = suspected.count(at->first) > 0 ? std::next(at) : suspects_.erase(at);
  }
}

void Oracle::check_lost(const Stage& stage, WorkerId worker, const CallResult& result) {
  if (result.status != CallStatus::VersionLost) return;
  const VersionKey key{world_.cards[worker.index()].space, result.version};
  for (const Copy& copy : copies(stage, key, false)) {
    const Time since = in_touch_since_[copy.worker.index()];
    if (!in_touch(stage, copy.worker) || stage.now() - since < kKnown || since == Time::never()) {
      continue;
    }
    const auto& slots = seen_[copy.worker.index()];
    const bool fresh = std::any_of(slots.begin(), slots.end(), [&](const auto& seen) {
      return seen && seen->version == result.version && stage.now() - seen->since < kKnown;
    });
    if (fresh) continue;
    for (const BlockSpan& span : result.lost) {
      for (std::uint32_t i = 0; i < span.count; ++i) {
        if (!copy.blocks[span.first.index() + i]) continue;
        return fail(
            stage, "lost",
            fmt::format("block {} of {} is reported as lost, but worker {} "
                        "has it",
                        span.first.value() + i, to_string(result.version), copy.worker.value()));
      }
    }
  }
}

// Something that was safe is gone though too little failed for that.
void Oracle::check_durable(const Stage& stage) {
  for (const auto& [key, claim] : claims_) {
    const auto given_up = given_up_.find(key);
    if (given_up != given_up_.end() && given_up->second + seconds(30) > claim.at) continue;
    std::set<DomainId> failed;
    for (const Ghost& ghost : ghosts_) {
      if (ghost.heard + world_.coordinator.detection + kGrace < claim.at) continue;
      const WorkerCard& card = world_.cards[ghost.worker.index()];
      if (card.reliable) failed.insert(world_.topology->around(card.node, claim.level));
    }
    if (failed.size() >= claim.safe) continue;
    std::vector<Copy> all = copies(stage, key, false);
    if (covered(key, all, {}, claim.level, true)) continue;
    return fail(stage, "durable",
                fmt::format("{} was safe({}), only {} domains have failed, and "
                            "it is gone",
                            to_string(key.second), claim.safe, failed.size()));
  }
}

// The greatest version that every user must be able to get.
std::optional<Version> Oracle::latest_there(const Stage& stage, SpaceId space) const {
  std::optional<Version> latest;
  for (const auto& entry : published_) {
    const VersionKey& key = entry.first;
    const std::vector<OkPublish>& publishes = entry.second;
    if (key.first != space || unsure_.count(key) > 0) continue;
    const bool whole =
        std::any_of(world_.groups.begin(), world_.groups.end(), [&](const WorldGroup& group) {
          return group.space == space &&
                 std::all_of(group.members.begin(), group.members.end(), [&](WorkerId member) {
                   return std::any_of(publishes.begin(), publishes.end(),
                                      [&](const auto& ok) { return ok.worker == member; });
                 });
        });
    if (!whole) continue;
    // Other bytes, whose publish was refused when its owner no longer waited, are not the version.
    const auto refused = [&](const Copy& copy) {
      return copy.variant && std::none_of(publishes.begin(), publishes.end(), [&](const auto& ok) {
               return ok.variant == *copy.variant;
             });
    };
    std::vector<Copy> there = copies(stage, key, false);
    there.erase(std::remove_if(there.begin(), there.end(),
                               [&](const Copy& copy) {
                                 const bool spot = !world_.cards[copy.worker.index()].reliable;
                                 return refused(copy) || !in_touch(stage, copy.worker) ||
                                        (spot && !world_.coordinator.serve_from_spot);
                               }),
                there.end());
    if (!covered(key, there, {}, Level::Host, true)) continue;
    if (!latest || *latest < key.second) latest = key.second;
  }
  return latest;
}

void Oracle::check_last_fetch(const Stage& stage, WorkerId worker, const OpenCall& open,
                              const CallResult& result) {
  const Agent& agent = *stage.agent(worker);
  const auto enough = [&](const std::optional<Version>& got) {
    return !open.due || (got && *got >= *open.due);
  };
  switch (result.status) {
    case CallStatus::Ok:
      if (enough(result.version)) return;
      break;
    case CallStatus::NothingNewer:
      if (enough(agent.runs())) return;
      break;
    case CallStatus::UnknownVersion:
    case CallStatus::VersionLost:
    case CallStatus::Withdrawn:
      if (!open.due) return;
      break;
    case CallStatus::RetentionBlocked:
      if (!retained_.empty()) return;
      break;
    default:
      break;
  }
  fail(stage, "liveness",
       fmt::format("worker {}: with nothing broken any more a fetch of the latest ended with {}; "
                   "{} is there",
                   worker.value(), to_string(result),
                   open.due ? to_string(*open.due) : std::string("nothing")));
}

void Oracle::check_rest(const Stage& stage) {
  for (std::size_t w = 0; w < world_.cards.size(); ++w) {
    const Agent* agent = stage.agent(WorkerId(w));
    if (agent == nullptr) continue;
    if (!agent->connected() && !agent->left()) {
      fail(stage, "rest", fmt::format("worker {} has found no way back", w));
    }
    for (const ReadGrant& grant : agent->grants()) {
      fail(stage, "rest",
           fmt::format("worker {} still grants reads of {} to worker {}", w,
                       to_string(grant.version), grant.reader.value()));
    }
    if (agent->open_calls() > 0) {
      fail(stage, "rest", fmt::format("worker {} has {} open calls", w, agent->open_calls()));
    }
    if (agent->open_transfers() > 0) {
      fail(stage, "rest",
           fmt::format("worker {} has {} open transfers", w, agent->open_transfers()));
    }
  }
  const Coordinator* coordinator = stage.coordinator();
  if (coordinator == nullptr) return;
  if (coordinator->grants() > 0 || coordinator->open_transfers() > 0) {
    fail(stage, "rest",
         fmt::format("the coordinator still knows {} grants and {} transfers",
                     coordinator->grants(), coordinator->open_transfers()));
  }
}

}  // namespace holdfast::storm
