#include <gmock/gmock.h>

#include <functional>

#include "core/error.hpp"
#include "core/topology/topology.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void expect_refused(ErrorCode code, const std::string& part, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

// dc > rack > h0 {g0, g1, n0}; h1 {g2, n1}; s0 outside hosts.
struct Fixture {
  Sketch s;
  DomainId dc = s.builder.add_domain("dc", Level::Datacenter);
  DomainId rack = s.builder.add_domain("rack", Level::Rack, dc);
  DomainId h0 = s.host("h0", rack);
  DomainId h1 = s.host("h1", dc);
  NodeId g0 = s.node("g0", NodeKind::Gpu, h0);
  NodeId g1 = s.node("g1", NodeKind::Gpu, h0);
  NodeId n0 = s.node("n0", NodeKind::Nic, h0);
  NodeId g2 = s.node("g2", NodeKind::Gpu, h1);
  NodeId n1 = s.node("n1", NodeKind::Nic, h1);
  NodeId s0 = s.node("s0", NodeKind::Switch, dc);
  LinkId a = s.link(g0, n0, LinkKind::Pcie);
  LinkId b = s.link(g1, n0, LinkKind::Pcie);
  LinkId c = s.link(s0, n0, LinkKind::Fabric);
  LinkId d = s.link(n1, s0, LinkKind::Fabric);
  LinkId e = s.link(g2, n1, LinkKind::Pcie);
};

TEST(TopologyBuilder, AnswersByIdNameAndDomain) {
  Fixture f;
  const Topology t = f.s.build();
  EXPECT_EQ(t.find_node("n1"), f.n1);
  EXPECT_EQ(t.find_link("l3"), f.d);
  EXPECT_EQ(t.find_domain("rack"), f.rack);
  EXPECT_FALSE(t.find_node("n2").valid());
  EXPECT_FALSE(t.find_link("").valid());
  EXPECT_FALSE(t.find_domain("n1").valid());

  EXPECT_EQ(t.around(f.g0, Level::Host), f.h0);
  EXPECT_EQ(t.around(f.g0, Level::Rack), f.rack);
  EXPECT_FALSE(t.around(f.g0, Level::Pod).valid());
  EXPECT_EQ(t.around(f.g0, Level::Datacenter), f.dc);
  EXPECT_FALSE(t.around(f.g2, Level::Rack).valid());
  EXPECT_FALSE(t.around(f.s0, Level::Host).valid());
  EXPECT_EQ(t.around(f.h1, Level::Datacenter), f.dc);
  EXPECT_FALSE(t.around(f.dc, Level::Host).valid());

  EXPECT_THAT(t.members(f.h0), ElementsAre(f.g0, f.g1, f.n0));
  EXPECT_THAT(t.members(f.rack), ElementsAre(f.g0, f.g1, f.n0));
  EXPECT_THAT(t.members(f.dc), ElementsAre(f.g0, f.g1, f.n0, f.g2, f.n1, f.s0));
}

TEST(TopologyBuilder, NeighboursComeInLinkOrder) {
  Fixture f;
  const Topology t = f.s.build();
  const auto at = t.neighbours(f.n0);
  ASSERT_EQ(at.size(), 3U);
  EXPECT_EQ(at[0].link, f.a);
  EXPECT_EQ(at[0].node, f.g0);
  EXPECT_EQ(at[1].link, f.b);
  EXPECT_EQ(at[2].link, f.c);
  EXPECT_EQ(at[2].node, f.s0);
}

TEST(TopologyBuilder, ChannelsHaveTwoDirections) {
  Fixture f;
  const Topology t = f.s.build();
  const ChannelId there(f.c, false);
  const ChannelId back(f.c, true);
  EXPECT_EQ(t.tail(there), f.s0);
  EXPECT_EQ(t.head(there), f.n0);
  EXPECT_EQ(t.tail(back), f.n0);
  EXPECT_EQ(t.head(back), f.s0);
  EXPECT_EQ(t.channel_name(there), "l2 >");
  EXPECT_EQ(t.channel_name(back), "l2 <");
  EXPECT_EQ(t.channels(), 10U);
}

TEST(TopologyBuilder, UsableNeedsTheLinkAndBothEnds) {
  Fixture f;
  f.s.builder.node(f.s0).up = false;
  f.s.builder.link(f.a).up = false;
  const Topology t = f.s.build();
  EXPECT_FALSE(t.usable(f.a));
  EXPECT_TRUE(t.usable(f.b));
  EXPECT_FALSE(t.usable(f.c));
  EXPECT_FALSE(t.usable(f.d));
}

