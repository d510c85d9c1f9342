#include "core/io/topology_reader.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/topology/router.hpp"

namespace holdfast {
namespace {

using testing::HasSubstr;

// Two GPUs and two NICs on one socket.
constexpr const char* kHosts = R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
)";

// The same without NICs.
constexpr const char* kNoNics = R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
)";

constexpr const char* kPlain = R"(format: 1
name: t
nodes:
  - {name: s0, kind: switch}
  - {name: s1, kind: spine}
links:
  - {a: s0, b: s1, kind: fabric, capacity: 1GB/s, latency: 1us}
)";

// Parses `text` without its one '$', which marks where the error must be.
void expect_refused(std::string text, ErrorCode code, const std::string& part) {
  SCOPED_TRACE(text);
  const std::size_t mark = text.find('$');
  ASSERT_NE(mark, std::string::npos);
  text.erase(mark, 1);
  const std::string before = text.substr(0, mark);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
  const std::size_t column = mark - start + 1;
  try {
    (void)parse_topology(text, "t.yaml");
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.place().file, "t.yaml");
    EXPECT_EQ(error.place().line, line) << error.what();
    EXPECT_EQ(error.place().column, static_cast<int>(column)) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

std::string cluster(const std::string& rest) {
  return kHosts + ("cluster:\n" + rest);
}

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

TEST(TopologyReader, RefusesTheTopLevel) {
  expect_refused("format: 1\nname: t\n$name: u\n", ErrorCode::Duplicate, "'name'");
  expect_refused("$- 1\n", ErrorCode::BadValue, "a list stands here");
  expect_refused("$name: t\n", ErrorCode::MissingKey, "'format'");
  expect_refused("format: $2\nname: t\n", ErrorCode::Unsupported, "reads topology format 1");
  expect_refused("$format: 1\nname: t\n", ErrorCode::MissingKey, "nothing is described");
  expect_refused("format: 1\nname: $'a b'\n", ErrorCode::BadValue, "not a name");
  expect_refused("format: 1\nname: t\n$node: []\n", ErrorCode::UnknownKey, "did you mean 'nodes'");
  expect_refused("$format: 1\nname: t\nnodes: []\n", ErrorCode::BadTopology, "no nodes");
}

// Replaces the first `from` in `text`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TopologyReader, RefusesHostTemplates) {
  const std::string good = cluster("  hosts: {template: small, count: 1}\n");
  EXPECT_EQ(parse_topology(good, "t.yaml").nodes().size(), 6U);
  const auto refused = [&](const std::string& from, const std::string& to, ErrorCode code,
                           const std::string& part) {
    expect_refused(with(good, from, to), code, part);
  };
  refused("count: 2, memory", "count: $0, memory", ErrorCode::BadValue, "out of range");
  refused("count: 2, memory", "count: $257, memory", ErrorCode::BadValue, "out of range");
  refused("memory: 80GB, ", "memory: $80, ", ErrorCode::BadUnit, "has no unit");
  refused("memory: 80GB, ", "memory: $0GB, ", ErrorCode::BadValue, "zero");
  refused("gpus: {count: 2, memory: 80GB, ", "gpus: {$count: 2, ", ErrorCode::MissingKey,
          "'memory'");
  refused("digest_rate: 2TB/s}", "digest_rate: 2TB/s, $digest_rat: 1}", ErrorCode::UnknownKey,
          "did you mean 'digest_rate'");
  refused("    memory: {", "    $nvlnk: 1\n    memory: {", ErrorCode::UnknownKey, "'nvlink'");
  refused("rate: 400Gbps", "rate: $400G", ErrorCode::BadUnit, "400Gbps");
  refused("pcie: {rate", "pcie: {$sockets: 2, rate", ErrorCode::MissingKey, "'socket_link'");
  refused("latency: 250ns}", "latency: 250ns, $socket_link: {}}", ErrorCode::NoEffect,
          "only one socket");
  refused("pcie: {rate", "pcie: {switches: $3, rate", ErrorCode::BadTopology,
          "2 GPUs cannot be shared out evenly over 3 PCIe switches");
  expect_refused(with(with(good, "nics: {count: 2", "nics: {count: 3"), "pcie: {rate",
                      "pcie: {switches: $2, rate"),
                 ErrorCode::BadTopology, "3 NICs cannot be shared out evenly");
  expect_refused(with(good, "pcie: {rate",
                      "pcie: {sockets: 2, socket_link: {rate: 1GB/s, latency: 0s}, "
                      "switches: $1, rate"),
                 ErrorCode::BadTopology, "1 PCIe switches cannot be shared out evenly over 2");
  expect_refused(with(with(good, "gpus: {count: 2", "gpus: {count: 1"), "    memory: {",
                      "    nvlink: {$rate: 1GB/s, latency: 0s}\n    memory: {"),
                 ErrorCode::NoEffect, "host of one GPU");
  const auto switches = [&](const std::string& list) {
    return with(good, "pcie: {rate", "pcie: {switches: [" + list + "], rate");
  };
  expect_refused(switches("{gpus: [0, $0]}"), ErrorCode::Duplicate, "two switches");
  expect_refused(switches("{gpus: [0, $2]}"), ErrorCode::BadValue, "from 0 to 1");
  expect_refused(switches("{gpus: [0, 1], nics: [0, 1]}, ${}"), ErrorCode::NoEffect,
                 "nothing hangs");
  expect_refused(with(switches("{gpus: [0, 1], nics: [0]}"), "switches: [", "switches: $["),
                 ErrorCode::BadTopology, "NIC 1 hangs on no switch");
  expect_refused(with(switches("{gpus: [0], nics: [0, 1]}"), "switches: [", "switches: $["),
                 ErrorCode::BadTopology, "GPU 1 hangs on no switch");
  expect_refused(switches("{socket: $1, gpus: [0, 1]}"), ErrorCode::BadValue, "out of range");
}

