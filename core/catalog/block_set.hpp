// A set of numbers below a fixed size, one bit each: which blocks of a shard are verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast {

class BlockSet {
 public:
  BlockSet() = default;
  explicit BlockSet(std::uint32_t size) : words_((size + 63) / 64), size_(size) {}
  static BlockSet full(std::uint32_t size);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] bool all() const { return count_ == size_; }
  [[nodiscard]] bool none() const { return count_ == 0; }
  [[nodiscard]] bool has(std::uint32_t k) const { return (words_[k / 64] >> (k % 64) & 1U) != 0; }
  // True if it was not there before. Precondition: k < size().
  bool add(std::uint32_t k);
  // Everything of a set of the same size.
  void add(const BlockSet& other);
  // All members of `other` are here. Precondition: the same size.
  [[nodiscard]] bool includes(const BlockSet& other) const;
  [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }

  friend bool operator==(const BlockSet&, const BlockSet&) = default;

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t size_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace holdfast
