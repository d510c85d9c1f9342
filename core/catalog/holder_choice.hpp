// Which holders keep a retained version, where it is offloaded, and who may leave: pure functions
// of the workers' states and of what they hold. Durability is that of protocol.md.
//
// A holder **counts** for a shard if it is complete, live, reliable, not leaving and not broken; of
// those in one fault domain of the level one counts (invariant 9). A shard's **safety** is the
// number of such fault domains, a layout's that of its weakest shard, a version's that of its best
// layout: groups of different layouts cut the same bytes differently, and bytes are safe where
// every shard of at least one layout is. Copies in different layouts are never added up, which
// would need to know which ranges of them are the same: the result may be too low, never too high.
//
//   FaultDomains domains(topology);                       // once
//   Retained version{workers, shards, holdings, 2, Level::Rack};
//   if (safety(domains, version).domains < 2) {
//     for (const Offload& o : choose_holders(domains, version).offloads) ...   // sources: planner
//   }
//
// The choice adds copies and never moves one, so what is fine stays where it is, and repair after a
// loss is the same call on the new state. Copies go to the host memory of workers that would
// count. Preference, for each copy in turn:
//   1. the nearest to a live complete holder, whether it counts or not: inside the same fault
//      domain of the level or the next larger ones, over the WAN last;
//   2. the most free memory, which spreads the load;
//   3. the lowest worker id.
// Shards take turns, those with fewer domains first, then larger ones, then in order, so that where
// not everything fits the weakest shard is as safe as it can be.
//
// Where memory is tight, copies placed earlier in the same call make way (augmenting paths). A
// placement is found whenever there is one if all shards of a layout are equally large, or there is
// room for all as if they were as large as the largest; otherwise it is bin packing, and the search
// ends after a fixed number of steps, so that a placement can be missed where almost no memory is
// left.
//
// Complexity: O(workers + holdings) for safety and where nothing is lacking; O((workers + holdings)
// log workers) while memory is not tight; else up to O(copies x (workers + copies)). Deterministic.
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/catalog/fault_domains.hpp"
#include "core/ids.hpp"
#include "core/topology/topology.hpp"
#include "core/units.hpp"

namespace holdfast {

// A worker as far as retention goes.
struct RetentionWorker {
  WorkerId worker;
  NodeId node;               // its endpoint
  bool host_memory = false;  // takes offloads
  bool reliable = true;      // false: spot
  bool live = true;
  bool leaving = false;
  Bytes free;  // of a host memory: what may be filled, running offloads already taken off
};

// A shard of one of the layouts in which the version was published.
struct RetainedShard {
  Bytes bytes;
  std::uint32_t layout = 0;  // from 0
};

enum class CopyState : std::uint8_t {
  Complete,
  Offloading,  // an offload to it runs: counts in the choice, so that no second one is ordered, and
               // not in safety
  Partial,     // fills for itself or has stopped: never counts
  Broken,      // of a group whose generation has ended: never counts
};

struct ShardHolding {
  std::uint32_t shard = 0;  // index into Retained::shards
  WorkerId worker;          // without an entry in `workers` it is gone, and the holding with it
  CopyState state = CopyState::Complete;
};

// One retained version. Preconditions: `workers` ascend by id; each (shard, worker) occurs once.
struct Retained {
  std::span<const RetentionWorker> workers;
  std::span<const RetainedShard> shards;
  std::span<const ShardHolding> holdings;
  std::uint32_t k = 1;  // in how many fault domains each shard is to be
  Level level = Level::Host;
};

struct Safety {
  std::uint32_t domains = 0;  // 0: some shard has no holder that counts, in every layout
  std::uint32_t layout = 0;   // the one that is this safe, the first if several are
  std::uint32_t shard = 0;    // its weakest shard, the first if several are
  friend bool operator==(const Safety&, const Safety&) = default;
};
// Without shards: k domains, since there is nothing to lose.
[[nodiscard]] Safety safety(const FaultDomains& domains, const Retained& version);

// Copy the shard to the host memory of this worker.
struct Offload {
  std::uint32_t shard = 0;
  WorkerId to;
  friend constexpr auto operator<=>(const Offload&, const Offload&) = default;
};

enum class ShortfallKind {
  NoDomain,  // no fault domain without this shard has a reliable host memory
  NoMemory,  // those that have one have not enough of it free
};
// Why a shard does not get into as many fault domains as it should: the weakest such shard.
struct Shortfall {
  ShortfallKind kind = ShortfallKind::NoDomain;
  std::uint32_t shard = 0;
  std::uint32_t reached = 0;  // fault domains, offloads that run or are chosen included
  std::uint32_t wanted = 0;
  Level level = Level::Host;
  Bytes needed;  // NoMemory: the shard's size
  Bytes free;    // NoMemory: the most that is free in another fault domain, with all offloads
};
// "no memory in a second rack: shard 3 needs 18.0 GB, the most that is free is 9.00 GB" and the
// like.
[[nodiscard]] std::string to_string(const Shortfall& shortfall);

struct HolderChoice {
  std::vector<Offload> offloads;  // ascending; as many as can be where not all can
  std::uint32_t layout = 0;       // of the shards that they copy
  std::uint32_t reached = 0;      // the layout's safety when all offloads are complete, k at most
  std::optional<Shortfall> shortfall;  // none: reached == k
};
// What to copy so that the version becomes Safe(k, level). The layout that needs the fewest bytes
// is completed (then the lowest number); if none can be, the one that comes furthest.
[[nodiscard]] HolderChoice choose_holders(const FaultDomains& domains, const Retained& version);

struct LeaveAnswer {
  std::vector<Offload> start;          // to order
  std::vector<Offload> await;          // that run already and must be complete first
  std::optional<Shortfall> shortfall;  // what stands in the way beyond these
  std::vector<std::uint32_t> floor;    // by shard: the fault domains that must remain
  // True: the workers may go, or overwrite what they hold, at once.
  [[nodiscard]] bool now() const { return start.empty() && await.empty() && !shortfall; }
};
// Whether `leaving` (all workers of a group that starts an InPlace fetch, or a host's that leave;
// ascending) may stop holding the version without lowering a retained shard below min(k, present)
// fault domains, and what must be copied first. With several layouts this is asked of one that is
// as safe as the version, up to k; of every layout while none is complete. A version that is not
// Safe yet hinders nobody whose copy does not count.
//
// Who has to wait asks again, with the `floor` of the first answer: what was present then is what
// must remain. Without it each copy that is made for the leavers would raise what they must leave
// behind, and with fewer than k fault domains they could never go. Who was let go is reported as
// leaving, or without its holdings, from then on.
[[nodiscard]] LeaveAnswer may_leave(const FaultDomains& domains, const Retained& version,
                                    std::span<const WorkerId> leaving,
                                    std::span<const std::uint32_t> floor = {});

}  // namespace holdfast
