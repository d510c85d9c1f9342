#include "core/io/topology_dot.hpp"

#include <gmock/gmock.h>

#include "core/io/topology_reader.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string clusters(int hosts) {
  return R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
cluster:
  hosts: {template: small, count: )" +
         std::to_string(hosts) + R"(}
  rail_optimised: {hosts_per_pod: 1, rails: 1, spines: 2, latency: 1us}
overrides:
  - {link: pod0.leaf0--spine1, up: false}
)";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(TopologyDot, ManyHostsAreOneNodeEach) {
  const Topology t = parse_topology(clusters(3), "t.yaml");
  const std::string dot = render_dot(t);
  const std::string host = "d" + std::to_string(t.find_domain("h1").value());
  const std::string leaf = "n" + std::to_string(t.find_node("pod1.leaf0").value());
  EXPECT_THAT(dot, HasSubstr(host + " [label=\"h1\\n2 GPUs, 2 NICs\""));
  EXPECT_THAT(dot, HasSubstr(host + " -- " + leaf + " [label=\"2 x 50.0 GB/s\"];"));
  EXPECT_THAT(dot, HasSubstr("label=\"pod pod1\""));
  EXPECT_THAT(dot, Not(HasSubstr("gpu0")));
  EXPECT_EQ(count(dot, "subgraph"), 3U);  // pods; hosts are nodes
  EXPECT_EQ(count(dot, " -- "), 3U + 6U);
  EXPECT_EQ(count(dot, ", down\", style=dashed"), 1U);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
  EXPECT_EQ(dot, render_dot(parse_topology(clusters(3), "t.yaml")));
}

TEST(TopologyDot, TwoHostsAreDrawnWhole) {
  const Topology t = parse_topology(clusters(2), "t.yaml");
  const std::string dot = render_dot(t);
  for (const Node& node : t.nodes()) EXPECT_THAT(dot, HasSubstr("[label=\"" + node.name + "\\n"));
  EXPECT_EQ(count(dot, " -- "), t.links().size());
  EXPECT_EQ(count(dot, "subgraph"), 4U);  // pods and hosts
}

TEST(TopologyDot, OnlyEqualLinksAreMerged) {
  Sketch s;
  const NodeId a = s.node("a", NodeKind::Switch);
  const NodeId b = s.node("b", NodeKind::Gateway);
  const NodeId c = s.node("c", NodeKind::Gateway);
  for (int i = 0; i < 3; ++i) s.link(i == 1 ? b : a, i == 1 ? a : b, LinkKind::Fabric, 100);
  s.link(a, b, LinkKind::Fabric, 200);
  s.link(a, b, LinkKind::Fabric, 100, nanoseconds(2));
  const LinkId wan = s.link(b, c, LinkKind::Wan, 1000, milliseconds(15));
  s.builder.link(wan).stream_cap = Rate(10);
  const std::string dot = render_dot(s.build());
  EXPECT_EQ(count(dot, " -- "), 4U);
  EXPECT_THAT(dot, HasSubstr("n0 -- n1 [label=\"3 x 100 B/s\"]"));
  EXPECT_THAT(dot, HasSubstr("n1 -- n2 [label=\"1.00 kB/s, 15.0 ms, a stream at most 10 B/s\"]"));
}

TEST(TopologyDot, NamesCannotEndTheirLabel) {
  Sketch s;
  const NodeId a = s.node("a\"]; evil [x=\"", NodeKind::Switch);
  const NodeId b = s.node("b\\", NodeKind::Switch);
  const NodeId c = s.node("c\n\x1b[2J", NodeKind::Switch);
  s.link(a, b, LinkKind::Fabric);
  s.link(b, c, LinkKind::Fabric);
  const std::string dot = render_dot(s.build());
  EXPECT_THAT(dot, HasSubstr("n0 [label=\"a\\\"]; evil [x=\\\"\\nswitch\""));
  EXPECT_THAT(dot, HasSubstr("n1 [label=\"b\\\\\\nswitch\""));
  EXPECT_THAT(dot, HasSubstr("n2 [label=\"c\\\\x0a\\\\x1b[2J\\nswitch\""));
}

}  // namespace
}  // namespace holdfast