TEST(TopologyReader, RefusesClusters) {
  const auto refused = [](const std::string& rest, ErrorCode code, const std::string& part) {
    expect_refused(cluster(rest), code, part);
  };
  const std::string six = "  hosts: {template: small, count: 6}\n";
  refused("  hosts: {template: $smal, count: 1}\n", ErrorCode::UnknownName, "'small'");
  refused("  hosts: {template: small, count: $0}\n", ErrorCode::BadValue, "out of range");
  refused("  hosts: {template: small, count: $166667}\n", ErrorCode::LimitExceeded,
          "this makes 1000002 nodes");
  refused(six + "  $stat: {latency: 1us}\n", ErrorCode::UnknownKey, "'star'");
  refused(six + "  star: {latency: 1us, $oversubscription: 2:1}\n", ErrorCode::NoEffect,
          "one switch");
  refused(six + "  star: {latency: 1us, $spines: 2}\n", ErrorCode::NoEffect, "one switch");
  refused(six + "  star: {latency: 1us}\n  rail_optimised: {$latency: 1us}\n", ErrorCode::BadValue,
          "one fabric");
  refused(six + "  star: {$latency: 61s}\n", ErrorCode::BadTopology, "between 0 and 1min");
  refused(six + "  $gateways: {count: 1, rate: 1GB/s, latency: 1us}\n", ErrorCode::NoEffect,
          "no WAN");
  const auto rails = [&](const std::string& inside) {
    return six + "  rail_optimised: {" + inside + ", latency: 1us}\n";
  };
  refused(rails("hosts_per_pod: $4, spines: 1"), ErrorCode::BadTopology,
          "6 hosts do not divide into pods of 4");
  refused(rails("hosts_per_pod: 3, rails: $3, spines: 1"), ErrorCode::BadValue, "out of range");
  refused(rails("hosts_per_pod: 3, spines: $7"), ErrorCode::BadTopology,
          "150GB/s from below over 1:1 cannot be shared out evenly over 7 spines");
  for (const char* ratio : {"2", "2:", ":1", "0:1", "2:1:1", "x", "2.0:1"}) {
    refused(rails("hosts_per_pod: 3, spines: 1, oversubscription: $'" + std::string(ratio) + "'"),
            ErrorCode::BadValue, "such as 2:1");
  }
  refused(rails("hosts_per_pod: 6, rails: 1, $spines: 1"), ErrorCode::NoEffect, "single leaf");
  refused(rails("hosts_per_pod: 6, rails: 1, $oversubscription: 2:1"), ErrorCode::NoEffect,
          "single leaf");
  refused(rails("$hosts_per_pod: 3"), ErrorCode::MissingKey, "'spines'");
  refused(rails("$hosts_per_pod: 3, spines_per_pod: 1"), ErrorCode::MissingKey, "'cores'");
  refused(rails("hosts_per_pod: 3, spines_per_pod: 2, cores: $3"), ErrorCode::BadTopology,
          "3 cores cannot be shared out evenly over the 2 spines");
  refused(rails("hosts_per_pod: 6, spines_per_pod: 2, $cores: 2"), ErrorCode::NoEffect,
          "there is one pod");
  refused(rails("hosts_per_pod: 6, spines_per_pod: 2, oversubscription: {$spine: 2:1}"),
          ErrorCode::NoEffect, "there is one pod");
  refused(rails("hosts_per_pod: 3, spines_per_pod: 2, cores: 2, $spines: 2"), ErrorCode::NoEffect,
          "spines of their own");
  refused(rails("hosts_per_pod: 3, spines: 2, $cores: 2"), ErrorCode::NoEffect,
          "write 'spines_per_pod'");
  refused(rails("hosts_per_pod: 3, spines: 2, oversubscription: {$spine: 2:1}"),
          ErrorCode::NoEffect, "nothing is above");
  refused(rails("hosts_per_pod: 3, spines: 2, oversubscription: {leaf: 2:1, $core: 2:1}"),
          ErrorCode::UnknownKey, "'core'");
  refused(rails("hosts_per_pod: 6, rails: 1, $spines_per_pod: 1"), ErrorCode::NoEffect,
          "single leaf");
  // Far more links than nodes.
  refused(
      "  hosts: {template: small, count: 20000}\n"
      "  rail_optimised: {$hosts_per_pod: 1, spines: 800, latency: 1us}\n",
      ErrorCode::LimitExceeded, "links; at most 4000000");
  expect_refused(kNoNics + std::string("cluster:\n  hosts: {template: small, count: 1}\n"
                                       "  star: {$latency: 1us}\n"),
                 ErrorCode::BadTopology, "have no NICs");
  // Hosts without a fabric do not hang together: the second host's first node is named.
  expect_refused(cluster("  hosts: {$template: small, count: 3}\n"), ErrorCode::BadTopology,
                 "3 parts that no link joins: 'h0.gpu0' and 5 more; 'h1.gpu0'");
  expect_refused(with(cluster(six), "hosts:\n",
                      "hosts:\n  $big: " +
                          std::string("{gpus: {count: 1, memory: 1GB, digest_rate: 1GB/s}, memory: "
                                      "{size: 1GB, rate: 1GB/s, latency: 0s, digest_rate: 1GB/s}, "
                                      "pcie: {rate: 1GB/s, latency: 0s}}\n")),
                 ErrorCode::NoEffect, "no cluster uses the host template 'big'");
}

