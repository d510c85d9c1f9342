#include "core/plan/two_tree.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace holdfast {
namespace {

class TwoTree : public testing::TestWithParam<TreeSide> {};

std::vector<std::uint32_t> children_of(const std::vector<std::uint32_t>& parents) {
  std::vector<std::uint32_t> count(parents.size(), 0);
  for (std::size_t i = 1; i < parents.size(); ++i) ++count[parents[i]];
  return count;
}

std::uint32_t depth(const std::vector<std::uint32_t>& parents, std::uint32_t i) {
  std::uint32_t d = 0;
  for (; i != 0 && d <= parents.size(); i = parents[i]) ++d;
  return d;
}

TEST_P(TwoTree, EverySizeIsABinaryTreeOfLogarithmicDepthUnderPositionZero) {
  for (std::uint32_t n = 1; n <= 600; ++n) {
    SCOPED_TRACE(n);
    const auto parents = two_tree_parents(n, GetParam());
    ASSERT_EQ(parents.size(), n + 1);
    const auto children = children_of(parents);
    EXPECT_EQ(children[0], 1U);
    for (std::uint32_t i = 1; i <= n; ++i) {
      ASSERT_LE(parents[i], n);
      EXPECT_LE(children[i], 2U);
      // floor(log2(n)) + 1 levels; a depth beyond n would be a cycle.
      EXPECT_LE(depth(parents, i), static_cast<std::uint32_t>(std::bit_width(n)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, TwoTree, testing::Values(TreeSide::First, TreeSide::Second));

TEST(TwoTrees, NoPositionIsInteriorInBoth) {
  for (std::uint32_t n = 1; n <= 600; ++n) {
    const auto first = children_of(two_tree_parents(n, TreeSide::First));
    const auto second = children_of(two_tree_parents(n, TreeSide::Second));
    for (std::uint32_t i = 1; i <= n; ++i) {
      EXPECT_TRUE(first[i] == 0 || second[i] == 0) << "position " << i << " of " << n;
    }
  }
}

// A contiguous part of the list is entered by few edges: that is why a list in domain order loads
// the uplinks of a domain with few copies.
TEST(TwoTrees, ContiguousPartsAreEnteredByLogarithmicallyManyEdges) {
  constexpr std::uint32_t kN = 512;
  for (const TreeSide side : {TreeSide::First, TreeSide::Second}) {
    const auto parents = two_tree_parents(kN, side);
    for (std::uint32_t first = 1; first <= kN; first += 32) {
      std::uint32_t entered = 0;
      for (std::uint32_t i = first; i < first + 32; ++i) {
        if (parents[i] < first || parents[i] >= first + 32) ++entered;
      }
      EXPECT_LE(entered, 7U) << "part at " << first;
    }
  }
}

}  // namespace
}  // namespace holdfast
