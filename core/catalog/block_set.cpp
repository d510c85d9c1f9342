#include "core/catalog/block_set.hpp"

#include <bit>

namespace holdfast {

BlockSet BlockSet::full(std::uint32_t size) {
  BlockSet result(size);
  for (std::uint64_t& word : result.words_) word = ~std::uint64_t{0};
  if (size % 64 != 0) result.words_.back() = (std::uint64_t{1} << (size % 64)) - 1;
  result.count_ = size;
  return result;
}

bool BlockSet::add(std::uint32_t k) {
  std::uint64_t& word = words_[k / 64];
  const std::uint64_t bit = std::uint64_t{1} << (k % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++count_;
  return true;
}

void BlockSet::add(const BlockSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t fresh = other.words_[i] & ~words_[i];
    words_[i] |= fresh;
    count_ += static_cast<std::uint32_t>(std::popcount(fresh));
  }
}

bool BlockSet::includes(const BlockSet& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if ((other.words_[i] & ~words_[i]) != 0) return false;
  }
  return true;
}

}  // namespace holdfast
