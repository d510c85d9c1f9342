#include "core/plan/plan_shape.hpp"

#include <gtest/gtest.h>

#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

std::uint32_t streams_at(const PlanShape& shape, const Topology& topology, const char* link,
                         bool from_b) {
  return shape.streams[ChannelId(topology.find_link(link), from_b).index()];
}

TEST(PlanShape, CountsReadsInARowAndStreams) {
  const Topology topology = make_star({.hosts = 6});
  const Router router(topology);
  const Demand demand = make_demand(topology, 6, 10);
  const auto shape = [&](const std::vector<std::uint32_t>& parents) {
    return shape_of(tree_plan(topology, demand, parents, 2), demand, router);
  };
  EXPECT_EQ(shape({0, 0, 0, 0, 0}).depth, 1U);
  EXPECT_EQ(shape(chain_parents(5)).depth, 5U);
  EXPECT_EQ(shape({0, 1, 1, 3, 0}).depth, 3U);
  EXPECT_EQ(shape({2, 3, 4, 5, 0}).depth, 5U);  // parents after their children
  const PlanShape star = shape({0, 0, 0, 0, 0});
  EXPECT_EQ(streams_at(star, topology, "wire0", false), 5U);  // out of the holder
  EXPECT_EQ(streams_at(star, topology, "wire0", true), 0U);
  EXPECT_EQ(streams_at(star, topology, "wire3", true), 1U);
  const ChannelId into(topology.find_link("wire3"), true);
  EXPECT_EQ(star.largest[into.index()], kBlock * 10);
  // Two stripes: each carries half of the blocks.
  const PlanShape two = shape_of(two_tree_plan(topology, demand, 2), demand, router);
  EXPECT_EQ(two.streams[into.index()], 2U);
  EXPECT_EQ(two.largest[into.index()], kBlock * 5);
}

}  // namespace
}  // namespace holdfast::sim::testing
