// Routes over generated fabrics: how many there are, that every number names a shortest one, that
// all of them together use parallel links equally, and that planes, racks and pods are respected.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/io/topology_reader.hpp"
#include "core/topology/router.hpp"

namespace holdfast {
namespace {

// Two GPUs and two NICs on one socket.
constexpr const char* kHosts = R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 200Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
)";

Topology parsed(const std::string& cluster) {
  return parse_topology(kHosts + ("cluster:\n" + cluster), "t.yaml");
}

Topology shipped(const std::string& name) {
  return read_topology(std::string(HOLDFAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
}

// Checks all routes between two NICs of the given names' GPUs number 0.
struct Routes {
  Routes(const Topology& topology, const std::string& from, std::size_t from_nic,
         const std::string& to, std::size_t to_nic)
      : t(topology), router(topology) {
    const NodeId source = t.find_node(from + ".gpu0");
    const NodeId destination = t.find_node(to + ".gpu0");
    const NodeId out = t.find_node(from + ".nic" + std::to_string(from_nic));
    const NodeId in = t.find_node(to + ".nic" + std::to_string(to_nic));
    choices = router.choices(out, in);
    std::set<Route> different;
    for (std::uint32_t stream = 0; stream < choices; ++stream) {
      const Route route = router.route(source, destination, {out, in, stream}).value();
      NodeId at = source;
      std::size_t fabric = 0;
      for (const ChannelId channel : route) {
        EXPECT_EQ(t.tail(channel), at);
        at = t.head(channel);
        if (t.link(channel.link()).kind != LinkKind::Fabric &&
            t.link(channel.link()).kind != LinkKind::Wan) {
          continue;
        }
        ++fabric;
        ++used[channel];
      }
      EXPECT_EQ(at, destination);
      hops.insert(fabric);
      EXPECT_TRUE(different.insert(route).second) << "stream " << stream;
    }
  }

  // Every channel between nodes of such names carries equally many routes; how many channels.
  std::size_t evenly_used(const std::string& tail, const std::string& head) const {
    std::set<std::size_t> counts;
    std::size_t channels = 0;
    for (const auto& [channel, count] : used) {
      if (t.node(t.tail(channel)).name.find(tail) == std::string::npos) continue;
      if (t.node(t.head(channel)).name.find(head) == std::string::npos) continue;
      counts.insert(count);
      ++channels;
    }
    EXPECT_LE(counts.size(), 1U) << tail << " to " << head;
    return channels;
  }

  const Topology& t;
  Router router;
  std::uint32_t choices = 0;
  std::set<std::size_t> hops;  // over the fabric
  std::map<ChannelId, std::size_t> used;
};

// 2 pods of 2 racks of 2 hosts, two leaves a rack, 2 spines a pod, planes of 2 cores.
TEST(GeneratedRoutes, FatTree) {
  const Topology t = parsed(R"(  hosts: {template: small, count: 8}
  fat_tree: {hosts_per_rack: 2, leaves_per_rack: 2, racks_per_pod: 2, spines_per_pod: 2, cores: 4,
    latency: 1us}
)");
  const Routes same_leaf(t, "h0", 0, "h1", 0);
  EXPECT_EQ(same_leaf.choices, 1U);
  EXPECT_EQ(same_leaf.hops, std::set<std::size_t>{2});
  const Routes same_rack(t, "h0", 0, "h1", 1);
  EXPECT_EQ(same_rack.choices, 2U);
  EXPECT_EQ(same_rack.hops, std::set<std::size_t>{4});
  const Routes same_pod(t, "h0", 0, "h3", 1);
  EXPECT_EQ(same_pod.choices, 2U);
  EXPECT_EQ(same_pod.hops, std::set<std::size_t>{4});
  EXPECT_EQ(same_pod.evenly_used("leaf", "spine"), 2U);
  const Routes far(t, "h0", 0, "h7", 1);
  EXPECT_EQ(far.choices, 4U);
  EXPECT_EQ(far.hops, std::set<std::size_t>{6});
  EXPECT_EQ(far.evenly_used("leaf", "spine"), 2U);
  EXPECT_EQ(far.evenly_used("spine", "core"), 4U);
  EXPECT_EQ(far.evenly_used("core", "spine"), 4U);
  EXPECT_EQ(far.evenly_used("spine", "leaf"), 2U);
}

TEST(GeneratedRoutes, OnePodNeedsNoCores) {
  const Topology t = parsed(R"(  hosts: {template: small, count: 4}
  fat_tree: {hosts_per_rack: 2, spines_per_pod: 4, oversubscription: 2:1, latency: 1us}
)");
  const Routes routes(t, "h0", 0, "h3", 1);
  EXPECT_EQ(routes.choices, 4U);
  EXPECT_EQ(routes.hops, std::set<std::size_t>{4});
  // 4 NICs of 25 GB/s a leaf, over 2:1, to 4 spines.
  EXPECT_EQ(t.link(t.find_link("rack1.leaf0--pod0.spine3")).capacity, Rate(12'500'000'000));
}

TEST(GeneratedRoutes, OneRackWithOneLeafIsAStar) {
  const Topology t = parsed(R"(  hosts: {template: small, count: 3}
  fat_tree: {hosts_per_rack: 3, latency: 1us}
)");
  EXPECT_EQ(Routes(t, "h0", 0, "h2", 1).choices, 1U);
  EXPECT_EQ(t.around(t.find_node("rack0.leaf0"), Level::Pod), t.find_domain("pod0"));
}

TEST(GeneratedRoutes, RailsOfThreeLevels) {
  const Topology t = parsed(R"(  hosts: {template: small, count: 6}
  rail_optimised: {hosts_per_pod: 2, spines_per_pod: 2, cores: 2, latency: 1us,
    oversubscription: {spine: 2:1}}
)");
  EXPECT_EQ(Routes(t, "h0", 1, "h1", 1).choices, 1U);
  const Routes other_rail(t, "h0", 0, "h1", 1);
  EXPECT_EQ(other_rail.choices, 2U);
  EXPECT_EQ(other_rail.hops, std::set<std::size_t>{4});
  const Routes far(t, "h0", 0, "h5", 0);
  EXPECT_EQ(far.choices, 2U);
  EXPECT_EQ(far.hops, std::set<std::size_t>{6});
  EXPECT_EQ(t.link(t.find_link("pod2.spine1--core1")).capacity, Rate(25'000'000'000));
  EXPECT_FALSE(t.find_link("pod2.spine1--core0").valid());
  EXPECT_FALSE(t.around(t.find_node("core0"), Level::Pod).valid());
}

TEST(GeneratedRoutes, ShippedFabrics) {
  const Topology large = shipped("clos-16384-gpus");
  const Routes far(large, "h0", 0, "h2047", 7);
  EXPECT_EQ(far.choices, 256U);
  EXPECT_EQ(far.hops, std::set<std::size_t>{6});
  EXPECT_EQ(far.evenly_used("spine", "core"), 256U);
  EXPECT_EQ(Routes(large, "h0", 0, "h63", 7).choices, 16U);

  const Topology llama = shipped("llama3-2-pods");
  const Routes between(llama, "h383", 3, "h384", 3);
  EXPECT_EQ(between.choices, 16U);
  EXPECT_EQ(between.hops, std::set<std::size_t>{6});

  const Topology degraded = shipped("degraded-rail");
  EXPECT_EQ(Routes(degraded, "h0", 1, "h31", 1).choices, 8U);
  EXPECT_EQ(Routes(degraded, "h0", 2, "h31", 2).choices, 7U);  // one uplink of pod1.leaf2 is down
}

TEST(GeneratedRoutes, UnequalDatacenters) {
  const Topology t = shipped("three-datacenters");
  // 8 spines, each on 4 gateways, each of which has one link to one of dc1's two gateways.
  const Routes first(t, "dc0.h0", 0, "dc1.h15", 7);
  EXPECT_EQ(first.choices, 32U);
  EXPECT_EQ(first.evenly_used("dc0.gw", "dc1.gw"), 4U);
  EXPECT_EQ(Routes(t, "dc1.h15", 7, "dc0.h0", 0).choices, 32U);
  EXPECT_EQ(Routes(t, "dc0.h31", 0, "dc2.h7", 0).choices, 32U);
  const Routes last(t, "dc1.h0", 0, "dc2.h0", 0);
  EXPECT_EQ(last.choices, 2U);
  EXPECT_EQ(last.evenly_used("dc1.gw", "dc2.gw"), 2U);
  EXPECT_EQ(last.hops, std::set<std::size_t>{5});
}

// Two GPUs on each NIC: both are given the NIC of their PCIe switch.
TEST(GeneratedRoutes, SharedNics) {
  const Topology t = shipped("cloud-4-nics");
  const Router router(t);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const NodeId node = t.find_node("h9.gpu" + std::to_string(gpu));
    ASSERT_EQ(router.nics(node).size(), 4U);
    EXPECT_EQ(router.nics(node).front(), t.find_node("h9.nic" + std::to_string(gpu / 2)));
  }
}

TEST(GeneratedRoutes, EightGpusOnTwoNics) {
  const Topology t = parse_topology(R"(format: 1
name: t
hosts:
  two-nics:
    gpus: {count: 8, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie:
      rate: 55GB/s
      latency: 250ns
      sockets: 2
      socket_link: {rate: 100GB/s, latency: 200ns}
      switches: 2
cluster:
  hosts: {template: two-nics, count: 4}
  fat_tree: {hosts_per_rack: 2, leaves_per_rack: 2, spines_per_pod: 2, latency: 1us}
)",
                                    "t.yaml");
  const Router router(t);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const NodeId node = t.find_node("h3.gpu" + std::to_string(gpu));
    EXPECT_EQ(router.nics(node).front(), t.find_node("h3.nic" + std::to_string(gpu / 4)));
  }
  EXPECT_TRUE(t.find_link("h3.nic1--rack1.leaf1").valid());
  EXPECT_EQ(Routes(t, "h0", 0, "h3", 1).choices, 2U);
}

}  // namespace
}  // namespace holdfast
