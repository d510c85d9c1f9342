// Two complementary binary trees over a list, after Sanders, Speck and Traeff, "Two-tree algorithms
// for full bandwidth broadcast, reduction and scan" (Parallel Computing 35, 2009).
//
// Both are in-order binary trees: a contiguous part of the list forms few subtrees, so that a list
// in domain order crosses each domain's boundary about log n times. In each tree every second
// position is a leaf, and a position that is interior in one is a leaf in the other; with half of
// the blocks in each tree every position sends each byte at most once and receives it once.
#pragma once

#include <cstdint>
#include <vector>

namespace holdfast {

enum class TreeSide { First, Second };

// Parents of positions 1 .. n in a tree whose root, position 0, feeds one of them; element 0 is
// unused. Depth is floor(log2(n)) + 1, at most two children a position, one for position 0. O(n).
[[nodiscard]] std::vector<std::uint32_t> two_tree_parents(std::uint32_t n, TreeSide side);

}  // namespace holdfast
