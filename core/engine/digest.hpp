// Block digests: XXH3-64 over the XXH3-64s of the block's 64 KiB pieces, so that a GPU can compute
// the pieces in parallel. Piece digests enter the outer hash as eight little-endian bytes each, in
// order; the last piece may be short; seed 0 throughout. The digest depends on the bytes alone, not
// on how they are spread over extents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/hash.hpp"

namespace holdfast {

inline constexpr std::size_t kDigestPiece = std::size_t{64} * 1024;

[[nodiscard]] std::uint64_t block_digest(std::span<const std::byte> bytes);

// The same, fed in parts of any size: a block that lies in several extents.
class BlockDigester {
 public:
  BlockDigester();
  ~BlockDigester();
  BlockDigester(BlockDigester&&) noexcept;
  BlockDigester& operator=(BlockDigester&&) noexcept;

  void add(std::span<const std::byte> bytes);
  // The digest of all that was added; the digester is then as new.
  [[nodiscard]] std::uint64_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3-128 over the table's digests, eight little-endian bytes each: what identifies a version.
[[nodiscard]] Hash128 digest_root(std::span<const std::uint64_t> table);

}  // namespace holdfast
