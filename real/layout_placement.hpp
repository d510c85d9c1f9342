// Placement of workers that hold a shard each, laid out as their servers use it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/placement.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast::real {

// One shard of a layout of the map; no layout: the whole model, in model space.
struct HeldShard {
  std::optional<std::size_t> layout{};  // index into WeightMap::layouts
  std::uint32_t shard = 0;
};

// The region of a worker is its shard's memory: what it holds of each tensor in name order, back to
// back (WeightMap::local_runs). Blocks of tensors that are cut by columns have an extent a row.
// Immutable. `append_extents` takes what local_runs take.
class LayoutPlacement final : public Placement {
 public:
  // Keeps a reference to the map. `workers[i]` is worker i's; layouts and shards must be there.
  LayoutPlacement(const WeightMap& map, std::vector<HeldShard> workers);

  void append_extents(WorkerId worker, BlockId block, std::vector<Extent>& out) const override;
  [[nodiscard]] Bytes region_bytes(WorkerId worker) const override;

 private:
  const WeightMap& map_;
  std::vector<HeldShard> workers_;
  Bytes total_;
};

}  // namespace holdfast::real