TEST(TopologyBuilder, RefusesWhatBreaksAnInvariantAtOnce) {
  Fixture f;
  TopologyBuilder& b = f.s.builder;
  expect_refused(ErrorCode::BadTopology, "empty name", [&] { b.add_domain("", Level::Rack); });
  expect_refused(ErrorCode::Duplicate, "'rack'", [&] { b.add_domain("rack", Level::Rack); });
  expect_refused(ErrorCode::BadTopology, "a parent has a higher level",
                 [&] { b.add_domain("x", Level::Rack, f.rack); });
  expect_refused(ErrorCode::UnknownName, "parent",
                 [&] { b.add_domain("x", Level::Rack, DomainId(99U)); });

  expect_refused(ErrorCode::BadTopology, "empty name", [&] { f.s.node("", NodeKind::Switch); });
  expect_refused(ErrorCode::Duplicate, "'g0'", [&] { f.s.node("g0", NodeKind::Gpu, f.h0); });
  for (const NodeKind kind : {NodeKind::Gpu, NodeKind::HostMemory, NodeKind::Nic,
                              NodeKind::PcieSwitch, NodeKind::NvSwitch}) {
    expect_refused(ErrorCode::BadTopology, "lies in no host", [&] { f.s.node("x", kind, f.rack); });
    expect_refused(ErrorCode::BadTopology, "lies in no host", [&] { f.s.node("x", kind); });
  }
  for (const NodeKind kind : {NodeKind::Switch, NodeKind::Spine, NodeKind::Gateway}) {
    expect_refused(ErrorCode::BadTopology, "inside host", [&] { f.s.node("x", kind, f.h0); });
  }
  expect_refused(ErrorCode::UnknownName, "does not exist",
                 [&] { f.s.node("x", NodeKind::Switch, DomainId(99U)); });
  expect_refused(ErrorCode::BadTopology, "digest rate", [&] {
    b.add_node({"x", NodeKind::Switch, {}, Bytes(0), Rate(1), true});
  });

  const auto link = [&](NodeId a, NodeId z, LinkKind kind, Rate rate = Rate(1), Time latency = {},
                        std::optional<Rate> cap = {}) {
    b.add_link({"x", a, z, kind, rate, latency, cap, true});
  };
  expect_refused(ErrorCode::UnknownName, "does not exist",
                 [&] { link(f.n0, NodeId(99U), LinkKind::Fabric); });
  expect_refused(ErrorCode::UnknownName, "does not exist",
                 [&] { link(NodeId(), f.n0, LinkKind::Fabric); });
  expect_refused(ErrorCode::BadTopology, "to itself", [&] { link(f.s0, f.s0, LinkKind::Fabric); });
  expect_refused(ErrorCode::BadTopology, "zero capacity",
                 [&] { link(f.n0, f.s0, LinkKind::Fabric, Rate(0)); });
  expect_refused(ErrorCode::BadTopology, "at most 100TB/s",
                 [&] { link(f.n0, f.s0, LinkKind::Fabric, Rate(100'000'000'000'001)); });
  expect_refused(ErrorCode::BadTopology, "stream cap of zero",
                 [&] { link(f.n0, f.s0, LinkKind::Fabric, Rate(1), {}, Rate(0)); });
  expect_refused(ErrorCode::BadTopology, "latency",
                 [&] { link(f.n0, f.s0, LinkKind::Fabric, Rate(1), Time(-1)); });
  expect_refused(ErrorCode::BadTopology, "latency", [&] {
    link(f.n0, f.s0, LinkKind::Fabric, Rate(1), seconds(60) + picoseconds(1));
  });
  expect_refused(ErrorCode::Duplicate, "'l0'", [&] {
    b.add_link({"l0", f.n0, f.s0, LinkKind::Fabric, Rate(1), {}, {}, true});
  });
  expect_refused(ErrorCode::BadTopology, "empty name", [&] {
    b.add_link({"", f.n0, f.s0, LinkKind::Fabric, Rate(1), {}, {}, true});
  });
  // Kinds and ends.
  expect_refused(ErrorCode::BadTopology, "cannot end at nic",
                 [&] { link(f.g0, f.n0, LinkKind::NvLink); });
  expect_refused(ErrorCode::BadTopology, "different hosts",
                 [&] { link(f.g0, f.g2, LinkKind::NvLink); });
  expect_refused(ErrorCode::BadTopology, "different hosts",
                 [&] { link(f.g0, f.n1, LinkKind::Pcie); });
  expect_refused(ErrorCode::BadTopology, "cannot end at gpu",
                 [&] { link(f.g0, f.s0, LinkKind::Fabric); });
  expect_refused(ErrorCode::BadTopology, "cannot end at nic",
                 [&] { link(f.n0, f.s0, LinkKind::Wan); });
  expect_refused(ErrorCode::BadTopology, "cannot end at gpu",
                 [&] { link(f.g0, f.g1, LinkKind::Memory); });

  expect_refused(ErrorCode::BadTopology, "is empty", [&] { b.add_fault_domain({"feed", {}}); });
  expect_refused(ErrorCode::UnknownName, "does not exist", [&] {
    b.add_fault_domain({"feed", {NodeId(99U)}});
  });
  b.add_fault_domain({"feed", {f.g0}});
  expect_refused(ErrorCode::Duplicate, "'feed'", [&] { b.add_fault_domain({"feed", {f.g1}}); });
  // Nothing of the above has been added.
  const Topology t = f.s.build();
  EXPECT_EQ(t.nodes().size(), 6U);
  EXPECT_EQ(t.links().size(), 5U);
  EXPECT_EQ(t.domains().size(), 4U);
}