TEST(TopologyReader, RefusesFatTrees) {
  const auto refused = [](const std::string& inside, ErrorCode code, const std::string& part) {
    expect_refused(cluster("  hosts: {template: small, count: 12}\n  fat_tree: {" + inside +
                           ", latency: 1us}\n"),
                   code, part);
  };
  refused("hosts_per_rack: $5, spines_per_pod: 1", ErrorCode::BadTopology,
          "12 hosts do not divide into racks of 5");
  refused("hosts_per_rack: 2, racks_per_pod: $4, spines_per_pod: 1", ErrorCode::BadTopology,
          "6 racks do not divide into pods of 4");
  refused("hosts_per_rack: 2, leaves_per_rack: $3, spines_per_pod: 1", ErrorCode::BadTopology,
          "2 NICs of a host of template 'small' do not divide over 3 leaves");
  refused("$hosts_per_rack: 2", ErrorCode::MissingKey, "'spines_per_pod'");
  refused("$hosts_per_rack: 2, racks_per_pod: 3, spines_per_pod: 1", ErrorCode::MissingKey,
          "'cores'");
  refused("hosts_per_rack: 2, spines_per_pod: $7", ErrorCode::BadTopology,
          "200GB/s from below over 1:1 cannot be shared out evenly over 7 spines");
  refused("hosts_per_rack: 2, racks_per_pod: 3, spines_per_pod: 1, cores: $7",
          ErrorCode::BadTopology,
          "600GB/s from below over 1:1 cannot be shared out evenly over 7 cores; change 'cores'");
  refused("hosts_per_rack: 12, $spines_per_pod: 7", ErrorCode::NoEffect, "single leaf");
  refused("hosts_per_rack: 12, $oversubscription: 2:1", ErrorCode::NoEffect, "single leaf");
  refused("hosts_per_rack: 2, spines_per_pod: 1, $rails: 7", ErrorCode::UnknownKey, "'rails'");
  refused("hosts_per_rack: 2, spines_per_pod: 1, oversubscription: {leaf: $2}", ErrorCode::BadValue,
          "such as 2:1");
  expect_refused(cluster("  hosts: {template: small, count: 12}\n  star: {latency: 1us}\n"
                         "  fat_tree: {$hosts_per_rack: 12, latency: 1us}\n"),
                 ErrorCode::BadValue, "one fabric");
  expect_refused(cluster("  hosts: {template: small, count: 20000}\n"
                         "  fat_tree: {$hosts_per_rack: 1, spines_per_pod: 800, latency: 1us}\n"),
                 ErrorCode::LimitExceeded, "links; at most 4000000");
}

