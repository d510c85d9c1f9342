#include "core/engine/placement.hpp"

#include <algorithm>

namespace holdfast {

PackedPlacement::PackedPlacement(std::span<const Bytes> block_bytes) {
  start_.reserve(block_bytes.size() + 1);
  std::uint64_t at = 0;
  for (const Bytes bytes : block_bytes) {
    start_.push_back(at);
    at += bytes.count();
  }
  start_.push_back(at);
}

void PackedPlacement::append_extents(WorkerId /*worker*/, BlockId block,
                                     std::vector<Extent>& out) const {
  out.push_back(extent(block));
}

Bytes PackedPlacement::region_bytes(WorkerId /*worker*/) const {
  return Bytes(start_.back());
}

Extent PackedPlacement::extent(BlockId block) const {
  const std::uint64_t start = start_[block.index()];
  return {start, start_[block.index() + 1] - start};
}

void append_pieces(std::span<const Extent> source, std::span<const Extent> destination,
                   std::vector<Piece>& out) {
  std::size_t s = 0;
  std::size_t d = 0;
  std::uint64_t in_source = 0;
  std::uint64_t in_destination = 0;
  while (s < source.size() && d < destination.size()) {
    const std::uint64_t bytes =
        std::min(source[s].bytes - in_source, destination[d].bytes - in_destination);
    out.push_back({source[s].offset + in_source, destination[d].offset + in_destination, bytes});
    in_source += bytes;
    in_destination += bytes;
    if (in_source == source[s].bytes) {
      ++s;
      in_source = 0;
    }
    if (in_destination == destination[d].bytes) {
      ++d;
      in_destination = 0;
    }
  }
}

}  // namespace holdfast
