#include "real/weight_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "core/hash.hpp"
#include "core/weights/layout_grid.hpp"
#include "core/weights/model_structure.hpp"

namespace holdfast::real {
namespace {

// A bijection for each seed (Mix13 of splitmix64, without its last shift).
constexpr std::uint64_t word_of(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (index + seed) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 32U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 29U);
}

constexpr std::byte byte_of(std::uint64_t seed, std::uint64_t offset) {
  return static_cast<std::byte>((word_of(seed, offset / 8) >> (8 * (offset % 8))) & 0xffU);
}

// Calls with what each run takes of each tensor, in order: tensor, offset in it, bytes.
template <class Take>
void for_each_stretch(const Manifest& manifest, std::span<const Run> runs, const Take& take) {
  const auto tensors = manifest.tensors().size();
  for (const Run& run : runs) {
    for (std::uint64_t n = 0; n < run.count; ++n) {
      std::uint64_t at = run.offset + n * run.stride;
      const std::uint64_t end = at + run.length;
      // The last tensor that begins at or before it.
      std::size_t low = 0;
      std::size_t high = tensors;
      while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (manifest.offset(middle) <= at ? low : high) = middle;
      }
      for (std::size_t tensor = low; at != end; ++tensor) {
        const std::uint64_t stop =
            std::min(end, manifest.offset(tensor) + manifest.bytes(tensor).count());
        if (stop <= at) continue;
        take(tensor, at - manifest.offset(tensor), stop - at);
        at = stop;
      }
    }
  }
}

}  // namespace

WeightBytes::WeightBytes(const Manifest& manifest, Version version) {
  seeds_.reserve(manifest.tensors().size());
  for (const Tensor& tensor : manifest.tensors()) {
    CanonicalHasher hasher;
    hasher.add(manifest.model()).add(version.lineage).add(version.number).add(tensor.name);
    seeds_.push_back(hasher.finish().low);
  }
}

void WeightBytes::fill(std::size_t tensor, std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t seed = seeds_[tensor];
  std::size_t at = 0;
  while (at < out.size() && (offset + at) % 8 != 0) {
    out[at] = byte_of(seed, offset + at);
    ++at;
  }
  const std::uint64_t first = (offset + at) / 8;
  const std::size_t words = (out.size() - at) / 8;
  for (std::size_t w = 0; w < words; ++w) {
    const std::uint64_t word = word_of(seed, first + w);
    std::memcpy(out.data() + at + 8 * w, &word, sizeof word);
  }
  for (at += 8 * words; at < out.size(); ++at) out[at] = byte_of(seed, offset + at);
}

std::optional<std::uint64_t> WeightBytes::first_wrong(std::size_t tensor, std::uint64_t offset,
                                                      std::span<const std::byte> bytes) const {
  const std::uint64_t seed = seeds_[tensor];
  const auto slowly = [&](std::size_t from, std::size_t to) -> std::optional<std::uint64_t> {
    for (std::size_t i = from; i < to; ++i) {
      if (bytes[i] != byte_of(seed, offset + i)) return offset + i;
    }
    return std::nullopt;
  };
  const std::size_t head = std::min<std::size_t>(bytes.size(), (8 - offset % 8) % 8);
  if (const auto wrong = slowly(0, head)) return wrong;
  const std::uint64_t first = (offset + head) / 8;
  const std::size_t words = (bytes.size() - head) / 8;
  constexpr std::size_t kChunk = 64;  // words without a branch
  for (std::size_t w = 0; w < words; w += kChunk) {
    const std::size_t end = std::min(words, w + kChunk);
    std::uint64_t difference = 0;
    for (std::size_t k = w; k < end; ++k) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + head + 8 * k, sizeof word);
      difference |= word ^ word_of(seed, first + k);
    }
    if (difference != 0) return slowly(head + 8 * w, head + 8 * end);
  }
  return slowly(head + 8 * words, bytes.size());
}

void fill_blocks(const WeightBytes& bytes, const Manifest& manifest, const WeightMap& map,
                 const Placement& placement, WorkerId worker, std::span<const BlockSpan> blocks,
                 std::span<std::byte> region) {
  std::vector<Extent> extents;
  for (const BlockSpan& span : blocks) {
    for (std::uint32_t n = 0; n < span.count; ++n) {
      const BlockId block(span.first.value() + n);
      extents.clear();
      placement.append_extents(worker, block, extents);
      std::size_t extent = 0;
      std::uint64_t within = 0;
      for_each_stretch(
          manifest, map.model_runs(block),
          [&](std::size_t tensor, std::uint64_t offset, std::uint64_t length) {
            while (length != 0) {
              const std::uint64_t part = std::min(length, extents[extent].bytes - within);
              bytes.fill(tensor, offset, region.subspan(extents[extent].offset + within, part));
              offset += part;
              length -= part;
              within += part;
              if (within == extents[extent].bytes) {
                ++extent;
                within = 0;
              }
            }
          });
    }
  }
}

std::optional<WrongByte> first_wrong_byte(const WeightBytes& bytes, const Manifest& manifest,
                                          const Layout& layout, std::uint32_t shard,
                                          std::span<const std::byte> memory) {
  const ModelStructure model(manifest);
  const LayoutGrid grid(layout, model);
  for (std::size_t t = 0; t < manifest.tensors().size(); ++t) {
    const std::uint64_t total = manifest.bytes(t).count();
    const TensorRole& role = model.tensors()[t];
    const ShardPlace place = grid.place_of(role);
    const auto families = grid.families_of(place);
    const bool holds =
        std::find(families.begin(), families.end(), grid.family_of(shard)) != families.end();
    if (total == 0 || !holds) continue;
    // Each of `rows` stretches is cut into `slices`, of which the shard holds one.
    const std::uint64_t rows =
        role.cut == TensorCut::Columns ? manifest.tensors()[t].shape.front() : 1;
    const std::uint64_t row = total / rows;
    const std::uint64_t width = row / place.slices;
    const std::uint64_t begin = place.slices == 1 ? 0 : grid.slice_of(place, shard) * width;
    for (std::uint64_t r = 0; r < rows; ++r) {
      const std::uint64_t offset = r * row + begin;
      const std::uint64_t there = std::min<std::uint64_t>(width, memory.size());
      if (const auto wrong = bytes.first_wrong(t, offset, memory.first(there))) {
        return WrongByte{t, *wrong};
      }
      if (there != width) return WrongByte{t, offset + there};
      memory = memory.subspan(width);
    }
  }
  if (!memory.empty()) return WrongByte{manifest.tensors().size(), 0};
  return std::nullopt;
}

}  // namespace holdfast::real
