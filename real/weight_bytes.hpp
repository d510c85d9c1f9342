// The weights of local runs: bytes that anyone can compute and check, without a checkpoint.
//
// Byte k of a tensor is a pure function of (model, version, tensor's name, k), where k counts in
// the unsharded tensor, row-major; so every layout of a model has the same bytes. It is byte k mod
// 8 (little-endian) of a word that mixes a seed, the XXH3 of model, version and name, with k / 8.
// No two words of a tensor are equal, so that a byte range that went to a wrong place shows.
//
//   const WeightBytes bytes(manifest, version);
//   bytes.fill(tensor, 0, memory);
//   bytes.first_wrong(tensor, 0, memory);  // nothing: all right
//
// Immutable: any number of threads. Several GB/s (tests/bench/real_bench.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/placement.hpp"
#include "core/plan/demand.hpp"
#include "core/weights/manifest.hpp"
#include "core/weights/weight_map.hpp"

namespace holdfast::real {

// What destinations are filled with before a fetch.
inline constexpr std::byte kPoison{0xcd};

class WeightBytes {
 public:
  WeightBytes(const Manifest& manifest, Version version);

  // Bytes `offset` ... of a tensor (its number in the manifest). O(bytes).
  void fill(std::size_t tensor, std::uint64_t offset, std::span<std::byte> out) const;
  // Offset in the tensor of the first byte that is wrong. O(bytes).
  [[nodiscard]] std::optional<std::uint64_t> first_wrong(std::size_t tensor, std::uint64_t offset,
                                                         std::span<const std::byte> bytes) const;

 private:
  std::vector<std::uint64_t> seeds_;  // by tensor
};

// What a trainer does: writes the blocks to where the placement has them in the worker's region.
// `map` must be of `manifest`, and the region at least placement.region_bytes(worker) long.
// O(bytes + runs x log tensors).
void fill_blocks(const WeightBytes& bytes, const Manifest& manifest, const WeightMap& map,
                 const Placement& placement, WorkerId worker, std::span<const BlockSpan> blocks,
                 std::span<std::byte> region);

struct WrongByte {
  std::size_t tensor = 0;    // its number in the manifest
  std::uint64_t offset = 0;  // in the unsharded tensor
};

// What a verifier does: walks the memory of one shard tensor by tensor, as a server would use it,
// and computes what must lie there from the layout alone. It knows nothing of segments, blocks,
// runs and placements, so that a mistake in them shows. The memory must be laid out as
// WeightMap::local_runs say (LayoutPlacement): what the shard holds of each tensor in name order,
// back to back. Nothing: all right. Precondition: fault_of(layout, model) is empty. A memory of
// another length than the shard's gives the first byte that is missing or {tensors, 0}. O(bytes).
[[nodiscard]] std::optional<WrongByte> first_wrong_byte(const WeightBytes& bytes,
                                                        const Manifest& manifest,
                                                        const Layout& layout, std::uint32_t shard,
                                                        std::span<const std::byte> memory);

}  // namespace holdfast::real