TEST(TopologyReader, RefusesMixedHosts) {
  const std::string other = with(kHosts, "  small:",
                                 "  three:\n"
                                 "    gpus: {count: 1, memory: 80GB, digest_rate: 2TB/s}\n"
                                 "    nics: {count: 3, rate: 200Gbps}\n"
                                 "    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, "
                                 "digest_rate: 100GB/s}\n"
                                 "    pcie: {rate: 55GB/s, latency: 250ns}\n"
                                 "  small:");
  const auto two = [&](const std::string& fabric) {
    return other +
           "cluster:\n  hosts: [{template: small, count: 2}, {template: three, count: 1}]\n" +
           fabric;
  };
  const Topology t = parse_topology(two("  star: {latency: 1us}\n"), "t.yaml");
  EXPECT_EQ(t.link(t.find_link("h1.nic1--switch")).capacity, Rate(50'000'000'000));
  EXPECT_EQ(t.link(t.find_link("h2.nic2--switch")).capacity, Rate(25'000'000'000));
  expect_refused(two("  rail_optimised: {$hosts_per_pod: 3, spines: 1, latency: 1us}\n"),
                 ErrorCode::MissingKey, "hosts have 2 and 3 NICs; write 'rails'");
  expect_refused(two("  rail_optimised: {hosts_per_pod: 3, rails: $2, spines: 1, latency: 1us}\n"),
                 ErrorCode::BadTopology,
                 "3 NICs of a host of template 'three' do not divide over 2 rails");
  expect_refused(std::string(kHosts) + "cluster:\n  hosts: $[]\n", ErrorCode::BadValue, "empty");
  expect_refused(std::string(kHosts) +
                     "cluster:\n  hosts:\n    - {template: small, count: 100000}\n"
                     "    - {template: small, count: $66667}\n",
                 ErrorCode::LimitExceeded, "this makes 1000002 nodes");
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

// 100 Gb/s over three links, and 100 Gb/s of a gateway over three spines.
TEST(TopologyReader, SharesThatAreNoWholeBytesAreRoundedDown) {
  const auto text = [](const std::string& rest) {
    const std::string site =
        "    hosts: {template: small, count: 2}\n"
        "    rail_optimised: {hosts_per_pod: 1, spines: 4, latency: 1us}\n"
        "    gateways: {count: 3, rate: 12500000003B/s, latency: 1us}\n";
    return kHosts + ("datacenters:\n  - name: a\n" + site + "  - name: b\n" + site) +
           "wan:\n  - {between: [a, b], capacity: 100Gbps, latency: 15ms" + rest + "}\n";
  };
  const Topology t = parse_topology(text(", stream_cap: 4166666665B/s"), "t.yaml");
  for (const char* name : {"a.gw0--b.gw0", "a.gw1--b.gw1", "a.gw2--b.gw2"}) {
    EXPECT_EQ(t.link(t.find_link(name)).capacity, Rate(4'166'666'666)) << name;
    EXPECT_EQ(t.link(t.find_link(name)).stream_cap, Rate(4'166'666'665)) << name;
  }
  EXPECT_EQ(t.link(t.find_link("b.spine3--b.gw2")).capacity, Rate(3'125'000'000));
  // The cap is judged by what a link really gets.
  expect_refused(text(", stream_cap: $4166666666B/s"), ErrorCode::NoEffect, "anyway");
}

TEST(TopologyReader, RefusesDatacentersAndWan) {
  const auto site = [](const std::string& name, const std::string& extra) {
    return "  - name: " + name +
           "\n    hosts: {template: small, count: 1}\n    star: {latency: 1us}\n" + extra;
  };
  const auto gateways = [](int n) {
    return "    gateways: {count: " + std::to_string(n) + ", rate: 10GB/s, latency: 1us}\n";
  };
  const std::string two =
      kHosts + ("datacenters:\n" + site("a", gateways(1)) + site("b", gateways(1)));
  const auto wan = [](const std::string& rest) {
    return "wan:\n  - {" + rest + ", capacity: 1GB/s, latency: 1ms}\n";
  };
  EXPECT_TRUE(parse_topology(two + wan("between: [a, b]"), "t").find_link("a.gw0--b.gw0").valid());
  const auto refused = [&](const std::string& rest, ErrorCode code, const std::string& part) {
    expect_refused(two + wan(rest), code, part);
  };
  refused("between: [a, $c]", ErrorCode::UnknownName, "no datacenter 'c'");
  refused("between: [a, $a]", ErrorCode::BadTopology, "itself");
  refused("between: $[a]", ErrorCode::BadValue, "two datacenters");
  refused("between: [a, b], stream_cap: $1GB/s", ErrorCode::NoEffect, "the link's 1GB/s anyway");
  refused("between: [a, b], stream_cap: $0GB/s", ErrorCode::BadValue, "zero");
  refused("between: [a, b], $stream_cp: 3", ErrorCode::UnknownKey, "'stream_cap'");
  expect_refused(two +
                     "wan:\n  - {between: [a, b], capacity: 1GB/s, latency: 1ms}\n"
                     "  - {between: $[b, a], capacity: 1GB/s, latency: 1ms}\n",
                 ErrorCode::Duplicate, "joined twice");
  expect_refused(kHosts + ("datacenters:\n" + site("a", gateways(1)) + site("b", "")) +
                     wan("between: [a, $b]"),
                 ErrorCode::BadTopology, "'b' has no gateways");
  expect_refused(kHosts + ("datacenters:\n" + site("a", gateways(3)) + site("b", gateways(3))) +
                     "wan:\n  - {between: [a, b], capacity: $2B/s, latency: 1ms}\n",
                 ErrorCode::BadTopology, "less than a byte a second to each of 3 links between 3");
  expect_refused(with(two, "gateways: {", "gateways: {$"), ErrorCode::NoEffect,
                 "no line of 'wan' names datacenter 'a'");
  expect_refused(with(two, "  - name: b", "  - name: $a") + wan("between: [a, b]"),
                 ErrorCode::Duplicate, "two domains are called 'a'");
  expect_refused(
      kHosts + ("datacenters:\n" + site("a", "") + with(site("b", ""), "{template", "{$template")),
      ErrorCode::BadTopology, "2 parts that no link joins: 'a.h0.gpu0' and 6 more");
  expect_refused(cluster("  hosts: {template: small, count: 1}\n") +
                     "$wan:\n  - {between: [a, b], capacity: 1GB/s, latency: 1ms}\n",
                 ErrorCode::NoEffect, "there are none");
  expect_refused(kHosts + ("datacenters:\n" + site("a", "")) +
                     "cluster:\n  $hosts: {template: small, count: 1}\n",
                 ErrorCode::BadValue, "make this cluster one of them");
  expect_refused(std::string(kHosts) + "datacenters: $[]\n", ErrorCode::BadValue, "empty");
}

TEST(TopologyReader, RefusesExplicitThings) {
  const auto refused = [](const std::string& from, const std::string& to, ErrorCode code,
                          const std::string& part) {
    expect_refused(with(kPlain, from, to), code, part);
  };
  refused("kind: spine", "kind: $spime", ErrorCode::BadValue, "'spine'");
  refused("{name: s1,", "{$name: s0,", ErrorCode::Duplicate, "two nodes are called 's0'");
  refused("kind: spine", "kind: spine, domain: $d", ErrorCode::UnknownName, "no domain 'd'");
  refused("kind: spine", "kind: spine, $memory: 1GB", ErrorCode::NoEffect, "holds no weights");
  refused("kind: spine", "kind: spine, up: $yes", ErrorCode::BadValue, "true nor false");
  refused("{name: s1, kind: spine}", "{$name: s1, kind: nic}", ErrorCode::BadTopology,
          "lies in no host");
  refused("{name: s1, kind: spine}", "{$name: s1, kind: gpu}", ErrorCode::MissingKey, "'memory'");
  refused("b: s1", "b: $s2", ErrorCode::UnknownName, "no node 's2'");
  refused("{a: s0, b: s1", "{$a: s0, b: s0", ErrorCode::BadTopology, "to itself");
  refused("capacity: 1GB/s", "capacity: $0GB/s", ErrorCode::BadValue, "zero");
  refused("{a: s0, b: s1, kind: fabric", "{$a: s0, b: s1, kind: wan", ErrorCode::BadTopology,
          "cannot end at switch");
  refused("capacity: 1GB/s", "capacity: 1GB/s, stream_cap: $2GB/s", ErrorCode::NoEffect,
          "the link's 1GB/s anyway");
  refused("{a: s0, b: s1, kind: fabric, capacity: 1GB/s",
          "{$a: s0, b: s1, kind: fabric, capacity: 101TB/s", ErrorCode::BadTopology, "at most");
  refused("{name: s0, kind: switch}\n",
          "{name: s0, kind: switch}\n  - {$name: lone, kind: switch}\n", ErrorCode::BadTopology,
          "2 parts that no link joins: 's0' and 1 more; 'lone'");
  expect_refused(std::string(kPlain) +
                     "  - {$name: s0--s1, a: s0, b: s1, kind: fabric, capacity: "
                     "1GB/s, latency: 1us}\n",
                 ErrorCode::Duplicate, "two links are called 's0--s1'");
  const std::string domains = std::string(kPlain) + "domains:\n  - {name: r, level: rack}\n";
  expect_refused(domains + "  - {name: p, level: rack, parent: $q}\n", ErrorCode::UnknownName,
                 "'q'");
  expect_refused(domains + "  - {$name: p, level: pod, parent: r}\n", ErrorCode::BadTopology,
                 "higher level");
  expect_refused(domains + "  - {name: p, level: $row}\n", ErrorCode::BadValue, "not known");
  const auto feed = [&](const std::string& list) {
    return domains + "fault_domains:\n  - {name: f, members: " + list + "}\n";
  };
  expect_refused(feed("[s0, $x9]"), ErrorCode::UnknownName, "no node or domain 'x9'");
  expect_refused(feed("[s0, $s0]"), ErrorCode::Duplicate, "already");
  expect_refused(with(feed("[r]"), "{name: f", "{$name: f"), ErrorCode::BadTopology, "is empty");
  expect_refused(with(feed("[$r]"), "nodes:\n", "nodes:\n  - {name: r, kind: switch}\n"),
                 ErrorCode::BadValue, "both a node and a domain");
}

TEST(TopologyReader, RefusesOverridesThatAreWrongOrIdle) {
  const auto refused = [](const std::string& rest, ErrorCode code, const std::string& part) {
    expect_refused(std::string(kPlain) + "overrides:\n  - {" + rest + "}\n", code, part);
  };
  refused("link: $s0-s1, up: false", ErrorCode::UnknownName, "did you mean 's0--s1'");
  refused("node: $s9, up: false", ErrorCode::UnknownName, "no node 's9'");
  refused("domain: $s0, up: false", ErrorCode::UnknownName, "no domain 's0'");
  refused("$up: false", ErrorCode::BadValue, "names one thing");
  refused("$node: s0, link: s0--s1, up: false", ErrorCode::BadValue, "names one thing");
  refused("$link: s0--s1", ErrorCode::NoEffect, "changes nothing");
  refused("$node: s0", ErrorCode::NoEffect, "changes nothing");
  refused("link: s0--s1, up: $true", ErrorCode::NoEffect, "the value already");
  refused("link: s0--s1, capacity: $8Gbps", ErrorCode::NoEffect, "the value already");
  refused("link: s0--s1, capacity: $0GB/s", ErrorCode::BadValue, "zero");
  refused("link: s0--s1, latency: $1us", ErrorCode::NoEffect, "the value already");
  refused("link: s0--s1, $digest_rate: 1GB/s", ErrorCode::UnknownKey, "unknown key");
  refused("node: s0, $memory: 1GB", ErrorCode::NoEffect, "holds no weights");
  refused("node: s0, up: false}\n  - {node: $s0, up: true", ErrorCode::Duplicate,
          "overridden in line 9 already");
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
