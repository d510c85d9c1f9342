#include "core/catalog/offload_placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast {

namespace {

bool contains(const std::vector<std::uint32_t>& values, std::uint32_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

// A copy that looks for a place: a new one, or one that makes way for `parent`.
struct OffloadPlacement::Step {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t shard = 0;
  std::uint32_t from = kNone;    // the target where it is
  std::uint32_t parent = kNone;  // index of a step
};

OffloadPlacement::OffloadPlacement(const FaultDomains& domains, Level level,
                                   std::span<const OffloadTarget> targets)
    : level_(static_cast<std::size_t>(level)),
      in_domain_(domains.count()),
      best_in_(domains.count() + std::size_t{1}) {
  std::vector<MoreFree> ranked;
  ranked.reserve(targets.size());
  targets_.reserve(targets.size());
  for (const OffloadTarget& target : targets) {
    Target made{target.worker, target.free, {}, {}};
    for (std::size_t l = level_; l < kLevels; ++l) {
      made.regions[l] = domains.of(target.node, static_cast<Level>(l));
    }
    ranked.push_back({target.free, static_cast<std::uint32_t>(targets_.size())});
    targets_.push_back(std::move(made));
  }
  // In order, so that each goes to the end of its rankings in constant time.
  std::sort(ranked.begin(), ranked.end());
  for (const MoreFree& entry : ranked) {
    const Target& target = targets_[entry.target];
    Ranking& own = in_domain_[domain_of(entry.target)];
    own.insert(own.end(), entry);
    if (own.size() > 1) continue;
    domains_.push_back(domain_of(entry.target));
    for (std::size_t l = level_; l < kLevels; ++l) {
      Ranking& region = best_in_[target.regions[l]];
      region.insert(region.end(), entry);
    }
    best_in_.back().insert(best_in_.back().end(), entry);
  }
  std::sort(domains_.begin(), domains_.end());
}

Bytes OffloadPlacement::need(std::uint32_t shard) const {
  return std::max(shards_[shard].bytes, room_);
}

// Rankings are by free memory, so the first one in a fault domain without the shard decides.
std::optional<OffloadPlacement::MoreFree> OffloadPlacement::best_of(const Ranking& region,
                                                                    std::uint32_t shard) const {
  for (const MoreFree& entry : region) {
    if (entry.free < need(shard)) return std::nullopt;
    if (!contains(shards_[shard].used, domain_of(entry.target))) return entry;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> OffloadPlacement::nearest(std::uint32_t shard) const {
  for (std::size_t l = level_; l < kLevels; ++l) {
    std::optional<MoreFree> best;
    for (const FaultDomains::Number region : shards_[shard].near[l]) {
      const std::optional<MoreFree> found = best_of(best_in_[region], shard);
      if (found && (!best || *found < *best)) best = found;
    }
    if (best) return best->target;
  }
  const std::optional<MoreFree> anywhere = best_of(best_in_.back(), shard);
  return anywhere ? std::optional(anywhere->target) : std::nullopt;
}

template <class Change>
void OffloadPlacement::rank_anew(FaultDomains::Number domain, std::uint32_t example,
                                 Change change) {
  Ranking& own = in_domain_[domain];
  const MoreFree before = *own.begin();
  change(own);
  const MoreFree after = *own.begin();
  if (!(before < after) && !(after < before)) return;
  const auto replace = [&](Ranking& region) {
    region.erase(before);
    region.insert(after);
  };
  // Levels without a domain of their own share the region of the next one.
  const auto& regions = targets_[example].regions;
  for (std::size_t l = level_; l < kLevels; ++l) {
    if (l == level_ || regions[l] != regions[l - 1]) replace(best_in_[regions[l]]);
  }
  replace(best_in_.back());
}

void OffloadPlacement::set_free(std::uint32_t target, Bytes free) {
  rank_anew(domain_of(target), target, [&](Ranking& own) {
    own.erase({targets_[target].free, target});
    own.insert({free, target});
  });
  targets_[target].free = free;
}

void OffloadPlacement::put(std::uint32_t shard, std::uint32_t target) {
  set_free(target, targets_[target].free - need(shard));
  targets_[target].copies.push_back(shard);
  shards_[shard].used.push_back(domain_of(target));
}

void OffloadPlacement::take_back(std::uint32_t shard, std::uint32_t target) {
  set_free(target, targets_[target].free + need(shard));
  std::erase(targets_[target].copies, shard);
  std::erase(shards_[shard].used, domain_of(target));
}

// Looks from one step at all fault domains that were not seen: a target with room there ends the
// search; copies whose place would do become steps.
std::optional<std::uint32_t> OffloadPlacement::visit(std::uint32_t step, std::vector<Step>& steps,
                                                     std::vector<bool>& seen_domain,
                                                     std::vector<bool>& seen_shard) const {
  const std::uint32_t shard = steps[step].shard;
  for (const FaultDomains::Number domain : domains_) {
    if (seen_domain[domain] || contains(shards_[shard].used, domain)) continue;
    const MoreFree best = *in_domain_[domain].begin();
    if (best.free >= need(shard)) return best.target;
    seen_domain[domain] = true;
    for (const MoreFree& entry : in_domain_[domain]) {
      for (const std::uint32_t other : targets_[entry.target].copies) {
        if (entry.free + need(other) < need(shard)) continue;
        if (seen_shard[other]) continue;
        seen_shard[other] = true;
        steps.push_back({other, entry.target, step});
      }
    }
  }
  return std::nullopt;
}

bool OffloadPlacement::make_way(std::uint32_t shard) {
  std::vector<bool> seen_domain(in_domain_.size());
  std::vector<bool> seen_shard(shards_.size());
  seen_shard[shard] = true;
  std::vector<Step> steps{{shard}};
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    std::optional<std::uint32_t> target = visit(step, steps, seen_domain, seen_shard);
    if (!target) continue;
    // Each target and shard is on the path once, so that every copy finds its place left.
    for (std::uint32_t at = step; at != Step::kNone; at = steps[at].parent) {
      const std::uint32_t left = steps[at].from;
      if (left != Step::kNone) take_back(steps[at].shard, left);
      put(steps[at].shard, *target);
      target = left;
    }
    return true;
  }
  return false;
}

bool OffloadPlacement::place_one(std::uint32_t shard) {
  const std::optional<std::uint32_t> target = nearest(shard);
  if (!target) return make_way(shard);
  put(shard, *target);
  return true;
}

bool OffloadPlacement::place(std::vector<PlacementShard> shards, Bytes room) {
  shards_ = std::move(shards);
  room_ = room;
  std::vector<std::uint32_t> order(shards_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return shards_[a].bytes > shards_[b].bytes;
  });
  std::vector<std::size_t> goal;
  std::size_t most = 0;
  for (const PlacementShard& shard : shards_) {
    goal.push_back(shard.used.size() + shard.wanted);
    most = std::max(most, goal.back());
  }
  bool all = true;
  // No more rounds than fault domains, however many copies are wanted.
  most = std::min(most, in_domain_.size() + 1);
  for (std::size_t count = 1; count <= most; ++count) {
    for (const std::uint32_t shard : order) {
      if (shards_[shard].used.size() >= std::min(count, goal[shard])) continue;
      if (place_one(shard)) continue;
      // It would find no place later either.
      goal[shard] = shards_[shard].used.size();
      all = false;
    }
  }
  return all;
}

bool OffloadPlacement::try_from(std::span<const std::uint32_t> copies, std::size_t first,
                                std::uint64_t& steps) {
  if (first == copies.size()) return true;
  const std::uint32_t shard = copies[first];
  // A shard's copies ascend by fault domain, so that no set of them is tried twice.
  const bool again = first > 0 && copies[first - 1] == shard;
  const FaultDomains::Number above = again ? shards_[shard].used.back() + 1 : 0;
  for (auto at = std::lower_bound(domains_.begin(), domains_.end(), above); at != domains_.end();
       ++at) {
    if (contains(shards_[shard].used, *at)) continue;
    const Ranking ranked = in_domain_[*at];  // a copy: trying changes it
    std::optional<Bytes> tried;
    for (const MoreFree& entry : ranked) {
      if (entry.free < need(shard)) break;
      if (tried == entry.free) continue;  // as good as the one before
      tried = entry.free;
      if (steps == 0) return false;
      --steps;
      put(shard, entry.target);
      if (try_from(copies, first + 1, steps)) return true;
      take_back(shard, entry.target);
    }
  }
  return false;
}

bool OffloadPlacement::search(std::vector<PlacementShard> shards, std::uint64_t steps) {
  shards_ = std::move(shards);
  room_ = {};
  std::vector<std::uint32_t> copies;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    copies.insert(copies.end(), shards_[shard].wanted, shard);
  }
  std::stable_sort(copies.begin(), copies.end(), [&](std::uint32_t a, std::uint32_t b) {
    return shards_[a].bytes > shards_[b].bytes;
  });
  return try_from(copies, 0, steps);
}

std::vector<Offload> OffloadPlacement::offloads() const {
  std::vector<Offload> found;
  for (const Target& target : targets_) {
    for (const std::uint32_t shard : target.copies) {
      found.push_back({shards_[shard].shard, target.worker});
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Bytes> OffloadPlacement::most_free(std::size_t shard) const {
  for (const MoreFree& entry : best_in_.back()) {
    if (!contains(shards_[shard].used, domain_of(entry.target))) return entry.free;
  }
  return std::nullopt;
}

}  // namespace holdfast
