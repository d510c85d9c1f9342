// What the reader of topology files refuses, with the place that its message names.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/io/topology_reader.hpp"
#include "tests/topology/topology_texts.hpp"

namespace holdfast {
namespace {

using namespace topology_texts;

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

}  // namespace
}  // namespace holdfast
