// Who needs which bytes of which version, and who already holds them.
//
// A demand is a value. Its blocks are grouped into classes: the blocks with the same holders and
// the same receivers. Everything a planner, the checker, the bound and the engine need to know
// about the weights is here; tensors and layouts are not.
//
// Invariants (validate() checks them; readers call it):
//   1. each block belongs to at most one class (to none if nobody wants it); a class has at least
//      one block, its spans ascend and do not touch;
//   2. each class has at least one holder and one receiver; both lists ascend, they are disjoint;
//   3. workers name different endpoints (GPU or host memory) of the topology;
//   4. block sizes lie between 1 and block_size and add up to less than 2^63 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/topology/topology.hpp"
#include "core/units.hpp"

namespace holdfast {

// A version of a model's weights: compared by lineage, then number.
struct Version {
  std::uint64_t lineage = 0;
  std::uint64_t number = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

// A process that owns the buffers of one endpoint.
struct DemandWorker {
  NodeId node;  // the GPU or host memory
  std::uint32_t group =
      0;                  // the replica it belongs to: a group waits until all its shards are there
  Bytes memory_free;      // what a receiver may fill; the checker refuses a plan that needs more
  bool may_serve = true;  // false: no plan may read from it (leaving, draining, spot by policy)
  friend bool operator==(const DemandWorker&, const DemandWorker&) = default;
};

// `count` consecutive blocks.
struct BlockSpan {
  BlockId first;
  std::uint32_t count = 0;
  friend constexpr auto operator<=>(const BlockSpan&, const BlockSpan&) = default;
};

struct BlockClass {
  std::vector<BlockSpan> blocks;    // ascending, not touching
  std::vector<WorkerId> holders;    // ascending
  std::vector<WorkerId> receivers;  // ascending
  friend bool operator==(const BlockClass&, const BlockClass&) = default;
};

struct Demand {
  std::string model;
  Version version;
  Bytes block_size;
  bool verify = true;              // blocks are digested before they count
  std::vector<Bytes> block_bytes;  // by BlockId
  std::vector<DemandWorker> workers;
  std::vector<BlockClass> classes;

  friend bool operator==(const Demand&, const Demand&) = default;
};

// Throws Error(BadPlan) naming the first broken invariant, with its pointer into the plan file
// ("/demand/classes/3/holders/0"). O(size of the demand + nodes).
void validate(const Demand& demand, const Topology& topology);

[[nodiscard]] Hash128 hash_of(const Demand& demand);

[[nodiscard]] std::uint32_t block_count(const BlockClass& c);
[[nodiscard]] Bytes bytes_of(const Demand& demand, const BlockClass& c);
// The blocks of a class in order: the k-th block of the class is `[k]`.
[[nodiscard]] std::vector<BlockId> blocks_of(const BlockClass& c);
// Bytes that each worker is to receive, by worker id. O(sum of receivers).
[[nodiscard]] std::vector<Bytes> missing_bytes(const Demand& demand);

// Collects, for single workers, what they hold and want, and groups the blocks into classes.
//
//   DemandBuilder builder("llama", {1, 7}, block_size, block_bytes);
//   WorkerId source = builder.add_worker({.node = gpu0});
//   builder.holds(source, {BlockId(0U), 1024});
//   Demand demand = std::move(builder).build();
class DemandBuilder {
 public:
  DemandBuilder(std::string model, Version version, Bytes block_size,
                std::vector<Bytes> block_bytes);
  WorkerId add_worker(DemandWorker worker);
  void holds(WorkerId worker, BlockSpan blocks);
  void wants(WorkerId worker, BlockSpan blocks);  // blocks that it also holds are not missing
  void set_verify(bool verify) { demand_.verify = verify; }

  // Holders that may not serve are in no class: nobody may read from them, and they miss nothing.
  // Blocks that nobody wants are in no class: they are dropped from the demand's classes but keep
  // their ids. Classes are ordered by their first block. Throws Error(BadValue) if a wanted block
  // has no holder that may serve, naming the first one, if nobody misses anything, and for a span
  // beyond the blocks or an unknown worker. O((spans + blocks) log + size of the classes).
  [[nodiscard]] Demand build() &&;

 private:
  struct Interval {
    WorkerId worker;
    BlockSpan blocks;
  };
  Demand demand_;
  std::vector<Interval> held_;
  std::vector<Interval> wanted_;
};

}  // namespace holdfast
