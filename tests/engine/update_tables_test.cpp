#include "core/engine/update_tables.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/topology/router.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

std::vector<std::uint64_t> zeros(std::size_t n) {
  return std::vector<std::uint64_t>(n, 0);
}

TEST(UpdateTables, IndexEdgesBothWays) {
  const Demand demand = simple_demand(4, 10, Bytes(1000));
  Plan plan = tree_plan(demand, {0, 1, 1, 0}, 2);
  plan.stripes[0].blocks = {0, 2, 10};
  plan.stripes.push_back(plan.stripes[0]);
  plan.stripes[1].blocks = {1, 2, 10};
  plan.stripes[1].edges[3].parent = WorkerId(2U);
  const UpdateTables tables(demand, plan, nullptr, zeros(10));
  EXPECT_EQ(tables.stripes(), 2U);
  EXPECT_EQ(tables.workers(), 5U);
  const auto children = [&](std::uint32_t worker) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const std::uint32_t e : tables.out_edges(WorkerId(worker))) {
      found.emplace_back(tables.edges()[e].stripe.value(), tables.edges()[e].child.value());
    }
    return found;
  };
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(children(0), (Pairs{{0, 1}, {0, 4}, {1, 1}}));
  EXPECT_EQ(children(1), (Pairs{{0, 2}, {0, 3}, {1, 2}, {1, 3}}));
  EXPECT_EQ(children(2), (Pairs{{1, 4}}));
  EXPECT_EQ(children(3), Pairs{});
  for (std::uint32_t w = 1; w < 5; ++w) {
    ASSERT_EQ(tables.in_edges(WorkerId(w)).size(), 2U);
    for (const std::uint32_t s : {0U, 1U}) {
      const TableEdge* edge = tables.edge(StripeId(s), WorkerId(w));
      ASSERT_NE(edge, nullptr);
      EXPECT_EQ(edge, &tables.edges()[tables.in_edges(WorkerId(w))[s]]);
      EXPECT_EQ(edge->from_holder, edge->parent == WorkerId(0U));
    }
  }
  EXPECT_TRUE(tables.in_edges(WorkerId(0U)).empty());
  EXPECT_EQ(tables.edge(StripeId(0U), WorkerId(0U)), nullptr);
  EXPECT_EQ(tables.blocks(StripeId(1U))[2], BlockId(5U));
  EXPECT_TRUE(tables.holds(WorkerId(0U), StripeId(1U)));
  EXPECT_FALSE(tables.holds(WorkerId(1U), StripeId(1U)));
}

// The interval is a quarter of the largest block's time at the slowest link of the way.
TEST(UpdateTables, HaveIntervalFollowsTheRoute) {
  TopologyBuilder builder("two hosts");
  const auto host = [&](const std::string& name) {
    const DomainId domain = builder.add_domain(name, Level::Host);
    const NodeId gpu = builder.add_node(
        {name + ".gpu", NodeKind::Gpu, domain, Bytes(1 << 30), Rate(1'000'000'000), true});
    const NodeId nic = builder.add_node({name + ".nic", NodeKind::Nic, domain, {}, {}, true});
    builder.add_link(
        {name + ".pcie", gpu, nic, LinkKind::Pcie, Rate(8'000'000'000), microseconds(1), {}, true});
    return std::pair{gpu, nic};
  };
  const auto [gpu_a, nic_a] = host("a");
  const auto [gpu_b, nic_b] = host("b");
  const NodeId leaf = builder.add_node({"leaf", NodeKind::Switch, {}, {}, {}, true});
  builder.add_link({"a", nic_a, leaf, LinkKind::Fabric, Rate(4'000'000'000), {}, {}, true});
  builder.add_link({"b", nic_b, leaf, LinkKind::Fabric, Rate(2'000'000'000), {}, {}, true});
  const Topology topology = builder.build();
  const Router router(topology);
  Demand demand = simple_demand(1, 3, Bytes(1'000'000));
  demand.block_bytes[1] = Bytes(4'000'000);
  demand.workers[0].node = gpu_a;
  demand.workers[1].node = gpu_b;
  Plan plan = tree_plan(demand, {0}, 2);
  plan.stripes[0].edges[0].path = {nic_a, nic_b, 0};
  const UpdateTables tables(demand, plan, &router, zeros(3));
  EXPECT_EQ(tables.edges()[0].have_interval, microseconds(500));
  EXPECT_EQ(UpdateTables(demand, plan, nullptr, zeros(3)).edges()[0].have_interval, Time{});
}

ErrorCode refused(const Demand& demand, const Plan& plan, std::size_t digests) {
  try {
    const UpdateTables tables(demand, plan, nullptr, zeros(digests));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "accepted";
  return ErrorCode::Unsupported;
}

TEST(UpdateTables, RefusesWhatIsNotThere) {
  Demand demand = simple_demand(2, 10, Bytes(1000));
  const Plan good = tree_plan(demand, {0, 1}, 2);
  EXPECT_EQ(refused(demand, good, 9), ErrorCode::BadValue);
  Plan plan = good;
  plan.stripes[0].block_class = ClassId(1U);
  EXPECT_EQ(refused(demand, plan, 10), ErrorCode::BadPlan);
  plan = good;
  plan.stripes[0].blocks.end = 11;
  EXPECT_EQ(refused(demand, plan, 10), ErrorCode::BadPlan);
  plan = good;
  plan.stripes[0].blocks.step = 0;
  EXPECT_EQ(refused(demand, plan, 10), ErrorCode::BadPlan);
  plan = good;
  plan.stripes[0].edges[1].parent = WorkerId(3U);
  EXPECT_EQ(refused(demand, plan, 10), ErrorCode::BadPlan);
  demand.verify = false;  // then no digests are needed
  EXPECT_NO_THROW(UpdateTables(demand, good, nullptr, {}));
}

}  // namespace
}  // namespace holdfast::testing
