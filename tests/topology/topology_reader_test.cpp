#include "core/io/topology_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/topology/router.hpp"
#include "tests/topology/topology_texts.hpp"

namespace holdfast {
namespace {

using namespace topology_texts;

TEST(TopologyReader, ReadsExplicitNodesAndLinks) {
  const Topology t = parse_topology(R"(format: 1
name: by-hand
source: |
  made up,
  in two lines
domains:
  - {name: dc, level: datacenter}
  - {name: r, level: rack, parent: dc}
  - {name: h, level: host, parent: r}
nodes:
  - {name: g, kind: gpu, domain: h, memory: 80GB, digest_rate: 2TB/s}
  - {name: m, kind: host_memory, domain: h, memory: 1TB, digest_rate: 100GB/s}
  - {name: p, kind: pcie_switch, domain: h}
  - {name: n, kind: nic, domain: h, up: false}
  - {name: s, kind: switch, domain: r}
links:
  - {a: g, b: p, kind: pcie, capacity: 55GB/s, latency: 250ns}
  - {a: m, b: p, kind: memory, capacity: 200GB/s, latency: 0s}
  - {a: n, b: p, kind: pcie, capacity: 55GB/s, latency: 250ns}
  - {name: uplink, a: n, b: s, kind: fabric, capacity: 400Gbps, latency: 1us, stream_cap: 10GB/s}
  - {a: n, b: s, kind: fabric, capacity: 400Gbps, latency: 1us, up: false}
  - {a: n, b: s, kind: fabric, capacity: 400Gbps, latency: 1us}
fault_domains:
  - {name: feed, members: [r, ]}
  - {name: half, members: [g, s]}
overrides:
  - {link: uplink, capacity: 200Gbps, latency: 2us, stream_cap: 5GB/s}
  - {node: g, memory: 40GB, digest_rate: 1TB/s}
  - {node: n, up: true}
)",
                                    "t.yaml");
  EXPECT_EQ(t.name(), "by-hand");
  EXPECT_EQ(t.nodes().size(), 5U);
  const Node& g = t.node(t.find_node("g"));
  EXPECT_EQ(g.kind, NodeKind::Gpu);
  EXPECT_EQ(g.memory, Bytes(40'000'000'000));
  EXPECT_EQ(g.digest_rate, Rate(1'000'000'000'000));
  EXPECT_TRUE(t.node(t.find_node("n")).up);
  EXPECT_EQ(t.around(t.find_node("s"), Level::Rack), t.find_domain("r"));
  EXPECT_EQ(t.around(t.find_node("g"), Level::Datacenter), t.find_domain("dc"));
  const Link& uplink = t.link(t.find_link("uplink"));
  EXPECT_EQ(uplink.capacity, Rate(25'000'000'000));
  EXPECT_EQ(uplink.latency, microseconds(2));
  EXPECT_EQ(uplink.stream_cap, Rate(5'000'000'000));
  EXPECT_EQ(t.link(t.find_link("g--p")).kind, LinkKind::Pcie);
  EXPECT_FALSE(t.link(t.find_link("n--s")).up);
  EXPECT_TRUE(t.link(t.find_link("n--s#2")).up);
  ASSERT_EQ(t.fault_domains().size(), 2U);
  EXPECT_EQ(t.fault_domains()[0].nodes.size(), 5U);
  EXPECT_EQ(t.fault_domains()[1].nodes, (std::vector<NodeId>{t.find_node("g"), t.find_node("s")}));
}

TEST(TopologyReader, HostsAreWiredAsTheirTemplateSays) {
  const Topology t = parse_topology(R"(format: 1
name: t
hosts:
  eight:
    gpus: {count: 8, memory: 80GB, digest_rate: 2TB/s}
    nvlink: {rate: 450GB/s, latency: 500ns}
    nics: {count: 4, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie:
      rate: 55GB/s
      latency: 250ns
      sockets: 2
      socket_link: {rate: 100GB/s, latency: 200ns}
      switches: 4
cluster:
  hosts: {template: eight, count: 1}
)",
                                    "t.yaml");
  const Router router(t);
  std::vector<std::string> names;
  for (const Node& node : t.nodes()) names.push_back(node.name.substr(3));
  EXPECT_THAT(names, testing::ElementsAre("gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6",
                                          "gpu7", "mem", "nvswitch", "nic0", "nic1", "nic2", "nic3",
                                          "pcie0", "pcie1", "pcie2", "pcie3", "root0", "root1"));
  for (int i = 0; i < 8; ++i) {
    const NodeId gpu = t.find_node("h0.gpu" + std::to_string(i));
    EXPECT_EQ(router.nics(gpu).front(), t.find_node("h0.nic" + std::to_string(i / 2))) << i;
    EXPECT_EQ(router.nics(gpu).size(), 4U);
    // To memory over its own socket: switch, root, memory.
    const NodeId memory = t.find_node("h0.mem");
    const Route route = router.route(memory, gpu, {memory, gpu}).value();
    ASSERT_EQ(route.size(), 3U);
    EXPECT_EQ(t.head(route[0]), t.find_node("h0.root" + std::to_string(i / 4)));
    EXPECT_EQ(t.head(route[1]), t.find_node("h0.pcie" + std::to_string(i / 2)));
  }
  const NodeId far_gpu = t.find_node("h0.gpu7");
  EXPECT_TRUE(router.nvlinked(t.find_node("h0.gpu0"), far_gpu));
  EXPECT_EQ(t.link(t.find_link("h0.root0--h0.root1")).capacity, Rate(100'000'000'000));
  EXPECT_EQ(t.link(t.find_link("h0.gpu0--h0.nvswitch")).capacity, Rate(450'000'000'000));
  EXPECT_EQ(t.link(t.find_link("h0.mem--h0.root1")).kind, LinkKind::Memory);
  EXPECT_EQ(t.node(t.find_node("h0.mem")).memory, Bytes(1'000'000'000'000));
}

TEST(TopologyReader, ListedSwitchesDecideWhatIsNear) {
  const std::string text = R"(format: 1
name: t
hosts:
  odd:
    gpus: {count: 3, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 1, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie:
      rate: 55GB/s
      latency: 250ns
      switches:
        - {gpus: [2, 0]}
        - {gpus: [1], nics: [0]}
cluster:
  hosts: {template: odd, count: 1}
)";
  const Topology t = parse_topology(text, "t.yaml");
  EXPECT_TRUE(t.find_link("h0.gpu2--h0.pcie0").valid());
  EXPECT_TRUE(t.find_link("h0.gpu1--h0.pcie1").valid());
  EXPECT_TRUE(t.find_link("h0.nic0--h0.pcie1").valid());
}

TEST(TopologyReader, RailOptimisedWiringAndCapacity) {
  const Topology t = parse_topology(cluster("  hosts: {template: small, count: 6}\n"
                                            "  rail_optimised:\n"
                                            "    hosts_per_pod: 3\n"
                                            "    spines: 5\n"
                                            "    oversubscription: 3:2\n"
                                            "    latency: 1us\n"),
                                    "t.yaml");
  EXPECT_EQ(t.link(t.find_link("h4.nic1--pod1.leaf1")).capacity, Rate(50'000'000'000));
  EXPECT_FALSE(t.find_link("h4.nic1--pod1.leaf0").valid());
  // 3 x 50 GB/s over 3:2 is 100 GB/s for 5 spines.
  EXPECT_EQ(t.link(t.find_link("pod0.leaf1--spine4")).capacity, Rate(20'000'000'000));
  EXPECT_EQ(t.around(t.find_node("h4.gpu0"), Level::Pod), t.find_domain("pod1"));
  EXPECT_EQ(t.around(t.find_node("pod1.leaf0"), Level::Pod), t.find_domain("pod1"));
  EXPECT_FALSE(t.around(t.find_node("spine0"), Level::Pod).valid());
  const Router router(t);
  EXPECT_EQ(router.choices(t.find_node("h0.nic0"), t.find_node("h1.nic0")), 1U);
  EXPECT_EQ(router.choices(t.find_node("h0.nic0"), t.find_node("h5.nic1")), 5U);
  EXPECT_EQ(router.choices(t.find_node("h0.nic0"), t.find_node("h0.nic1")), 5U);

  // Fewer rails than NICs: NIC i on leaf i mod rails.
  const Topology one = parse_topology(cluster("  hosts: {template: small, count: 2}\n"
                                              "  rail_optimised: {hosts_per_pod: 2, rails: 1, "
                                              "latency: 1us}\n"),
                                      "t.yaml");
  EXPECT_TRUE(one.find_link("h1.nic1--pod0.leaf0").valid());
}

TEST(TopologyReader, WanSharesItsCapacityOverGateways) {
  const std::string site =
      "    hosts: {template: small, count: 2}\n"
      "    gateways: {count: 2, rate: 100Gbps, latency: 1us}\n";
  const Topology t = parse_topology(
      kHosts +
          ("datacenters:\n  - name: a\n" + site + "    star: {latency: 1us}\n" + "  - name: b\n" +
           site + "    rail_optimised: {hosts_per_pod: 1, spines: 4, latency: 1us}\n" +
           "wan:\n  - {between: [a, b], capacity: 100Gbps, latency: 15ms, stream_cap: "
           "1.25GB/s}\n"),
      "t.yaml");
  const Link& wan = t.link(t.find_link("a.gw1--b.gw1"));
  EXPECT_EQ(wan.kind, LinkKind::Wan);
  EXPECT_EQ(wan.capacity, Rate(6'250'000'000));
  EXPECT_EQ(wan.latency, milliseconds(15));
  EXPECT_EQ(wan.stream_cap, Rate(1'250'000'000));
  EXPECT_EQ(t.link(t.find_link("a.switch--a.gw0")).capacity, Rate(12'500'000'000));
  EXPECT_EQ(t.link(t.find_link("b.spine3--b.gw0")).capacity, Rate(3'125'000'000));
  EXPECT_EQ(t.around(t.find_node("b.h1.gpu0"), Level::Datacenter), t.find_domain("b"));
  EXPECT_EQ(t.around(t.find_node("b.gw1"), Level::Datacenter), t.find_domain("b"));
  // Two gateways on the one side, four spines on the other.
  const Router router(t);
  EXPECT_EQ(router.choices(t.find_node("a.h0.nic0"), t.find_node("b.h1.nic1")), 8U);
}

TEST(TopologyReader, TheOrderOfSectionsDoesNotMatter) {
  const std::string nodes = "nodes: [{name: s0, kind: switch}, {name: s1, kind: spine}]\n";
  const std::string links =
      "links: [{a: s0, b: s1, kind: fabric, capacity: 1GB/s, latency: 1us}]\n";
  const std::string head = "format: 1\nname: t\n";
  EXPECT_EQ(parse_topology(head + nodes + links, "x").hash(),
            parse_topology(links + nodes + head, "y").hash());
}

TEST(TopologyReader, DownDomainsTakeTheirNodesDown) {
  const Topology t =
      parse_topology(cluster("  hosts: {template: small, count: 2}\n  star: {latency: 1us}\n") +
                         "overrides:\n  - {domain: h1, up: false}\n",
                     "t.yaml");
  for (const Node& node : t.nodes()) EXPECT_EQ(node.up, !node.name.starts_with("h1.")) << node.name;
}

TEST(TopologyReader, GatewaysOfUnequalNumbersShareEvenly) {
  const auto site = [](const std::string& name, int gateways) {
    return "  - name: " + name + "\n    hosts: {template: small, count: 1}\n" +
           "    star: {latency: 1us}\n    gateways: {count: " + std::to_string(gateways) +
           ", rate: 60GB/s, latency: 1us}\n";
  };
  const Topology t = parse_topology(
      kHosts + ("datacenters:\n" + site("a", 2) + site("b", 3) + site("c", 1)) +
          "wan:\n  - {between: [a, b], capacity: 6GB/s, latency: 1ms}\n"
          "  - {between: [c, b], capacity: 3GB/s, latency: 9ms, stream_cap: 1MB/s}\n",
      "t.yaml");
  std::map<std::string, std::uint64_t> sums;
  for (const Link& link : t.links()) {
    if (link.kind != LinkKind::Wan) continue;
    const bool first = link.latency == milliseconds(1);
    EXPECT_EQ(link.stream_cap.has_value(), !first);
    for (const NodeId end : {link.a, link.b}) {
      sums[t.node(end).name + (first ? "" : "'")] += link.capacity.bytes_per_second();
    }
  }
  const std::map<std::string, std::uint64_t> expected{
      {"a.gw0", 3'000'000'000},  {"a.gw1", 3'000'000'000},  {"b.gw0", 2'000'000'000},
      {"b.gw1", 2'000'000'000},  {"b.gw2", 2'000'000'000},  {"b.gw0'", 1'000'000'000},
      {"b.gw1'", 1'000'000'000}, {"b.gw2'", 1'000'000'000}, {"c.gw0'", 3'000'000'000}};
  EXPECT_EQ(sums, expected);
  // From a to c over b's gateways, which have one link to c each.
  EXPECT_EQ(Router(t).choices(t.find_node("a.h0.nic0"), t.find_node("c.h0.nic1")), 6U);
}

TEST(TopologyReader, ReadsManyExplicitThingsInLinearTime) {
  std::string nodes = "nodes:\n  - {name: hub, kind: switch}\n";
  std::string links = "links:\n";
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "s" + std::to_string(i);
    nodes += "  - {name: " + name + ", kind: switch}\n";
    links += "  - {a: hub, b: " + name + ", kind: fabric, capacity: 1GB/s, latency: 1us}\n";
  }
  const Topology t = parse_topology("format: 1\nname: t\n" + nodes + links, "t.yaml");
  EXPECT_EQ(t.nodes().size(), 20'001U);
  EXPECT_EQ(t.neighbours(t.find_node("hub")).size(), 20'000U);
}

}  // namespace
}  // namespace holdfast
