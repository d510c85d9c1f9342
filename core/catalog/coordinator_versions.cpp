#include <algorithm>

#include "core/catalog/coordinator_state.hpp"
#include "core/engine/digest.hpp"
#include "core/mutant.hpp"

namespace holdfast {
namespace {

template <class Visit>
void each_block(const ModelSpace& space, ShardId shard, const BlockSet& blocks,
                const Visit& visit) {
  std::uint32_t number = 0;
  for (const BlockSpan& span : space.spans(shard)) {
    for (std::uint32_t i = 0; i < span.count; ++i, ++number) {
      if (blocks.has(number)) visit(span.first.index() + i);
    }
  }
}

}  // namespace

Coordinator::State::VersionState* Coordinator::State::find(VersionKey key) {
  const auto found = versions.find(key);
  return found == versions.end() ? nullptr : &found->second;
}

Coordinator::State::VersionState& Coordinator::State::version_at(VersionKey key) {
  const auto [at, fresh] = versions.try_emplace(key);
  VersionState& version = at->second;
  if (!fresh) return version;
  const std::uint32_t blocks = space(key.first).blocks();
  version.digests = std::make_shared<std::vector<std::uint64_t>>(blocks);
  version.digest_known.resize(blocks);
  version.digests_missing = blocks;
  version.serving.resize(blocks);
  version.copies.resize(blocks);
  version.unserved = version.uncovered = blocks;
  return version;
}

// A number that was used: a later publish must have a larger one.
void Coordinator::State::note_number(VersionKey key) {
  std::uint64_t& lineage = largest_lineage[key.first.index()];
  lineage = std::max(lineage, key.second.lineage);
  std::uint64_t& number = largest_number[{key.first, key.second.lineage}];
  number = std::max(number, key.second.number);
}

Coordinator::State::Holder* Coordinator::State::holder_of(WorkerId worker, VersionKey key) {
  for (Holder& holder : workers[worker.index()].holders) {
    if (holder.version == key) return &holder;
  }
  return nullptr;
}

Coordinator::State::Holder& Coordinator::State::add_holder(WorkerId worker, VersionKey key,
                                                           ShardId shard) {
  if (Holder* known = holder_of(worker, key)) return *known;
  version_at(key).holders.insert(worker);
  Holder holder;
  holder.version = key;
  holder.shard = shard;
  holder.verified = BlockSet(space(key.first).blocks(shard));
  workers[worker.index()].holders.push_back(std::move(holder));
  return workers[worker.index()].holders.back();
}

void Coordinator::State::count_blocks(WorkerId worker, const Holder& holder, const BlockSet& blocks,
                                      int by, bool copies, bool serving) {
  VersionState& version = *find(holder.version);
  const auto count = [by](std::uint32_t& copies_of, std::uint32_t& none) {
    if (copies_of == 0) --none;
    copies_of = static_cast<std::uint32_t>(static_cast<int>(copies_of) + by);
    if (copies_of == 0) ++none;
  };
  const bool served = serving && (workers[worker.index()].card.reliable || config.serve_from_spot);
  each_block(space(holder.version.first), holder.shard, blocks, [&](std::size_t block) {
    if (copies) count(version.copies[block], version.uncovered);
    if (served) count(version.serving[block], version.unserved);
  });
}

void Coordinator::State::drop_holder(WorkerId worker, VersionKey key) {
  std::vector<Holder>& held = workers[worker.index()].holders;
  const auto at = std::find_if(held.begin(), held.end(),
                               [&](const Holder& holder) { return holder.version == key; });
  if (at == held.end()) return;
  count_blocks(worker, *at, at->verified, -1, true, serves(*at));
  held.erase(at);
  VersionState& version = *find(key);
  version.holders.erase(worker);
  dirty_versions.insert(key);
  if (version.retention.copies != 0) judge_soon(key);
}

// Takes in what is verified beyond what was known.
void Coordinator::State::verify_blocks(WorkerId worker, Holder& holder, const BlockSet& verified) {
  if (verified.size() != holder.verified.size()) return;
  BlockSet fresh(verified.size());
  for (std::uint32_t word = 0; word * 64 < verified.size(); ++word) {
    std::uint64_t bits = verified.words()[word] & ~holder.verified.words()[word];
    for (; bits != 0; bits &= bits - 1) {
      fresh.add(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }
  if (fresh.none()) return;
  count_blocks(worker, holder, fresh, 1, true, serves(holder));
  holder.verified.add(fresh);
}

void Coordinator::State::set_serving(WorkerId worker, Holder& holder, bool hidden, bool pending) {
  const bool before = serves(holder);
  holder.hidden = hidden;
  holder.pending = pending;
  const bool after = serves(holder);
  if (before == after) return;
  count_blocks(worker, holder, holder.verified, after ? 1 : -1, false, true);
  dirty_versions.insert(holder.version);
}

std::optional<Version> Coordinator::State::latest(SpaceId id) const {
  for (auto at = versions.lower_bound({SpaceId(id.value() + 1), Version{}});
       at != versions.begin();) {
    --at;
    if (at->first.first != id) break;
    if (fetchable(at->second)) return at->first.second;
  }
  return std::nullopt;
}

void Coordinator::State::answer(WorkerId worker, CallId call, CallResult result) {
  send(worker, Answer{call, std::move(result)});
}

// False, and nothing changes, if they differ from what is known: in one block, or in the root that
// they would complete, which a holder of other shards has said.
bool Coordinator::State::add_digests(VersionState& version, SpaceId id, ShardId shard,
                                     const std::vector<std::uint64_t>& digests) {
  const BlockSet all = BlockSet::full(space(id).blocks(shard));
  std::size_t number = 0;
  bool same = true;
  each_block(space(id), shard, all, [&](std::size_t block) {
    const std::uint64_t digest = digests[number++];
    if (version.digest_known[block] && (*version.digests)[block] != digest) same = false;
  });
  if (!same) return mutated(Mutant::AcceptSecondRoot);
  if (version.digests_missing == 0) return true;
  // Blocks that are not known are zero so far, and are so again if these are not taken.
  std::vector<std::size_t> fresh;
  number = 0;
  each_block(space(id), shard, all, [&](std::size_t block) {
    if (!version.digest_known[block]) fresh.push_back(block);
    (*version.digests)[block] = digests[number++];
  });
  if (fresh.size() == version.digests_missing) {
    const Hash128 root = digest_root(*version.digests);
    if (version.root != Hash128{} && version.root != root) {
      for (const std::size_t block : fresh) (*version.digests)[block] = 0;
      return mutated(Mutant::AcceptSecondRoot);
    }
    version.root = root;
  }
  for (const std::size_t block : fresh) version.digest_known[block] = true;
  version.digests_missing -= static_cast<std::uint32_t>(fresh.size());
  return true;
}

void Coordinator::State::on(WorkerId worker, const Publish& message) {
  const WorkerCard card = workers[worker.index()].card;
  const VersionKey key{card.space, message.version};
  CallResult result;
  result.version = message.version;
  const VersionState* known = find(key);
  const auto largest = largest_number.find({card.space, message.version.lineage});
  if (card.host_memory || !message.digests ||
      message.digests->size() != space(card.space).blocks(card.shard)) {
    result.status = CallStatus::VersionConflict;
    result.reason = "the digests are not those of the worker's shard";
    return answer(worker, message.call, std::move(result));
  }
  const bool is_new = known == nullptr || known->digests_missing == known->copies.size();
  if (is_new && largest != largest_number.end() && message.version.number <= largest->second) {
    result.status = CallStatus::VersionNotNew;
    result.reason = "version " + std::to_string(largest->second) + " of lineage " +
                    std::to_string(message.version.lineage) + " is known";
    return answer(worker, message.call, std::move(result));
  }
  if (known != nullptr && known->releasing.contains(worker)) {
    // Asked again before it heard Clear: the next that it hears is this, when it is rid of it.
    result.status = CallStatus::BufferBusy;
    result.reason = "a fetch is clearing it";
    return answer(worker, message.call, std::move(result));
  }
  // One that is recorded already is asked again: a coordinator that is gone took it.
  if (known != nullptr && known->withdrawn && holder_of(worker, key) == nullptr) {
    result.status = CallStatus::Withdrawn;
    return answer(worker, message.call, std::move(result));
  }
  const Worker& w = workers[worker.index()];
  if (holder_of(worker, key) == nullptr && w.holders.size() >= card.slots) {
    result.status = CallStatus::BufferBusy;
    result.reason = "unpublish version " + to_string(w.holders.front().version.second) + " first";
    return answer(worker, message.call, std::move(result));
  }
  VersionState& version = version_at(key);
  if (!add_digests(version, card.space, card.shard, *message.digests)) {
    result.status = CallStatus::VersionConflict;
    result.reason = "another root is known for version " + to_string(message.version);
    return answer(worker, message.call, std::move(result));
  }
  note_number(key);
  Holder& holder = add_holder(worker, key, card.shard);
  holder.published = true;
  holder.broken = false;
  verify_blocks(worker, holder, BlockSet::full(holder.verified.size()));
  judge_published(key);
  result.root = version.root;
  answer(worker, message.call, std::move(result));
  if (version.retention.copies != 0) judge_soon(key);
  dirty_versions.insert(key);
}

// Whether every shard of some group has been published. From then on it stays so.
void Coordinator::State::judge_published(VersionKey key) {
  VersionState& version = *find(key);
  if (!version.published) {
    std::map<GroupId, std::size_t> shards;
    for (const WorkerId worker : version.holders) {
      const Holder* holder = holder_of(worker, key);
      const GroupId group = workers[worker.index()].card.group;
      if (!holder->published || !group.valid()) continue;
      if (++shards[group] == groups[group.index()].members.size()) version.published = true;
    }
  }
  if (version.published && version.uncovered == 0) version.lost = false;
  if (fetchable(version)) newly_fetchable(key);
}

// Who fetches the latest version and wants to start over for a newer one.
void Coordinator::State::newly_fetchable(VersionKey key) {
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    if (!group.known || group.space != key.first || group.phase == Phase::Idle ||
        group.phase == Phase::Collecting || group.call.version ||
        group.call.on_newer != OnNewer::Restart || !(group.last.result.version < key.second)) {
      continue;
    }
    CallResult result;
    result.status = CallStatus::Superseded;
    result.version = key.second;
    finish_fetch(GroupId(g), result);
  }
}

void Coordinator::State::on(WorkerId worker, const AskWithdraw& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  CallResult result;
  result.version = message.version;
  VersionState* version = find(key);
  if (version == nullptr) {
    result.status = CallStatus::UnknownVersion;
    return answer(worker, message.call, std::move(result));
  }
  version->withdrawn = true;
  note_holders(key);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    if (group.phase == Phase::Idle || group.phase == Phase::Collecting ||
        group.space != key.first || group.last.result.version != key.second) {
      continue;
    }
    CallResult end;
    end.status = CallStatus::Withdrawn;
    end.version = key.second;
    finish_fetch(GroupId(g), end);
  }
  dirty_versions.insert(key);
  answer(worker, message.call, std::move(result));
}

void Coordinator::State::on(WorkerId worker, const AskLineage& message) {
  CallResult result;
  result.version.lineage = ++largest_lineage[workers[worker.index()].card.space.index()];
  answer(worker, message.call, std::move(result));
}

void Coordinator::State::on(WorkerId worker, const AskInstalled& message) {
  const Worker& w = workers[worker.index()];
  const VersionKey key{w.card.space, message.version};
  VersionState& version = version_at(key);
  version.installed_waits.push_back(
      {worker, w.incarnation, message.call, message.root, message.groups, message.deadline});
  arm(message.deadline, TimerKind::Waits);
  answer_installed(key);
}

void Coordinator::State::answer_installed(VersionKey key) {
  VersionState& version = *find(key);
  if (version.installed_waits.empty()) return;
  std::uint32_t running = 0;
  for (const Group& group : groups) {
    if (group.known && group.space == key.first && group.runs == key.second) ++running;
  }
  std::erase_if(version.installed_waits, [&](const InstalledWait& wait) {
    if (workers[wait.worker.index()].incarnation != wait.incarnation) return true;
    if (running < wait.groups || version.root != wait.root) return false;
    CallResult result;
    result.version = key.second;
    result.root = version.root;
    answer(wait.worker, wait.call, std::move(result));
    return true;
  });
}

// `n`: of a fetch, or zero (Tell). Answers come in the order of the questions.
void Coordinator::State::ask_to_tell(WorkerId worker, VersionKey key, std::uint64_t n) {
  if (Holder* holder = holder_of(worker, key)) ++holder->untold;
  send(worker, Tell{key.second, n});
}

void Coordinator::State::on(WorkerId worker, const Progress& message) {
  const VersionKey key{workers[worker.index()].card.space, message.version};
  if (Holder* holder = holder_of(worker, key)) {
    verify_blocks(worker, *holder, message.verified);
    if (message.told && holder->untold > 0 && --holder->untold == 0 && holder->returning) {
      holder->returning = false;
      if (find(key)->retention.copies != 0) judge_soon(key);
      const WorkerCard& its = workers[worker.index()].card;
      if (!its.host_memory) dirty_groups.insert(its.group);
    }
  }
  const WorkerCard& card = workers[worker.index()].card;
  if (message.told && message.n != 0 && !card.host_memory) {
    Group& group = groups[card.group.index()];
    if (message.n == group.last.n && message.version == group.last.result.version) {
      group.stopped.insert(worker);
      dirty_groups.insert(card.group);
    }
  }
  if (VersionState* version = find(key); version != nullptr && message.told) {
    version->doubtful.erase(worker);
    dirty_versions.insert(key);
  }
}

// What is known of partial holders is old: before a version is given up they are asked.
void Coordinator::State::judge_cover(VersionKey key) {
  VersionState* version = find(key);
  if (version == nullptr) return;
  if (!version->published) return forget_if_unused(key);
  if (version->uncovered == 0) {
    version->lost = false;
    version->told = false;
    version->doubtful.clear();
    if (!version->waiting.empty() && version->gather_at == Time::never() && fetchable(*version)) {
      version->gather_at = now + config.gather;
      arm(version->gather_at, TimerKind::Gather, 0, key);
    }
    return;
  }
  if (version->lost || version->leases == 0) return forget_if_unused(key);
  if (!version->releasing.empty()) return;  // not lost before the last copy is gone
  bool asking = !version->doubtful.empty();
  if (!asking) {
    for (const WorkerId worker : version->holders) {
      const Holder* holder = holder_of(worker, key);
      if (holder->verified.all() || workers[worker.index()].plans.empty()) continue;
      if (holder->hidden) continue;
      version->doubtful.insert(worker);
    }
    asking = !version->doubtful.empty() && !version->told;
    if (asking) {
      version->told = true;
      for (const WorkerId worker : version->doubtful) ask_to_tell(worker, key, 0);
    } else {
      version->doubtful.clear();
    }
  }
  if (!asking) lose(key);
}

void Coordinator::State::lose(VersionKey key) {
  VersionState& version = *find(key);
  version.lost = true;
  version.told = false;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    if (group.phase == Phase::Idle || group.phase == Phase::Collecting ||
        group.space != key.first || group.last.result.version != key.second) {
      continue;
    }
    CallResult result;
    result.status = CallStatus::VersionLost;
    result.version = key.second;
    for (std::uint32_t block = 0; block < version.copies.size(); ++block) {
      if (version.copies[block] != 0) continue;
      if (!result.lost.empty() &&
          result.lost.back().first.value() + result.lost.back().count == block) {
        ++result.lost.back().count;
      } else {
        result.lost.push_back({BlockId(block), 1});
      }
    }
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const ShardId shard{group.layout, rank};
      if (!space(key.first).number(shard, result.lost.front().first)) continue;
      result.shard = shard;
      break;
    }
    finish_fetch(GroupId(g), result);
  }
}

void Coordinator::State::forget_if_unused(VersionKey key) {
  const VersionState* version = find(key);
  if (version == nullptr || !version->holders.empty() || version->leases != 0 ||
      !version->releasing.empty() || !version->installed_waits.empty() ||
      !version->retain_waits.empty() || version->retention.copies != 0 ||
      !version->offloads.empty()) {
    return;
  }
  if (version->published || version->withdrawn) {
    // What was published stays known by name, so that it is not published anew with other bytes.
    std::size_t known = 0;
    for (auto at = versions.lower_bound({key.first, Version{}});
         at != versions.end() && at->first.first == key.first; ++at) {
      ++known;
    }
    if (known <= config.most_versions) return;
  }
  versions.erase(key);
}

}  // namespace holdfast
