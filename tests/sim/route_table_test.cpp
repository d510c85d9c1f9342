// The routes of simulations, and which of their links flows may leave out.
#include "sim/route_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/planner.hpp"
#include "tests/plan/cluster.hpp"
#include "tests/sim/reference_rates.hpp"
#include "tests/sim/scale_fixture.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

// Whichever of the routes carry flows, the rates are the same without the links left out. Returns
// how many links of how many remain.
std::pair<std::size_t, std::size_t> expect_same_rates(const RouteTable& table, std::uint32_t routes,
                                                      std::mt19937_64& random) {
  std::vector<double> capacity;
  for (const Rate rate : table.capacities()) {
    capacity.push_back(static_cast<double>(rate.bytes_per_second()));
  }
  for (const int percent : {100, 90, 50, 20, 5}) {
    std::vector<std::span<const std::uint32_t>> all;
    std::vector<std::span<const std::uint32_t>> kept;
    for (std::uint32_t route = 0; route < routes; ++route) {
      if (std::uniform_int_distribution<int>(1, 100)(random) > percent) continue;
      all.push_back(table.links(route));
      kept.push_back(table.flow_links(route));
      EXPECT_FALSE(kept.back().empty());
    }
    const auto expected = reference_rates(all, capacity);
    const auto found = reference_rates(kept, capacity);
    for (std::size_t f = 0; f < all.size(); ++f) {
      EXPECT_NEAR(found[f] / expected[f], 1, 1e-9) << "flow " << f << " at " << percent << " %";
    }
  }
  std::pair<std::size_t, std::size_t> sizes;
  for (std::uint32_t route = 0; route < routes; ++route) {
    sizes.first += table.flow_links(route).size();
    sizes.second += table.links(route).size();
  }
  return sizes;
}

std::uint32_t add_paths(RouteTable& table, const Demand& demand, const Plan& plan) {
  std::uint32_t routes = 0;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      routes =
          std::max(routes, 1 + table.add({demand.workers[edge.parent.index()].node,
                                          demand.workers[edge.child.index()].node, edge.path}));
    }
  }
  return routes;
}

TEST(RouteTable, LeavesOutOnlyWhatCannotBind) {
  std::size_t kept = 0;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Topology topology = testing_support::make_cluster(testing_support::random_shape(random));
    const Demand demand = testing_support::random_demand(topology, random);
    const Router router(topology);
    for (const Policy policy : {Policy::Star, Policy::TwoTree, Policy::Hierarchical}) {
      SCOPED_TRACE(to_string(policy));
      RouteTable table(router);
      const std::uint32_t routes =
          add_paths(table, demand, holdfast::make_plan(policy, router, demand).plan);
      table.drop_redundant_links();
      const auto sizes = expect_same_rates(table, routes, random);
      kept += sizes.first;
      all += sizes.second;
    }
  }
  EXPECT_LT(kept, all / 2) << "nothing to speak of is left out";
}

// Two leaves, joined by a link as wide as two of the wires: with two senders it cannot bind, with
// three it can.
TEST(RouteTable, AddsUpWhatComesTogether) {
  for (const std::uint32_t senders : {2U, 3U}) {
    TopologyBuilder builder("trunk");
    NodeId leaves[2];
    for (int side = 0; side < 2; ++side) {
      leaves[side] =
          builder.add_node({"leaf" + std::to_string(side), NodeKind::Switch, {}, {}, {}, true});
    }
    builder.add_link(
        {"trunk", leaves[0], leaves[1], LinkKind::Fabric, kRate * 2, Time(0), {}, true});
    std::vector<DataPath> paths;
    std::vector<std::pair<NodeId, NodeId>> hosts;
    for (std::uint32_t h = 0; h < 2 * senders; ++h) {
      const std::string number = std::to_string(h);
      const DomainId host = builder.add_domain("host" + number, Level::Host);
      const NodeId gpu =
          builder.add_node({"gpu" + number, NodeKind::Gpu, host, Bytes(1'000'000'000), {}, true});
      const NodeId nic = builder.add_node({"nic" + number, NodeKind::Nic, host, {}, {}, true});
      builder.add_link({"pcie" + number, gpu, nic, LinkKind::Pcie, kRate * 9, Time(0), {}, true});
      builder.add_link({"wire" + number,
                        nic,
                        leaves[h < senders ? 0 : 1],
                        LinkKind::Fabric,
                        kRate,
                        Time(0),
                        {},
                        true});
      hosts.emplace_back(gpu, nic);
    }
    const Topology topology = builder.build();
    const Router router(topology);
    RouteTable table(router);
    // Every sender to every receiver, so that no wire alone covers the trunk.
    std::uint32_t routes = 0;
    for (std::uint32_t a = 0; a < senders; ++a) {
      for (std::uint32_t b = senders; b < 2 * senders; ++b) {
        routes =
            1 + table.add({hosts[a].first, hosts[b].first, {hosts[a].second, hosts[b].second, 0}});
      }
    }
    table.drop_redundant_links();
    std::mt19937_64 random(senders);
    expect_same_rates(table, routes, random);
    EXPECT_EQ(table.flow_links(0).size(), senders == 2 ? 2U : 3U);
  }
}

// From GPU to GPU over two PCIe links, the wire to the leaf and back: only the two wires can bind.
TEST(RouteTable, KeepsTheTwoWires) {
  const ScaleCase scale = make_scale_case(8, 2);
  const Router router(scale.topology);
  RouteTable table(router);
  const std::uint32_t routes = add_paths(table, scale.demand, scale.plan);
  table.drop_redundant_links();
  std::mt19937_64 random(1);
  expect_same_rates(table, routes, random);
  for (std::uint32_t route = 0; route < routes; ++route) {
    EXPECT_EQ(table.links(route).size(), 6U);
    EXPECT_LE(table.flow_links(route).size(), 2U);
    for (const std::uint32_t link : table.flow_links(route)) {
      EXPECT_EQ(scale.topology.link(table.channel(link).link()).kind, LinkKind::Fabric);
    }
  }
}

// Two trees a rail, nothing between rails: the connections of a rail hang together.
TEST(RouteTable, CountsWhatIsCoupled) {
  const ScaleCase scale = make_scale_case(8, 2);
  const Router router(scale.topology);
  RouteTable table(router);
  add_paths(table, scale.demand, scale.plan);
  table.drop_redundant_links();
  EXPECT_EQ(table.most_coupled(), 2U * 7U);
  EXPECT_EQ(table.widest_between_hosts(), kScaleRate);
  // Everything over a few trunks hangs together.
  const ScaleCase coupled = make_coupled_case(8, 2, 4, 1);
  const Router other(coupled.topology);
  RouteTable trunks(other);
  const std::uint32_t routes = add_paths(trunks, coupled.demand, coupled.plan);
  trunks.drop_redundant_links();
  EXPECT_EQ(trunks.most_coupled(), routes);
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
