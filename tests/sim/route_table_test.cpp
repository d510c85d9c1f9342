// The routes of simulations, and which of their links flows may leave out.
#include "sim/route_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/scale_fixture.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

// Each link that a flow leaves out is covered: one link that the flows keep lies on every route
// that takes it, and is not wider.
void expect_covered(const RouteTable& table, std::size_t routes) {
  const std::vector<Rate> capacity = table.capacities();
  for (std::uint32_t left_out = 0; left_out < table.link_count(); ++left_out) {
    std::vector<bool> covers(table.link_count(), true);
    bool is_kept = false;
    for (std::uint32_t route = 0; route < routes; ++route) {
      const auto all = table.links(route);
      if (std::find(all.begin(), all.end(), left_out) == all.end()) continue;
      const auto kept = table.flow_links(route);
      EXPECT_FALSE(kept.empty());
      is_kept = is_kept || std::find(kept.begin(), kept.end(), left_out) != kept.end();
      for (std::uint32_t link = 0; link < covers.size(); ++link) {
        if (std::find(kept.begin(), kept.end(), link) == kept.end()) covers[link] = false;
      }
    }
    if (is_kept) continue;
    bool covered = false;
    for (std::uint32_t link = 0; link < covers.size(); ++link) {
      covered = covered || (covers[link] && capacity[link] <= capacity[left_out]);
    }
    EXPECT_TRUE(covered) << "link " << left_out;
  }
}

TEST(RouteTable, LeavesOutOnlyWhatCannotBind) {
  const Topology star = make_star({.hosts = 9});
  const Topology wan = make_wan(3);
  for (const Topology* topology : {&star, &wan}) {
    const auto workers = topology == &star ? 9U : 6U;
    const Demand demand = make_demand(*topology, workers, 4);
    const Plan plan = two_tree_plan(*topology, demand, 2);
    const Router router(*topology);
    RouteTable table(router);
    std::size_t routes = 0;
    for (const Stripe& stripe : plan.stripes) {
      for (const Edge& edge : stripe.edges) {
        routes = std::max<std::size_t>(
            routes, 1 + table.add({demand.workers[edge.parent.index()].node,
                                   demand.workers[edge.child.index()].node, edge.path}));
      }
    }
    table.drop_redundant_links();
    expect_covered(table, routes);
  }
}

// From GPU to GPU over two PCIe links, the wire to the leaf and back: only the two wires can bind.
TEST(RouteTable, KeepsTheTwoWires) {
  const ScaleCase scale = make_scale_case(8, 2);
  const Router router(scale.topology);
  RouteTable table(router);
  std::size_t routes = 0;
  for (const Stripe& stripe : scale.plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      routes = std::max<std::size_t>(
          routes, 1 + table.add({scale.demand.workers[edge.parent.index()].node,
                                 scale.demand.workers[edge.child.index()].node, edge.path}));
    }
  }
  table.drop_redundant_links();
  expect_covered(table, routes);
  for (std::uint32_t route = 0; route < routes; ++route) {
    EXPECT_EQ(table.links(route).size(), 6U);
    EXPECT_LE(table.flow_links(route).size(), 2U);
    for (const std::uint32_t link : table.flow_links(route)) {
      EXPECT_EQ(scale.topology.link(table.channel(link).link()).kind, LinkKind::Fabric);
    }
  }
}

TEST(RouteTable, MessagesUseTheReverse) {
  const Topology wan = make_wan(1);
  const Router router(wan);
  const NodeId gpu0 = wan.find_node("gpu0");
  const NodeId gpu1 = wan.find_node("gpu1");
  const Path there{wan.find_node("nic0"), wan.find_node("nic1"), 0};
  const Path back{wan.find_node("nic1"), wan.find_node("nic0"), 0};
  RouteTable table(router);
  const std::uint32_t data = table.add({gpu0, gpu1, there});
  table.drop_redundant_links();
  EXPECT_EQ(table.find_for_messages({gpu1, gpu0, back}), data);
  EXPECT_EQ(table.entry(data).latency, kWanLatency + kLatency);
  EXPECT_EQ(table.entry(data).wan, 1U);
  EXPECT_TRUE(table.entry(data).over_nic);
  EXPECT_EQ(table.entry(data).stream_cap, kStreamCap);
  EXPECT_EQ(table.add({gpu0, gpu1, there}), data);
  EXPECT_FALSE(table.find({gpu1, gpu0, back}));
  // No way at all: from a GPU over the other one's port.
  EXPECT_FALSE(table.entry(table.find_for_messages({gpu0, gpu1, back})).up);
}

}  // namespace
}  // namespace holdfast::sim::testing
