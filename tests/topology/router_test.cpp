#include "core/topology/router.hpp"

#include <gmock/gmock.h>

#include "tests/topology/small_topologies.hpp"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A host with two GPUs on an NVSwitch, memory and one NIC, all on one root complex.
struct Host {
  DomainId domain;
  NodeId g0, g1, memory, nv, nic, root;
  LinkId nv0, nv1, p0, p1, pn, pm;

  Host(Sketch& s, const std::string& name, DomainId parent = {}) {
    domain = s.host(name, parent);
    g0 = s.node(name + ".g0", NodeKind::Gpu, domain);
    g1 = s.node(name + ".g1", NodeKind::Gpu, domain);
    memory = s.node(name + ".mem", NodeKind::HostMemory, domain);
    nv = s.node(name + ".nv", NodeKind::NvSwitch, domain);
    nic = s.node(name + ".nic", NodeKind::Nic, domain);
    root = s.node(name + ".root", NodeKind::PcieSwitch, domain);
    nv0 = s.link(g0, nv, LinkKind::NvLink, 450);
    nv1 = s.link(g1, nv, LinkKind::NvLink, 450);
    p0 = s.link(g0, root, LinkKind::Pcie, 55);
    p1 = s.link(g1, root, LinkKind::Pcie, 55);
    pn = s.link(nic, root, LinkKind::Pcie, 55);
    pm = s.link(memory, root, LinkKind::Memory, 250);
  }
};

ChannelId forth(LinkId link) {
  return ChannelId(link, false);
}
ChannelId back(LinkId link) {
  return ChannelId(link, true);
}

TEST(Router, NvLinkJoinsGpusOfOneHost) {
  Sketch s;
  const Host h(s, "h");
  const Topology t = s.build();
  const Router router(t);
  EXPECT_THAT(router.route(h.g0, h.g1, {h.g0, h.g1}).value(),
              ElementsAre(forth(h.nv0), back(h.nv1)));
  EXPECT_TRUE(router.nvlinked(h.g0, h.g1));
  EXPECT_FALSE(router.nvlinked(h.g0, h.g0));
  EXPECT_FALSE(router.nvlinked(h.g0, h.memory));
}

TEST(Router, WithoutNvLinkGpusMeetOverPcie) {
  Sketch s;
  const Host h(s, "h");
  s.builder.link(h.nv1).up = false;
  const Topology t = s.build();
  const Router router(t);
  EXPECT_FALSE(router.nvlinked(h.g0, h.g1));
  EXPECT_THAT(router.route(h.g0, h.g1, {h.g0, h.g1}).value(), ElementsAre(forth(h.p0), back(h.p1)));
}

TEST(Router, DirectNvLinkDoesNotRelayThroughGpus) {
  Sketch s;
  const DomainId h = s.host("h");
  const NodeId a = s.node("a", NodeKind::Gpu, h);
  const NodeId b = s.node("b", NodeKind::Gpu, h);
  const NodeId c = s.node("c", NodeKind::Gpu, h);
  const LinkId ab = s.link(a, b, LinkKind::NvLink);
  s.link(b, c, LinkKind::NvLink);
  const Topology t = s.build();
  const Router router(t);
  EXPECT_THAT(router.route(b, a, {b, a}).value(), ElementsAre(back(ab)));
  EXPECT_FALSE(router.nvlinked(a, c));
  const auto none = router.route(a, c, {a, c});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("gpu 'a' and gpu 'c'"));
}

TEST(Router, HostMemoryStaysOnPcie) {
  Sketch s;
  const Host h(s, "h");
  const Topology t = s.build();
  const Router router(t);
  EXPECT_THAT(router.route(h.memory, h.g1, {h.memory, h.g1}).value(),
              ElementsAre(forth(h.pm), back(h.p1)));
  EXPECT_THAT(router.route(h.g1, h.memory, {h.g1, h.memory}).value(),
              ElementsAre(forth(h.p1), back(h.pm)));
}

TEST(Router, OneSwitchJoinsTwoHosts) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const NodeId hub = s.node("hub", NodeKind::Switch);
  const LinkId la = s.link(a.nic, hub, LinkKind::Fabric, 50);
  const LinkId lb = s.link(hub, b.nic, LinkKind::Fabric, 50);
  s.builder.link(lb).latency = microseconds(3);
  s.builder.link(lb).stream_cap = Rate(7);
  const Topology t = s.build();
  const Router router(t);
  const Route there = router.route(a.g0, b.memory, {a.nic, b.nic}).value();
  EXPECT_THAT(there,
              ElementsAre(forth(a.p0), back(a.pn), forth(la), forth(lb), forth(b.pn), back(b.pm)));
  EXPECT_EQ(router.latency(there), nanoseconds(5) + microseconds(3));
  EXPECT_EQ(router.bottleneck(there), Rate(7));
  EXPECT_EQ(router.bottleneck({forth(a.p0), forth(la)}), Rate(50));
  EXPECT_THAT(router.route(b.g1, a.g1, {b.nic, a.nic}).value(),
              ElementsAre(forth(b.p1), back(b.pn), back(lb), back(la), forth(a.pn), back(a.p1)));
  EXPECT_EQ(router.choices(a.nic, b.nic), 1U);
}

