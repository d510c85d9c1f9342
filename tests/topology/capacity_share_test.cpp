#include "core/topology/capacity_share.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast {
namespace {

Topology two_hosts() {
  Sketch sketch;
  const NodeId leaf = sketch.node("leaf", NodeKind::Switch);
  for (const char* name : {"h0", "h1"}) {
    const DomainId host = sketch.host(name);
    const NodeId gpu = sketch.node(std::string(name) + ".gpu", NodeKind::Gpu, host);
    const NodeId nic = sketch.node(std::string(name) + ".nic", NodeKind::Nic, host);
    sketch.link(gpu, nic, LinkKind::Pcie, 1'000);
    sketch.link(nic, leaf, LinkKind::Fabric, 333);
  }
  const LinkId first(0U);
  sketch.builder.link(first).stream_cap = Rate(7);
  sketch.builder.add_fault_domain({"feed", {leaf}});
  return sketch.build();
}

TEST(CapacityShare, RoundsDownAndLeavesSomething) {
  EXPECT_EQ(left_of(Rate(1'000), 0), Rate(1'000));
  EXPECT_EQ(left_of(Rate(1'000), 300'000), Rate(700));
  EXPECT_EQ(left_of(Rate(333), 500'000), Rate(166));
  EXPECT_EQ(left_of(Rate(1), 999'999), Rate(1));
  EXPECT_EQ(left_of(Rate(100'000'000'000'000), 1), Rate(99'999'900'000'000));
}

TEST(CapacityShare, NothingTakenIsTheSameMachine) {
  const Topology whole = two_hosts();
  const Topology same = beside_other_traffic(whole, std::vector<std::uint32_t>(4, 0));
  EXPECT_EQ(same.hash(), whole.hash());
  EXPECT_EQ(same.name(), whole.name());
  // The tables that a topology is built with are there too.
  EXPECT_EQ(same.find_node("h1.nic"), whole.find_node("h1.nic"));
  EXPECT_EQ(same.find_link("l3"), whole.find_link("l3"));
  EXPECT_EQ(same.members(DomainId(1U)).size(), 2U);
  EXPECT_EQ(same.neighbours(whole.find_node("leaf")).size(), 2U);
  EXPECT_EQ(same.fault_domains().size(), 1U);
}

TEST(CapacityShare, TakesFromTheLinksThatAreNamedAndChangesTheHash) {
  const Topology whole = two_hosts();
  const Topology left = beside_other_traffic(whole, std::vector<std::uint32_t>{0, 500'000, 0, 0});
  EXPECT_NE(left.hash(), whole.hash());
  EXPECT_EQ(left.links()[0].capacity, Rate(1'000));
  EXPECT_EQ(left.links()[0].stream_cap, Rate(7));
  EXPECT_EQ(left.links()[1].capacity, Rate(166));
  EXPECT_EQ(left.links()[3].capacity, Rate(333));
  EXPECT_NE(beside_other_traffic(whole, std::vector<std::uint32_t>{0, 400'000, 0, 0}).hash(),
            left.hash());
}

TEST(CapacityShare, RefusesWhatLeavesNothing) {
  const Topology whole = two_hosts();
  EXPECT_THROW((void)beside_other_traffic(whole, std::vector<std::uint32_t>(3, 0)), Error);
  EXPECT_THROW((void)beside_other_traffic(whole, std::vector<std::uint32_t>(4, 1'000'000)), Error);
}

}  // namespace
}  // namespace holdfast
