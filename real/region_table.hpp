// The registered memory of one worker, shared by its Transport and its Memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/transport.hpp"

namespace holdfast::real {

// One thread. Regions are never taken out: their memory must outlive everyone who uses the table.
class RegionTable {
 public:
  RegionId add(std::span<std::byte> memory) {
    regions_.push_back(memory);
    return RegionId(regions_.size() - 1);
  }
  [[nodiscard]] bool has(RegionId region) const { return region.index() < regions_.size(); }
  // False for a region that there is not, and for what would reach beyond its end.
  [[nodiscard]] bool inside(RegionId region, std::uint64_t offset, std::uint64_t bytes) const {
    if (!has(region)) return false;
    const std::uint64_t size = regions_[region.index()].size();
    return offset <= size && bytes <= size - offset;
  }
  // `inside` must hold.
  [[nodiscard]] std::span<std::byte> part(RegionId region, std::uint64_t offset,
                                          std::uint64_t bytes) const {
    return regions_[region.index()].subspan(offset, bytes);
  }

 private:
  std::vector<std::span<std::byte>> regions_;
};

}  // namespace holdfast::real
