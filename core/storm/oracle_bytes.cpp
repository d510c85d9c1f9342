// The oracle's rules about bytes, blocks and reads.
#include <fmt/format.h>

#include <algorithm>

#include "core/storm/oracle.hpp"

namespace holdfast::storm {

const ModelSpace& Oracle::space_of(WorkerId worker) const {
  return *world_.spaces[world_.cards[worker.index()].space.index()];
}

ShardId Oracle::shard_of(const Stage& stage, WorkerId worker, SlotNumber slot) const {
  const auto holdings = stage.agent(worker)->holdings();
  if (slot < holdings.size() && holdings[slot]) return holdings[slot]->shard;
  const WorkerCard& card = world_.cards[worker.index()];
  return card.host_memory ? kWholeModel : card.shard;
}

std::span<const std::byte> Oracle::true_bytes(const Content& content, BlockId block) {
  std::vector<std::byte>& bytes = bytes_[{content, block}];
  if (bytes.empty()) {
    bytes.resize(static_cast<std::size_t>(
        world_.spaces[content.space.index()]->block_bytes()[block.index()].count()));
    write_block(content, block, bytes);
  }
  return bytes;
}

std::optional<std::uint32_t> Oracle::variant_of(VersionKey key, BlockId block, std::uint64_t offset,
                                                std::span<const std::byte> bytes) {
  for (const std::uint32_t variant : variants_[key]) {
    const auto expected = true_bytes({key.first, key.second, variant}, block);
    if (offset + bytes.size() > expected.size()) return std::nullopt;
    if (std::equal(bytes.begin(), bytes.end(),
                   expected.begin() + static_cast<std::ptrdiff_t>(offset))) {
      return variant;
    }
  }
  return std::nullopt;
}

void Oracle::check_fetched(const Stage& stage, WorkerId worker, const OpenCall& open,
                           const CallResult& result) {
  const VersionKey key{world_.cards[worker.index()].space, result.version};
  const auto& call = std::get<FetchCall>(open.call);
  const auto wrong = [&](const std::string& what) {
    fail(stage, "bytes",
         fmt::format("worker {}: fetch of {} returned Ok, but {}", worker.value(),
                     to_string(result.version), what));
  };
  if (call.version && *call.version != result.version) {
    return wrong(fmt::format("{} was asked for", to_string(*call.version)));
  }
  const Agent& agent = *stage.agent(worker);
  const auto holdings = agent.holdings();
  const auto found = std::find_if(holdings.begin(), holdings.end(), [&](const auto& holding) {
    return holding && holding->version == result.version;
  });
  if (found == holdings.end()) return wrong("no buffer holds it");
  if (agent.runs() != result.version) return wrong("the worker does not run it");
  const auto memory = stage.memory(worker, static_cast<SlotNumber>(found - holdings.begin()));
  const ModelSpace& space = space_of(worker);
  std::optional<std::uint32_t> whole;
  std::size_t at = 0;
  for (std::uint32_t number = 0; number < space.blocks((*found)->shard); ++number) {
    const BlockId block = space.block((*found)->shard, number);
    const auto size = static_cast<std::size_t>(space.block_bytes()[block.index()].count());
    const auto variant = variant_of(key, block, 0, memory.subspan(at, size));
    at += size;
    if (!variant) return wrong(fmt::format("block {} has other bytes", block.value()));
    if (whole && *whole != *variant) return wrong("it is a mixture of two");
    whole = variant;
  }
  if (!whole) return;
  const auto [root, fresh] = roots_[key].emplace(result.root, *whole);
  if (!fresh && root->second != *whole) wrong("its root stands for other bytes elsewhere");
}

// Whatever is marked verified has the bytes of its version.
void Oracle::check_growth(const Stage& stage, WorkerId worker) {
  const auto holdings = stage.agent(worker)->holdings();
  const WorkerCard& card = world_.cards[worker.index()];
  auto& slots = seen_[worker.index()];
  slots.resize(holdings.size());
  std::uint64_t in_use = 0;
  for (SlotNumber slot = 0; slot < holdings.size(); ++slot) {
    const auto& holding = holdings[slot];
    const auto memory = stage.memory(worker, slot);
    if (!holding) {
      slots[slot].reset();
      continue;
    }
    auto& seen = slots[slot];
    if (!seen || seen->version != holding->version ||
        seen->verified.size() != holding->verified.size()) {
      seen = SlotSeen{holding->version, BlockSet(holding->verified.size()), stage.now(), 0};
    }
    if (!holding->verified.includes(seen->verified)) {
      fail(stage, "growth",
           fmt::format("worker {}: verified blocks of {} were forgotten", worker.value(),
                       to_string(holding->version)));
    }
    const ModelSpace& space = space_of(worker);
    for (std::uint32_t number = 0; card.host_memory && number < holding->verified.size();
         ++number) {
      if (!holding->verified.has(number)) continue;
      in_use += space.block_bytes()[space.block(holding->shard, number).index()].count();
    }
    if (seen->verified == holding->verified) continue;
    std::size_t at = 0;
    for (std::uint32_t number = 0; number < holding->verified.size(); ++number) {
      const BlockId block = space.block(holding->shard, number);
      const auto size = static_cast<std::size_t>(space.block_bytes()[block.index()].count());
      if (holding->verified.has(number) && !seen->verified.has(number) &&
          !variant_of({card.space, holding->version}, block, 0, memory.subspan(at, size))) {
        fail(stage, "bytes",
             fmt::format("worker {}: block {} of {} counts as verified and has "
                         "other bytes",
                         worker.value(), block.value(), to_string(holding->version)));
      }
      at += size;
    }
    seen->verified = holding->verified;
  }
  if (card.host_memory && Bytes(in_use) > card.budget) {
    fail(stage, "memory",
         fmt::format("worker {}: {} bytes of host memory in use, {} allowed", worker.value(),
                     in_use, card.budget.count()));
  }
}

namespace {

// The blocks of a shard that lie back to back in a buffer, and a range of it.
template <class Each>
void each_block(const ModelSpace& space, ShardId shard, std::uint64_t from, std::uint64_t to,
                const Each& each) {
  std::uint64_t at = 0;
  for (std::uint32_t number = 0; number < space.blocks(shard) && at < to; ++number) {
    const BlockId block = space.block(shard, number);
    const std::uint64_t end = at + space.block_bytes()[block.index()].count();
    if (end > from)
      each(number, block, std::max(from, at) - at, std::min(to, end) - std::max(from, at));
    at = end;
  }
}

}  // namespace

void Oracle::check_served(const Stage& stage, const ReadSight& sight) {
  if (stage.agent(sight.source) == nullptr) return;
  const SlotNumber slot = stage.slot_of(sight.source, sight.source_region);
  const auto holdings = stage.agent(sight.source)->holdings();
  const VersionKey key{world_.cards[sight.source.index()].space, sight.version};
  const auto who = [&](BlockId block) {
    return fmt::format("worker {} serves block {} of {} to worker {}", sight.source.value(),
                       block.value(), to_string(sight.version), sight.reader.value());
  };
  const ShardId shard = shard_of(stage, sight.source, slot);
  std::size_t taken = 0;
  for (const Piece& piece : sight.pieces) {
    each_block(space_of(sight.source), shard, piece.remote_offset,
               piece.remote_offset + piece.bytes,
               [&](std::uint32_t number, BlockId block, std::uint64_t offset, std::uint64_t size) {
                 const auto bytes = sight.bytes.subspan(taken, static_cast<std::size_t>(size));
                 taken += bytes.size();
                 if (!variant_of(key, block, offset, bytes)) {
                   fail(stage, "served", who(block) + ", but its bytes are others");
                 }
                 const bool right = slot < holdings.size() && holdings[slot] &&
                                    holdings[slot]->version == sight.version;
                 if (!right) {
                   fail(stage, "served", who(block) + ", which it does not hold any more");
                 } else if (!holdings[slot]->verified.has(number)) {
                   fail(stage, "served", who(block) + ", which it has not verified");
                 }
               });
  }
}

void Oracle::check_posted(const Stage& stage, const ReadSight& sight) {
  const WorkerId reader = sight.reader;
  const SlotNumber slot = stage.slot_of(reader, sight.reader_region);
  const auto& slots = seen_[reader.index()];
  const SlotSeen* seen = slot < slots.size() && slots[slot] ? &*slots[slot] : nullptr;
  // What was seen is of the end of the last step: this one may have put another version there.
  const auto holdings = stage.agent(reader)->holdings();
  if (seen != nullptr && slot < holdings.size() && holdings[slot] &&
      holdings[slot]->version != seen->version) {
    seen = nullptr;
  }
  const ShardId shard = shard_of(stage, reader, slot);
  auto& open = reads_[reader.index()];
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  for (const Piece& piece : sight.pieces) {
    const std::uint64_t end = piece.local_offset + piece.bytes;
    low = std::min(low, piece.local_offset);
    high = std::max(high, end);
    for (const auto& [id, other] : open) {
      if (other.slot != slot || other.to <= piece.local_offset || other.from >= end) continue;
      fail(stage, "reads",
           fmt::format("worker {}: a second read into bytes {} to {} of buffer {}, "
                       "from worker {}",
                       reader.value(), piece.local_offset, end, slot, sight.source.value()));
    }
    if (seen == nullptr) continue;
    each_block(space_of(reader), shard, piece.local_offset, end,
               [&](std::uint32_t number, BlockId block, std::uint64_t, std::uint64_t) {
                 if (number >= seen->verified.size() || !seen->verified.has(number)) return;
                 fail(stage, "reads",
                      fmt::format("worker {}: reads block {} of {} from worker {}, "
                                  "though it has it",
                                  reader.value(), block.value(), to_string(seen->version),
                                  sight.source.value()));
               });
  }
  open[sight.id] = {slot, low, high};
}

// Two that differ must not both have been told Ok.
void Oracle::check_published(const Stage& stage, WorkerId worker, const CallResult& result) {
  const Version version = result.version;
  const VersionKey key{world_.cards[worker.index()].space, version};
  const auto& written = written_[worker.index()];
  if (written.empty() || !written[0] || written[0]->version != version) return;
  const OkPublish mine{worker, stage.agent(worker)->incarnation(), coordinator_life_,
                       written[0]->variant};
  const ModelSpace& space = space_of(worker);
  const auto shares = [&](WorkerId other) {
    const ShardId shard = world_.cards[worker.index()].shard;
    for (std::uint32_t number = 0; number < space.blocks(shard); ++number) {
      if (space.number(world_.cards[other.index()].shard, space.block(shard, number))) return true;
    }
    return false;
  };
  for (const OkPublish& other : published_[key]) {
    const Agent* agent = stage.agent(other.worker);
    if (other.variant == mine.variant || other.coordinator_life != coordinator_life_ ||
        agent == nullptr || agent->incarnation() != other.incarnation || !shares(other.worker)) {
      continue;
    }
    const auto holdings = agent->holdings();
    if (holdings.empty() || !holdings[0] || holdings[0]->version != version) continue;
    fail(stage, "roots",
         fmt::format("workers {} and {} have both published {}, with different "
                     "bytes",
                     other.worker.value(), worker.value(), to_string(version)));
  }
  published_[key].push_back(mine);
  // From now on that root is those bytes, whoever fetches it.
  if (result.root != Hash128{}) roots_[key].emplace(result.root, mine.variant);
}

}  // namespace holdfast::storm
