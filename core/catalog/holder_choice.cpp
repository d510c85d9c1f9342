#include "core/catalog/holder_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/catalog/offload_placement.hpp"
#include "core/mutant.hpp"

namespace holdfast {

namespace {

// Beyond these many placements tried, at some microseconds each, a tight fit is given up.
constexpr std::uint64_t kSearchSteps = 4'000;
constexpr std::uint64_t kSearchCopies = 64;

using Number = FaultDomains::Number;

// A holding that counts, or will: the first of its fault domain.
struct Counted {
  std::uint32_t shard = 0;
  Number domain = 0;
  bool running = false;
  WorkerId worker;
};

const RetentionWorker* find(const Retained& version, WorkerId id) {
  const std::span<const RetentionWorker> workers = version.workers;
  // Ids are dense as a rule.
  if (id.index() < workers.size() && workers[id.index()].worker == id) return &workers[id.index()];
  const auto found =
      std::lower_bound(workers.begin(), workers.end(), id,
                       [](const RetentionWorker& w, WorkerId wanted) { return w.worker < wanted; });
  return found != workers.end() && found->worker == id ? &*found : nullptr;
}

bool counts(const RetentionWorker& worker, std::span<const WorkerId> leaving) {
  return worker.live && (worker.reliable || mutated(Mutant::CountSpot)) && !worker.leaving &&
         !std::binary_search(leaving.begin(), leaving.end(), worker.worker);
}

// Ascending by shard; one entry a shard and fault domain, that of a complete holder if there is
// one, else of the running offload to the lowest worker. Running ones are the last of their shard,
// ascending by worker. O(holdings + fault domains + shards), offloads that run aside.
std::vector<Counted> counted(const FaultDomains& domains, const Retained& version,
                             std::span<const WorkerId> leaving, bool running_too) {
  std::vector<Counted> all;  // complete ones first
  std::vector<Counted> running;
  for (const ShardHolding& holding : version.holdings) {
    const bool runs = holding.state == CopyState::Offloading;
    const bool complete = holding.state == CopyState::Complete ||
                          (mutated(Mutant::CountPartial) && holding.state == CopyState::Partial);
    if (!complete && !(runs && running_too)) continue;
    const RetentionWorker* worker = find(version, holding.worker);
    if (worker == nullptr || !counts(*worker, leaving)) continue;
    (runs ? running : all)
        .push_back({holding.shard, domains.of(worker->node, version.level), runs, holding.worker});
  }
  std::sort(running.begin(), running.end(),
            [](const Counted& a, const Counted& b) { return a.worker < b.worker; });
  all.insert(all.end(), running.begin(), running.end());

  // Brought together by shard in this order, then the first of each fault domain.
  std::vector<std::uint32_t> next(version.shards.size() + 1);
  for (const Counted& entry : all) ++next[entry.shard + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> order(all.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) order[next[all[i].shard]++] = i;
  std::vector<std::uint32_t> seen(domains.count());  // the last shard that was seen there, plus 1
  std::vector<Counted> found;
  for (const std::uint32_t i : order) {
    const Counted& entry = all[i];
    if (seen[entry.domain] == entry.shard + 1) continue;
    seen[entry.domain] = entry.shard + 1;
    found.push_back(entry);
  }
  return found;
}

std::vector<std::uint32_t> by_shard(const Retained& version, std::span<const Counted> entries) {
  std::vector<std::uint32_t> found(version.shards.size());
  for (const Counted& entry : entries) ++found[entry.shard];
  return found;
}

// The weakest shard of each layout; layouts without shards have none.
std::vector<std::optional<Safety>> by_layout(const Retained& version,
                                             std::span<const std::uint32_t> in_domains) {
  std::vector<std::optional<Safety>> found;
  for (std::uint32_t s = 0; s < version.shards.size(); ++s) {
    const std::uint32_t layout = version.shards[s].layout;
    if (layout >= found.size()) found.resize(layout + std::size_t{1});
    std::optional<Safety>& weakest = found[layout];
    if (!weakest || in_domains[s] < weakest->domains) weakest = Safety{in_domains[s], layout, s};
  }
  return found;
}

Safety best_of(const Retained& version, std::span<const std::optional<Safety>> layouts) {
  std::optional<Safety> best;
  for (const std::optional<Safety>& layout : layouts) {
    if (layout && (!best || layout->domains > best->domains)) best = layout;
  }
  return best.value_or(Safety{version.k, 0, 0});
}

// What some shards lack: of one layout, or of all.
struct Lack {
  std::uint32_t layout = 0;
  std::vector<std::uint32_t> shards;
  Bytes bytes;

  // Shards without bytes have their copies too.
  [[nodiscard]] std::pair<Bytes, std::size_t> cost() const { return {bytes, shards.size()}; }
};

// By layout, the one that lacks the fewest bytes first. `copies`: by shard, those to be made.
std::vector<Lack> lacks(const Retained& version, std::span<const std::uint32_t> copies,
                        const std::vector<bool>& eligible) {
  std::vector<Lack> found(eligible.size());
  for (std::uint32_t s = 0; s < version.shards.size(); ++s) {
    Lack& lack = found[version.shards[s].layout];
    if (copies[s] == 0) continue;
    lack.shards.push_back(s);
    lack.bytes += version.shards[s].bytes * copies[s];
  }
  for (std::uint32_t layout = 0; layout < found.size(); ++layout) found[layout].layout = layout;
  std::erase_if(found, [&](const Lack& lack) { return !eligible[lack.layout]; });
  std::stable_sort(found.begin(), found.end(),
                   [](const Lack& a, const Lack& b) { return a.cost() < b.cost(); });
  return found;
}

struct Placed {
  std::vector<Offload> offloads;
  std::optional<Shortfall> shortfall;
};

// Places the copies of one Lack after the other.
class Placer {
 public:
  // `present`: fault domains that get no copy of a shard.
  Placer(const FaultDomains& domains, const Retained& version, std::span<const WorkerId> leaving,
         std::span<const std::uint32_t> copies, std::span<const Counted> present)
      : domains_(domains), version_(version), shards_(version.shards.size()) {
    for (std::uint32_t s = 0; s < shards_.size(); ++s) {
      shards_[s].shard = s;
      shards_[s].bytes = version.shards[s].bytes;
      shards_[s].wanted = copies[s];
    }
    for (const Counted& entry : present) shards_[entry.shard].used.push_back(entry.domain);
    for (const RetentionWorker& worker : version.workers) {
      if (!worker.host_memory || !counts(worker, leaving)) continue;
      targets_.push_back({worker.worker, worker.node, worker.free});
    }
    find_near();
  }

  Placed place(const Lack& lack) const {
    if (lack.shards.empty()) return {};
    std::vector<PlacementShard> shards;
    Bytes largest;
    std::uint64_t copies = 0;
    for (const std::uint32_t s : lack.shards) {
      shards.push_back(shards_[s]);
      largest = std::max(largest, shards_[s].bytes);
      copies += shards_[s].wanted;
    }
    OffloadPlacement placement(domains_, version_.level, targets_);
    if (placement.place(shards)) return {placement.offloads(), std::nullopt};
    const bool unequal = std::any_of(shards.begin(), shards.end(),
                                     [&](const PlacementShard& s) { return s.bytes != largest; });
    if (unequal) {
      OffloadPlacement roomy(domains_, version_.level, targets_);
      if (roomy.place(shards, largest)) return {roomy.offloads(), std::nullopt};
      OffloadPlacement tight(domains_, version_.level, targets_);
      if (copies <= kSearchCopies && tight.search(shards, kSearchSteps)) {
        return {tight.offloads(), std::nullopt};
      }
    }
    return {placement.offloads(), shortfall(placement, shards)};
  }

 private:
  void find_near() {
    for (const ShardHolding& holding : version_.holdings) {
      if (holding.state != CopyState::Complete || shards_[holding.shard].wanted == 0) continue;
      const RetentionWorker* worker = find(version_, holding.worker);
      if (worker == nullptr || !worker->live) continue;
      for (auto level = static_cast<std::size_t>(version_.level); level < kLevels; ++level) {
        shards_[holding.shard].near[level].push_back(
            domains_.of(worker->node, static_cast<Level>(level)));
      }
    }
    for (PlacementShard& shard : shards_) {
      for (std::vector<Number>& near : shard.near) {
        std::sort(near.begin(), near.end());
        near.erase(std::unique(near.begin(), near.end()), near.end());
      }
    }
  }

  // Of the weakest shard that did not get all; `before` as it was wanted.
  Shortfall shortfall(const OffloadPlacement& placement,
                      std::span<const PlacementShard> before) const {
    Shortfall found;
    std::optional<std::size_t> weakest;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto reached = static_cast<std::uint32_t>(placement.shards()[i].used.size());
      const std::uint32_t wanted =
          static_cast<std::uint32_t>(before[i].used.size()) + before[i].wanted;
      if (reached >= wanted || (weakest && reached >= found.reached)) continue;
      weakest = i;
      found.shard = before[i].shard;
      found.reached = reached;
      found.wanted = wanted;
    }
    const std::optional<Bytes> free = placement.most_free(*weakest);
    found.kind = free ? ShortfallKind::NoMemory : ShortfallKind::NoDomain;
    found.level = version_.level;
    found.needed = free ? before[*weakest].bytes : Bytes();
    found.free = free.value_or(Bytes());
    return found;
  }

  const FaultDomains& domains_;
  const Retained& version_;
  std::vector<PlacementShard> shards_;
  std::vector<OffloadTarget> targets_;
};

std::string ordinal(std::uint32_t n) {
  constexpr const char* kWords[] = {"first", "second", "third"};
  return n >= 1 && n <= 3 ? kWords[n - 1] : fmt::format("{}th", n);
}

}  // namespace

Safety safety(const FaultDomains& domains, const Retained& version) {
  return best_of(version,
                 by_layout(version, by_shard(version, counted(domains, version, {}, false))));
}

HolderChoice choose_holders(const FaultDomains& domains, const Retained& version) {
  const std::vector<Counted> present = counted(domains, version, {}, true);
  const std::vector<std::uint32_t> in_domains = by_shard(version, present);
  const auto layouts = by_layout(version, in_domains);
  std::vector<bool> eligible;
  for (const std::optional<Safety>& layout : layouts) eligible.push_back(layout.has_value());
  std::vector<std::uint32_t> copies;
  for (const std::uint32_t n : in_domains) copies.push_back(n < version.k ? version.k - n : 0);

  const std::vector<Lack> wanted = lacks(version, copies, eligible);
  if (wanted.empty()) return {{}, 0, version.k, std::nullopt};
  if (wanted.front().shards.empty()) return {{}, wanted.front().layout, version.k, std::nullopt};
  const Placer placer(domains, version, {}, copies, present);
  std::optional<HolderChoice> best;
  for (const Lack& lack : wanted) {
    Placed placed = placer.place(lack);
    const std::uint32_t reached = placed.shortfall ? placed.shortfall->reached : version.k;
    if (best && reached <= best->reached) continue;
    best = {std::move(placed.offloads), lack.layout, reached, placed.shortfall};
    if (!best->shortfall) break;
  }
  return *std::move(best);
}

LeaveAnswer may_leave(const FaultDomains& domains, const Retained& version,
                      std::span<const WorkerId> leaving, std::span<const std::uint32_t> floor) {
  std::vector<std::uint32_t> keep = by_shard(version, counted(domains, version, {}, false));
  for (std::size_t s = 0; s < keep.size(); ++s) {
    keep[s] = std::min({keep[s], version.k, floor.empty() ? version.k : floor[s]});
  }
  const std::vector<Counted> left = counted(domains, version, leaving, true);
  std::vector<std::uint32_t> lacking = keep;
  for (const Counted& entry : left) {
    if (!entry.running && lacking[entry.shard] > 0) --lacking[entry.shard];
  }
  // Offloads that run come before new ones.
  std::vector<std::uint32_t> copies = std::move(lacking);
  std::vector<Offload> running;
  for (const Counted& entry : left) {
    if (!entry.running || copies[entry.shard] == 0) continue;
    --copies[entry.shard];
    running.push_back({entry.shard, entry.worker});
  }

  const auto layouts = by_layout(version, keep);
  const std::uint32_t kept = best_of(version, layouts).domains;
  std::vector<bool> eligible;
  for (const std::optional<Safety>& layout : layouts) {
    eligible.push_back(layout && layout->domains >= kept);
  }
  std::vector<Lack> wanted = lacks(version, copies, eligible);
  if (wanted.empty()) return {{}, {}, std::nullopt, std::move(keep)};
  if (kept == 0) {
    // No layout is complete: nothing may go that one of them still has.
    for (std::size_t i = 1; i < wanted.size(); ++i) {
      wanted[0].shards.insert(wanted[0].shards.end(), wanted[i].shards.begin(),
                              wanted[i].shards.end());
    }
    wanted.resize(1);
  }
  const auto awaited = [&](const Lack& lack) {
    std::vector<Offload> found;
    for (const Offload& offload : running) {
      if (kept == 0 || version.shards[offload.shard].layout == lack.layout) {
        found.push_back(offload);
      }
    }
    return found;
  };
  std::stable_sort(wanted.begin(), wanted.end(), [&](const Lack& a, const Lack& b) {
    return std::pair(a.cost(), awaited(a).size()) < std::pair(b.cost(), awaited(b).size());
  });
  const Placer placer(domains, version, leaving, copies, left);
  std::optional<LeaveAnswer> first;
  for (const Lack& lack : wanted) {
    Placed placed = placer.place(lack);
    LeaveAnswer answer{std::move(placed.offloads), awaited(lack), placed.shortfall, keep};
    if (!answer.shortfall) return answer;
    if (!first) first = std::move(answer);
  }
  return *std::move(first);
}

std::string to_string(const Shortfall& shortfall) {
  const std::string place =
      fmt::format("{} {}", ordinal(shortfall.reached + 1), to_string(shortfall.level));
  if (shortfall.kind == ShortfallKind::NoDomain) {
    return fmt::format("no {} has reliable host memory for shard {}, which is to be in {}", place,
                       shortfall.shard, shortfall.wanted);
  }
  return fmt::format("no memory in a {}: shard {} needs {}, the most that is free is {}", place,
                     shortfall.shard, rounded(shortfall.needed), rounded(shortfall.free));
}

}  // namespace holdfast
