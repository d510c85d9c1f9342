// Places copies of shards into host memories, at most one a fault domain and shard: the search
// behind holder_choice.hpp, which says what is preferred and what is promised.
//
// Each copy goes to the best memory that has room. If none has, copies placed before make way along
// the shortest augmenting path over shards and fault domains; with equal sizes that places as many
// copies as any placement can, and a shard never loses a copy that it got.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/catalog/fault_domains.hpp"
#include "core/catalog/holder_choice.hpp"
#include "core/units.hpp"

namespace holdfast {

// A host memory that takes copies.
struct OffloadTarget {
  WorkerId worker;
  NodeId node;
  Bytes free;
};

// A shard that is in `used.size()` fault domains of the level and is to be in `wanted` more.
struct PlacementShard {
  std::uint32_t shard = 0;
  Bytes bytes;
  std::uint32_t wanted = 0;
  std::vector<FaultDomains::Number> used;  // no copy goes there; those of placed copies are added
  // By level: the domains around live holders; no number twice.
  std::array<std::vector<FaultDomains::Number>, kLevels> near;
};

class OffloadPlacement {
 public:
  // Targets ascend by worker. O(targets log targets).
  OffloadPlacement(const FaultDomains& domains, Level level,
                   std::span<const OffloadTarget> targets);

  // Once: places what it can, shards in few fault domains first; true if all that is wanted is
  // placed. Each copy takes at least `room` of its target.
  bool place(std::vector<PlacementShard> shards, Bytes room = {});
  // Once, instead of `place`: all or nothing, by trying placements, at most `steps` copies. For
  // shards of unequal size; exponential without the limit.
  bool search(std::vector<PlacementShard> shards, std::uint64_t steps);

  [[nodiscard]] std::vector<Offload> offloads() const;  // ascending
  [[nodiscard]] std::span<const PlacementShard> shards() const { return shards_; }
  // The most that is free in one memory of a fault domain where the shard (an index of `shards`) is
  // not; nothing where there is no such memory.
  [[nodiscard]] std::optional<Bytes> most_free(std::size_t shard) const;

 private:
  struct Target {
    WorkerId worker;
    Bytes free;
    std::array<std::uint32_t, kLevels> regions{};  // by level; those below the level are not used
    std::vector<std::uint32_t> copies;             // shards placed here, indices of shards_
  };
  struct MoreFree {
    Bytes free;
    std::uint32_t target = 0;
    friend bool operator<(const MoreFree& a, const MoreFree& b) {
      return a.free != b.free ? a.free > b.free : a.target < b.target;
    }
  };
  using Ranking = std::set<MoreFree>;
  struct Step;

  [[nodiscard]] FaultDomains::Number domain_of(std::uint32_t target) const {
    return targets_[target].regions[level_];
  }
  [[nodiscard]] Bytes need(std::uint32_t shard) const;
  [[nodiscard]] std::optional<MoreFree> best_of(const Ranking& region, std::uint32_t shard) const;
  [[nodiscard]] std::optional<std::uint32_t> nearest(std::uint32_t shard) const;

  bool place_one(std::uint32_t shard);
  bool make_way(std::uint32_t shard);
  [[nodiscard]] std::optional<std::uint32_t> visit(std::uint32_t step, std::vector<Step>& steps,
                                                   std::vector<bool>& seen_domain,
                                                   std::vector<bool>& seen_shard) const;
  bool try_from(std::span<const std::uint32_t> copies, std::size_t first, std::uint64_t& steps);
  void put(std::uint32_t shard, std::uint32_t target);
  void take_back(std::uint32_t shard, std::uint32_t target);
  void set_free(std::uint32_t target, Bytes free);
  template <class Change>
  void rank_anew(FaultDomains::Number domain, std::uint32_t example, Change change);

  std::size_t level_;
  Bytes room_;
  std::vector<Target> targets_;
  std::vector<Ranking> in_domain_;             // by fault domain of the level: its targets
  std::vector<FaultDomains::Number> domains_;  // those with targets, ascending
  std::vector<Ranking> best_in_;               // by region: the best target of each fault domain
  std::vector<PlacementShard> shards_;
};

}  // namespace holdfast