TEST(Router, NicsCabledToEachOtherNeedNoSwitch) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const LinkId one = s.link(a.nic, b.nic, LinkKind::Fabric);
  const LinkId two = s.link(b.nic, a.nic, LinkKind::Fabric);
  const Topology t = s.build();
  const Router router(t);
  EXPECT_EQ(router.choices(a.nic, b.nic), 2U);
  const auto fabric = [&](std::uint32_t stream) {
    return router.route(a.g0, b.g0, {a.nic, b.nic, stream}).value().at(2);
  };
  EXPECT_EQ(fabric(0), forth(one));
  EXPECT_EQ(fabric(1), back(two));
  EXPECT_EQ(fabric(2), forth(one));
}

TEST(Router, NicsDoNotRelay) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const Host c(s, "c");
  s.link(a.nic, b.nic, LinkKind::Fabric);
  s.link(b.nic, c.nic, LinkKind::Fabric);
  const Topology t = s.build();
  const Router router(t);
  EXPECT_EQ(router.choices(a.nic, c.nic), 0U);
  const auto none = router.route(a.g0, c.g0, {a.nic, c.nic});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("nothing in the fabric"));
}

// Two leaves, three spines; the second spine has two links to the second leaf.
TEST(Router, StreamsNameEveryShortestPath) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const NodeId left = s.node("left", NodeKind::Switch);
  const NodeId right = s.node("right", NodeKind::Switch);
  std::vector<NodeId> spines;
  for (int i = 0; i < 3; ++i)
    spines.push_back(s.node("spine" + std::to_string(i), NodeKind::Spine));
  const LinkId la = s.link(a.nic, left, LinkKind::Fabric);
  const LinkId lb = s.link(b.nic, right, LinkKind::Fabric);
  std::vector<LinkId> up;
  std::vector<LinkId> down;
  for (const NodeId spine : spines) up.push_back(s.link(left, spine, LinkKind::Fabric));
  for (const NodeId spine : spines) down.push_back(s.link(spine, right, LinkKind::Fabric));
  const LinkId parallel = s.link(spines[1], right, LinkKind::Fabric);
  const Topology t = s.build();
  const Router router(t);
  const auto fabric = [&](std::uint32_t stream) {
    const Route route = router.route(a.g0, b.g0, {a.nic, b.nic, stream}).value();
    return std::vector<ChannelId>(route.begin() + 2, route.end() - 2);
  };
  // stream mod 3 chooses the spine; stream / 3 mod 2 the parallel link at the second spine.
  EXPECT_THAT(fabric(0), ElementsAre(forth(la), forth(up[0]), forth(down[0]), back(lb)));
  EXPECT_THAT(fabric(1), ElementsAre(forth(la), forth(up[1]), forth(down[1]), back(lb)));
  EXPECT_THAT(fabric(2), ElementsAre(forth(la), forth(up[2]), forth(down[2]), back(lb)));
  EXPECT_THAT(fabric(4), ElementsAre(forth(la), forth(up[1]), forth(parallel), back(lb)));
  EXPECT_EQ(fabric(3), fabric(0));
  EXPECT_EQ(fabric(7), fabric(1));
  EXPECT_EQ(router.choices(a.nic, b.nic), 4U);
  EXPECT_EQ(router.choices(b.nic, a.nic), 4U);
}

TEST(Router, WanIsCrossedThroughGateways) {
  Sketch s;
  const DomainId dc0 = s.builder.add_domain("dc0", Level::Datacenter);
  const DomainId dc1 = s.builder.add_domain("dc1", Level::Datacenter);
  const Host a(s, "a", dc0);
  const Host b(s, "b", dc1);
  const NodeId s0 = s.node("s0", NodeKind::Switch, dc0);
  const NodeId s1 = s.node("s1", NodeKind::Switch, dc1);
  const NodeId w0 = s.node("w0", NodeKind::Gateway, dc0);
  const NodeId w1 = s.node("w1", NodeKind::Gateway, dc1);
  const LinkId l0 = s.link(a.nic, s0, LinkKind::Fabric);
  const LinkId l1 = s.link(b.nic, s1, LinkKind::Fabric);
  const LinkId g0 = s.link(s0, w0, LinkKind::Fabric);
  const LinkId g1 = s.link(w1, s1, LinkKind::Fabric);
  const LinkId wan = s.link(w0, w1, LinkKind::Wan);
  const Topology t = s.build();
  const Router router(t);
  EXPECT_THAT(router.route(a.g0, b.g0, {a.nic, b.nic}).value(),
              ElementsAre(forth(a.p0), back(a.pn), forth(l0), forth(g0), forth(wan), forth(g1),
                          back(l1), forth(b.pn), back(b.p0)));
}