TEST(TopologyBuilder, BuildChecksWhatOverridesBroke) {
  {
    Fixture f;
    f.s.builder.link(f.c).capacity = Rate(0);
    expect_refused(ErrorCode::BadTopology, "'l2' has zero capacity", [&] { (void)f.s.build(); });
  }
  {
    Fixture f;
    f.s.builder.node(f.n0).domain = f.rack;
    expect_refused(ErrorCode::BadTopology, "'n0' lies in no host", [&] { (void)f.s.build(); });
  }
}

TEST(TopologyBuilder, NamesThePartsOfADisconnectedTopology) {
  Sketch s;
  for (const char* name : {"s0", "s1", "s2", "s3"}) s.node(name, NodeKind::Switch);
  s.link(NodeId(0U), NodeId(2U), LinkKind::Fabric);
  EXPECT_EQ(s.builder.parts().size(), 3U);
  EXPECT_EQ(s.builder.parts()[0].nodes, 2U);
  EXPECT_EQ(s.builder.parts()[1].first, NodeId(1U));
  expect_refused(ErrorCode::BadTopology, "3 parts that no link joins: 's0' and 1 more; 's1'; 's3'",
                 [&] { (void)s.build(); });
}

TEST(TopologyBuilder, ALinkThatIsDownStillConnects) {
  Sketch s;
  const NodeId a = s.node("a", NodeKind::Switch);
  const NodeId b = s.node("b", NodeKind::Switch);
  s.builder.link(s.link(a, b, LinkKind::Fabric)).up = false;
  EXPECT_EQ(s.build().nodes().size(), 2U);
}

TEST(TopologyBuilder, RefusesAnEmptyTopology) {
  expect_refused(ErrorCode::BadTopology, "no nodes", [] { (void)TopologyBuilder("x").build(); });
}

// Every field changes the hash; building twice does not.
TEST(TopologyHash, CoversEveryField) {
  const auto hash = [](const std::function<void(Fixture&)>& change) {
    Fixture f;
    f.s.builder.add_fault_domain({"feed", {f.g0, f.g1}});
    change(f);
    return f.s.build().hash();
  };
  const std::vector<std::function<void(Fixture&)>> changes{
      [](Fixture&) {},
      [](Fixture& f) { f.s.builder.node(f.g0).memory = Bytes(7); },
      [](Fixture& f) { f.s.builder.node(f.g0).digest_rate = Rate(7); },
      [](Fixture& f) { f.s.builder.node(f.g0).up = false; },
      [](Fixture& f) { f.s.builder.node(f.s0).domain = f.rack; },
      [](Fixture& f) { f.s.builder.node(f.s0).kind = NodeKind::Spine; },
      [](Fixture& f) { f.s.builder.link(f.c).capacity = Rate(7); },
      [](Fixture& f) { f.s.builder.link(f.c).latency = Time(7); },
      [](Fixture& f) { f.s.builder.link(f.c).stream_cap = Rate(7); },
      [](Fixture& f) { f.s.builder.link(f.c).up = false; },
      [](Fixture& f) { std::swap(f.s.builder.link(f.c).a, f.s.builder.link(f.c).b); },
      [](Fixture& f) {
        f.s.builder.add_fault_domain({"feed-b", {f.g0}});
      },
      [](Fixture& f) {
        f.s.builder.add_fault_domain({"feed-b", {f.g1}});
      },
      [](Fixture& f) { f.s.builder.add_domain("d", Level::Pod); },
      [](Fixture& f) { f.s.builder.add_domain("d", Level::Pod, f.dc); },
      [](Fixture& f) { f.s.builder.add_domain("d", Level::Rack, f.dc); },
      [](Fixture& f) { f.s.builder.add_domain("e", Level::Pod); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(hash(changes[i]), hash(changes[i])) << i;
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(hash(changes[i]), hash(changes[j])) << i << " " << j;
  }
  const auto named = [](const std::string& topology, const std::string& node,
                        const std::string& link) {
    TopologyBuilder b(topology);
    const NodeId a = b.add_node({node, NodeKind::Switch, {}, {}, {}, true});
    const NodeId z = b.add_node({"z", NodeKind::Switch, {}, {}, {}, true});
    b.add_link({link, a, z, LinkKind::Fabric, Rate(1), {}, {}, true});
    return b.build().hash();
  };
  EXPECT_NE(named("t", "a", "l"), named("u", "a", "l"));
  EXPECT_NE(named("t", "a", "l"), named("t", "b", "l"));
  EXPECT_NE(named("t", "a", "l"), named("t", "a", "m"));
}

}  // namespace
}  // namespace holdfast
