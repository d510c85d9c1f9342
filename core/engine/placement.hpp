// Where the blocks of a version lie in the regions of workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/memory.hpp"
#include "core/engine/transport.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace holdfast {

// Immutable, shared by all engines of a process. The k-th byte of a block is the k-th byte of its
// extents, whatever the layout, so that a reader can pair any two of them.
class Placement {
 public:
  Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
  virtual ~Placement() = default;

  // Appends the block's extents in the worker's region, in the block's order. No extent is empty.
  virtual void append_extents(WorkerId worker, BlockId block, std::vector<Extent>& out) const = 0;
  // Least size of the worker's region.
  [[nodiscard]] virtual Bytes region_bytes(WorkerId worker) const = 0;
};

// All blocks of the version back to back in id order, the same in each region: one prefix table for
// everyone. A region spans the version; in simulation only its size counts.
class PackedPlacement final : public Placement {
 public:
  explicit PackedPlacement(std::span<const Bytes> block_bytes);
  void append_extents(WorkerId worker, BlockId block, std::vector<Extent>& out) const override;
  [[nodiscard]] Bytes region_bytes(WorkerId worker) const override;
  [[nodiscard]] Extent extent(BlockId block) const;

 private:
  std::vector<std::uint64_t> start_;  // one more than blocks
};

// Pairs the extents of one block at its source and at its destination: appends the pieces to `out`,
// in order, each as long as both sides allow. The sums of both must be equal. O(extents).
void append_pieces(std::span<const Extent> source, std::span<const Extent> destination,
                   std::vector<Piece>& out);

}  // namespace holdfast