// Two NICs of one host on one switch: over the fabric is legal, and a second way inside the host.
TEST(Router, NicsOfOneHostMeetOverTheFabric) {
  Sketch s;
  const Host h(s, "h");
  const NodeId second = s.node("h.nic1", NodeKind::Nic, h.domain);
  const LinkId pcie = s.link(second, h.g1, LinkKind::Pcie);
  const NodeId hub = s.node("hub", NodeKind::Switch);
  const LinkId l0 = s.link(h.nic, hub, LinkKind::Fabric);
  const LinkId l1 = s.link(second, hub, LinkKind::Fabric);
  const Topology t = s.build();
  const Router router(t);
  EXPECT_THAT(router.route(h.g0, h.g1, {h.nic, second}).value(),
              ElementsAre(forth(h.p0), back(h.pn), forth(l0), back(l1), forth(pcie)));
  // Nearest first: one hop against two; GPUs do not relay, so g0 reaches only the other one.
  EXPECT_THAT(router.nics(h.g1), ElementsAre(second, h.nic));
  EXPECT_THAT(router.nics(h.g0), ElementsAre(h.nic));
  EXPECT_THAT(router.nics(hub), IsEmpty());
}

TEST(Router, SaysWhyThereIsNoRoute) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const NodeId hub = s.node("hub", NodeKind::Switch);
  s.link(a.nic, hub, LinkKind::Fabric);
  s.link(b.nic, hub, LinkKind::Fabric);
  const Topology t = s.build();
  const Router router(t);
  const auto why = [&](NodeId from, NodeId to, Path path) {
    const auto route = router.route(from, to, path);
    return route ? std::string("a route") : route.error();
  };
  EXPECT_THAT(why(a.g0, a.g0, {a.g0, a.g0}), HasSubstr("both source and destination"));
  EXPECT_THAT(why(a.nic, b.g0, {a.nic, b.nic}), HasSubstr("holds no weights"));
  EXPECT_THAT(why(a.g0, b.g0, {a.nic, b.g0}), HasSubstr("one port is a NIC"));
  EXPECT_THAT(why(a.g0, b.g0, {a.g0, b.nic}), HasSubstr("one port is a NIC"));
  EXPECT_THAT(why(a.g0, b.g0, {b.nic, a.nic}), HasSubstr("does not reach nic 'b.nic'"));
  EXPECT_THAT(why(a.g0, b.g0, {a.nic, a.nic}), HasSubstr("both ports"));
  EXPECT_THAT(why(a.g0, a.g1, {a.nic, b.nic}), HasSubstr("does not reach gpu 'a.g1'"));
  EXPECT_THAT(why(a.g0, a.g1, {a.g1, a.g0}), HasSubstr("has no port"));
  EXPECT_THAT(why(a.g0, b.g0, {a.g0, b.g0}), HasSubstr("nothing inside a host"));
  EXPECT_THAT(why(a.g0, b.g0, {NodeId(), b.nic}), HasSubstr("does not have"));
  EXPECT_THAT(why(NodeId(999U), b.g0, {a.nic, b.nic}), HasSubstr("does not have"));
}

TEST(Router, WhatIsDownIsNotUsed) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  const NodeId hub = s.node("hub", NodeKind::Switch);
  const NodeId other = s.node("other", NodeKind::Switch);
  s.link(a.nic, hub, LinkKind::Fabric);
  s.link(b.nic, hub, LinkKind::Fabric);
  const LinkId la = s.link(a.nic, other, LinkKind::Fabric);
  const LinkId lb = s.link(b.nic, other, LinkKind::Fabric);
  s.builder.node(hub).up = false;
  s.builder.node(b.g1).up = false;
  const Topology t = s.build();
  const Router router(t);
  const Route route = router.route(a.g0, b.g0, {a.nic, b.nic, 1}).value();
  EXPECT_EQ(route.at(2), forth(la));
  EXPECT_EQ(route.at(3), back(lb));
  EXPECT_EQ(router.choices(a.nic, b.nic), 1U);
  const auto none = router.route(a.g0, b.g1, {a.nic, b.nic});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("gpu 'b.g1' (down)"));
  EXPECT_THAT(router.nics(b.g1), IsEmpty());
}

// 17 layers of two switches each: 2^17 shortest paths; the count stops at 2^16.
TEST(Router, ChoicesStopAt65536) {
  Sketch s;
  const Host a(s, "a");
  const Host b(s, "b");
  std::vector<NodeId> layer{a.nic};
  const auto join = [&](const std::vector<NodeId>& next) {
    for (const NodeId from : layer) {
      for (const NodeId to : next) s.link(from, to, LinkKind::Fabric);
    }
    layer = next;
  };
  for (int i = 0; i < 17; ++i) {
    join({s.node("x" + std::to_string(i), NodeKind::Switch),
          s.node("y" + std::to_string(i), NodeKind::Switch)});
  }
  join({b.nic});
  const Topology t = s.build();
  const Router router(t);
  EXPECT_EQ(router.choices(a.nic, b.nic), 1U << 16);
  EXPECT_EQ(router.choices(a.nic, a.nic), 0U);
  EXPECT_EQ(router.choices(a.g0, b.nic), 0U);
}

}  // namespace
}  // namespace holdfast
