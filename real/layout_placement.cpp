#include "real/layout_placement.hpp"

#include <utility>

namespace holdfast::real {

LayoutPlacement::LayoutPlacement(const WeightMap& map, std::vector<HeldShard> workers)
    : map_(map), workers_(std::move(workers)) {
  for (const Segment& segment : map.segments()) total_ += segment.bytes;
}

void LayoutPlacement::append_extents(WorkerId worker, BlockId block,
                                     std::vector<Extent>& out) const {
  const HeldShard& held = workers_[worker.index()];
  const std::vector<Run> runs =
      held.layout ? map_.local_runs(*held.layout, held.shard, block) : map_.model_runs(block);
  for (const Run& run : runs) {
    for (std::uint64_t n = 0; n < run.count; ++n) {
      out.push_back({run.offset + n * run.stride, run.length});
    }
  }
}

Bytes LayoutPlacement::region_bytes(WorkerId worker) const {
  const HeldShard& held = workers_[worker.index()];
  return held.layout ? map_.shard_bytes(*held.layout, held.shard) : total_;
}

}  // namespace holdfast::real
