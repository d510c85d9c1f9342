#include "core/plan/two_tree.hpp"

namespace holdfast {
namespace {

// Position i > 0 sits at the height of its lowest set bit; its parent is one level up, to the side
// on which the next bit of i says it hangs, or straight down the spine where that is past n.
std::uint32_t in_order_parent(std::uint32_t i, std::uint32_t n) {
  const std::uint32_t bit = i & (~i + 1);
  const std::uint32_t up = (i ^ bit) | (bit << 1);
  return up > n ? i ^ bit : up;
}

}  // namespace

std::vector<std::uint32_t> two_tree_parents(std::uint32_t n, TreeSide side) {
  std::vector<std::uint32_t> parents(n + 1, 0);
  // The second tree relabels the first so that odd and even change places: mirrored where n is
  // even; shifted by one, cyclically, where n is odd.
  const auto relabel = [&](std::uint32_t i) -> std::uint32_t {
    if (side == TreeSide::First || i == 0) return i;
    if (n % 2 == 0) return n + 1 - i;
    return i == n ? 1 : i + 1;
  };
  for (std::uint32_t i = 1; i <= n; ++i) parents[relabel(i)] = relabel(in_order_parent(i, n));
  return parents;
}

}  // namespace holdfast
