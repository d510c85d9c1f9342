// The topologies that ship: what they contain, and their summaries word for word.
// HOLDFAST_UPDATE_GOLDEN=1 rewrites the expected texts; look at the difference before committing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/topology_reader.hpp"
#include "core/io/topology_summary.hpp"
#include "core/topology/router.hpp"

namespace holdfast {
namespace {

Topology shipped(const std::string& name) {
  return read_topology(std::string(HOLDFAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
}

std::map<NodeKind, int> node_counts(const Topology& t) {
  std::map<NodeKind, int> counts;
  for (const Node& node : t.nodes()) ++counts[node.kind];
  return counts;
}

int count_links(const Topology& t, LinkKind kind, Rate capacity) {
  int count = 0;
  for (const Link& link : t.links()) count += link.kind == kind && link.capacity == capacity;
  return count;
}

class ShippedTopology : public testing::TestWithParam<std::string> {};

TEST_P(ShippedTopology, SummaryIsAsRecorded) {
  const std::string path =
      std::string(HOLDFAST_SOURCE_DIR) + "/tests/topology/golden/" + GetParam() + ".txt";
  const std::string text = render(summarise(shipped(GetParam())));
  if (std::getenv("HOLDFAST_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream recorded;
  recorded << file.rdbuf();
  EXPECT_EQ(text, recorded.str());
}

TEST_P(ShippedTopology, EveryGpuReachesEveryOther) {
  const Topology t = shipped(GetParam());
  const Router router(t);
  std::vector<NodeId> gpus;
  for (std::size_t i = 0; i < t.nodes().size(); ++i) {
    if (t.nodes()[i].kind == NodeKind::Gpu) gpus.push_back(NodeId(i));
  }
  // A prime step meets all distances without all pairs.
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const NodeId from = gpus[i];
    const NodeId to = gpus[(i + 37) % gpus.size()];
    if (t.around(from, Level::Host) == t.around(to, Level::Host)) {
      EXPECT_TRUE(router.nvlinked(from, to));
      continue;
    }
    // The nearest NIC is the GPU's own: it shares a PCIe switch.
    const NodeId out = router.nics(from).front();
    const Route route = router.route(from, to, {out, router.nics(to).front()}).value();
    EXPECT_EQ(t.head(route[1]), out);
    EXPECT_GE(route.size(), 6U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedTopology,
                         testing::Values("clos-16384-gpus", "cloud-4-nics", "degraded-rail",
                                         "h100-1-host", "h100-128-hosts", "h100-16-hosts",
                                         "h100-32-hosts", "h100-racks-of-16", "llama3-2-pods",
                                         "mixed-h100-a100", "oversubscribed-16-1",
                                         "rail-128-hosts-200g", "three-datacenters",
                                         "two-datacenters"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

constexpr Rate kNvLink(450'000'000'000);
constexpr Rate k400Gbps(50'000'000'000);
constexpr Rate k200Gbps(25'000'000'000);

TEST(ShippedTopologies, OneHost) {
  const Topology t = shipped("h100-1-host");
  auto counts = node_counts(t);
  EXPECT_EQ(counts[NodeKind::Gpu], 8);
  EXPECT_EQ(counts[NodeKind::Nic], 8);
  EXPECT_EQ(counts[NodeKind::NvSwitch], 1);
  EXPECT_EQ(counts[NodeKind::HostMemory], 1);
  EXPECT_EQ(counts[NodeKind::Switch], 0);
  EXPECT_EQ(count_links(t, LinkKind::NvLink, kNvLink), 8);
  EXPECT_EQ(count_links(t, LinkKind::Fabric, k400Gbps), 0);
}

TEST(ShippedTopologies, SixteenHosts) {
  const Topology t = shipped("h100-16-hosts");
  auto counts = node_counts(t);
  EXPECT_EQ(counts[NodeKind::Gpu], 128);
  EXPECT_EQ(counts[NodeKind::Nic], 128);
  EXPECT_EQ(counts[NodeKind::Switch], 1);
  EXPECT_EQ(count_links(t, LinkKind::Fabric, k400Gbps), 128);
  EXPECT_EQ(count_links(t, LinkKind::NvLink, kNvLink), 128);
}

TEST(ShippedTopologies, RailOptimised128Hosts) {
  const Topology t = shipped("rail-128-hosts-200g");
  auto counts = node_counts(t);
  EXPECT_EQ(counts[NodeKind::Gpu], 1024);
  EXPECT_EQ(counts[NodeKind::Nic], 1024);
  EXPECT_EQ(counts[NodeKind::Switch], 32);
  EXPECT_EQ(counts[NodeKind::Spine], 16);
  EXPECT_EQ(count_links(t, LinkKind::Fabric, k200Gbps), 1024);
  EXPECT_EQ(count_links(t, LinkKind::Fabric, k400Gbps), 512);  // 32 leaves x 16 spines
  const Router router(t);
  EXPECT_EQ(router.choices(t.find_node("h0.nic0"), t.find_node("h127.nic0")), 16U);
  EXPECT_EQ(router.choices(t.find_node("h0.nic0"), t.find_node("h31.nic0")), 1U);
}

TEST(ShippedTopologies, TwoDatacenters) {
  const Topology t = shipped("two-datacenters");
  auto counts = node_counts(t);
  EXPECT_EQ(counts[NodeKind::Gpu], 256);
  EXPECT_EQ(counts[NodeKind::Gateway], 2);
  const Link& wan = t.link(t.find_link("dc0.gw0--dc1.gw0"));
  EXPECT_EQ(wan.capacity, Rate(12'500'000'000));
  EXPECT_EQ(wan.latency, milliseconds(15));
  EXPECT_EQ(wan.stream_cap, Rate(1'250'000'000));
  const Router router(t);
  const NodeId a = t.find_node("dc0.h3.gpu5");
  const NodeId b = t.find_node("dc1.h15.gpu0");
  const Route route =
      router.route(a, b, {t.find_node("dc0.h3.nic5"), t.find_node("dc1.h15.nic0")}).value();
  EXPECT_EQ(router.bottleneck(route), Rate(1'250'000'000));
  EXPECT_EQ(router.latency(route), milliseconds(15) + microseconds(4 + 1));
}

// The cluster of Llama 3 (arXiv 2407.21783): what the paper says in words.
TEST(ShippedTopologies, Llama3TwoPods) {
  const Topology t = shipped("llama3-2-pods");
  std::map<Level, int> domains;
  for (const Domain& domain : t.domains()) ++domains[domain.level];
  EXPECT_EQ(domains[Level::Pod], 2);
  EXPECT_EQ(domains[Level::Rack], 2 * 192);
  EXPECT_EQ(node_counts(t)[NodeKind::Gpu], 2 * 3072);
  std::uint64_t into_pod = 0;
  for (const Link& link : t.links()) {
    const bool a = t.around(link.a, Level::Pod) == t.find_domain("pod1");
    const bool b = t.around(link.b, Level::Pod) == t.find_domain("pod1");
    if (a != b) into_pod += link.capacity.bytes_per_second();
  }
  const std::uint64_t nics = 3072 * k400Gbps.bytes_per_second();
  EXPECT_LE(into_pod * 7, nics);
  EXPECT_LT(nics - into_pod * 7, 7U * 16U);  // less than a byte per second of each uplink
}

TEST(ShippedTopologies, Clos16384Gpus) {
  const Topology t = shipped("clos-16384-gpus");
  auto counts = node_counts(t);
  EXPECT_EQ(counts[NodeKind::Gpu], 16'384);
  EXPECT_EQ(counts[NodeKind::Switch], 512);
  EXPECT_EQ(counts[NodeKind::Spine], 512 + 256);
  EXPECT_LT(t.nodes().size() + t.links().size(), 200'000U);
  // Ports of 400 Gb/s of each switch: a 64-port switch each.
  for (std::size_t i = 0; i < t.nodes().size(); ++i) {
    if (is_inside_host(t.nodes()[i].kind)) continue;
    std::uint64_t sum = 0;
    for (const Neighbour& n : t.neighbours(NodeId(i))) {
      sum += t.link(n.link).capacity.bytes_per_second();
    }
    ASSERT_EQ(sum, 64 * k400Gbps.bytes_per_second()) << t.nodes()[i].name;
  }
}

TEST(ShippedTopologies, MixedHosts) {
  const Topology t = shipped("mixed-h100-a100");
  EXPECT_EQ(node_counts(t)[NodeKind::Gpu], 256);
  EXPECT_EQ(t.link(t.find_link("h15.gpu0--h15.nvswitch")).capacity, kNvLink);
  EXPECT_EQ(t.link(t.find_link("h16.gpu0--h16.nvswitch")).capacity, Rate(300'000'000'000));
  EXPECT_EQ(t.link(t.find_link("h15.nic7--pod0.leaf7")).capacity, k400Gbps);
  EXPECT_EQ(t.link(t.find_link("h16.nic7--pod1.leaf7")).capacity, k200Gbps);
  // Uplinks follow the NICs below.
  EXPECT_EQ(t.link(t.find_link("pod0.leaf0--spine0")).capacity, Rate(100'000'000'000));
  EXPECT_EQ(t.link(t.find_link("pod1.leaf0--spine0")).capacity, Rate(50'000'000'000));
}

// Numbers that can be checked by hand: two pods of two hosts, two rails, 2:1, one link slowed down.
TEST(TopologySummary, CountsAndCapacities) {
  const Topology t = parse_topology(R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
cluster:
  hosts: {template: small, count: 4}
  rail_optimised: {hosts_per_pod: 2, spines: 1, oversubscription: 2:1, latency: 1us}
overrides:
  - {link: h3.nic1--pod1.leaf1, capacity: 10GB/s}
  - {link: pod0.leaf0--spine0, up: false}
  - {node: h0.gpu1, up: false}
)",
                                    "t.yaml");
  const TopologySummary summary = summarise(t);
  const nlohmann::json json = to_json(summary);
  EXPECT_EQ(json["name"], "t");
  EXPECT_EQ(json["hash"], to_string(t.hash()));
  EXPECT_EQ(json["nodes"][0],
            (nlohmann::json{
                {"kind", "gpu"}, {"count", 8}, {"down", 1}, {"memory_bytes", 640'000'000'000}}));
  ASSERT_EQ(summary.links.size(), 3U);
  const auto& fabric = summary.links[2];
  EXPECT_EQ(fabric.kind, LinkKind::Fabric);
  EXPECT_EQ(fabric.count, 12U);  // 8 NICs, 4 leaves x 1 spine
  EXPECT_EQ(fabric.down, 1U);
  EXPECT_EQ(fabric.slowest, Rate(10'000'000'000));
  EXPECT_EQ(fabric.slowest_name, "h3.nic1--pod1.leaf1");
  EXPECT_EQ(fabric.at_slowest, 1U);
  EXPECT_EQ(fabric.fastest, k400Gbps);
  ASSERT_EQ(summary.domains.size(), 2U);
  const auto& hosts = summary.domains[0];
  EXPECT_EQ(hosts.level, Level::Host);
  EXPECT_EQ(hosts.count, 4U);
  EXPECT_EQ(hosts.least_in, Rate(60'000'000'000));
  EXPECT_EQ(hosts.least_name, "h3");
  EXPECT_EQ(hosts.greatest_in, Rate(100'000'000'000));
  EXPECT_EQ(hosts.worst_oversubscription, 1.0);
  // A leaf has 2 x 50 GB/s below and 50 GB/s above. pod0 has lost one of its two uplinks: 200 GB/s
  // of NICs on 50 GB/s; pod1 has 160 GB/s of NICs on 100 GB/s.
  const auto& pods = summary.domains[1];
  EXPECT_EQ(pods.level, Level::Pod);
  EXPECT_EQ(pods.least_in, Rate(50'000'000'000));
  EXPECT_EQ(pods.least_name, "pod0");
  EXPECT_EQ(pods.greatest_in, Rate(100'000'000'000));
  EXPECT_EQ(pods.worst_oversubscription, 4.0);
  EXPECT_EQ(pods.worst_name, "pod0");
  EXPECT_EQ(json["domains"][1]["worst"], "pod0");
  EXPECT_EQ(summary.down_nodes, std::vector<std::string>{"h0.gpu1"});
  EXPECT_EQ(summary.down_links, std::vector<std::string>{"pod0.leaf0--spine0"});
  const std::string text = render(summary);
  for (const char* part : {"1 down", "slowest: h3.nic1--pod1.leaf1\n",
                           "50.0 GB/s to 100 GB/s (least: pod0), 1.6:1 to 4:1 (worst: pod0)\n",
                           "links that are down\n  pod0.leaf0--spine0\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace holdfast
