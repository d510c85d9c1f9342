// What must hold for the bound of any demand on any cluster. Every failure prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/plan/bound.hpp"
#include "core/plan/bound_demand.hpp"
#include "core/plan/bound_graph.hpp"
#include "core/plan/bound_ratio.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using namespace testing_support;

constexpr BoundMode kModes[] = {BoundMode::Exact, BoundMode::Structured, BoundMode::Auto};

struct Case {
  Topology topology;
  Demand demand;
};

ClusterShape small_shape(std::mt19937_64& random) {
  ClusterShape shape = random_shape(random);
  shape.racks = std::min(shape.racks, 2U);
  shape.hosts = std::min(shape.hosts, 3U);
  shape.gpus = std::min(shape.gpus, 4U);
  return shape;
}

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Topology topology = make_cluster(small_shape(random), seed % 3);
  if (seed % 2 == 1) topology = roughened(topology, random);
  Demand demand = random_demand(topology, random);
  if (seed % 4 >= 2) demand = with_memories(std::move(demand), topology, random);
  return {std::move(topology), std::move(demand)};
}

// 1. No plan beats it: on the cut's channels, any valid plan carries at least the cut's bytes.
TEST(BoundProperty, NoPlanCarriesLess) {
  std::size_t plans = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    const Router router(c.topology);
    RouteBook book(router);
    std::mt19937_64 random(seed);
    for (const BoundMode mode : kModes) {
      const Cut cut = lower_bound(c.topology, c.demand, mode).cut;
      for (int repeat = 0; repeat < 4; ++repeat) {
        const RandomLoad load = random_load(book, c.demand, random);
        if (!load.possible) continue;
        ++plans;
        EXPECT_NE(cut.time, Time::never());
        std::uint64_t crossed = 0;
        for (const ChannelId channel : cut.channels) crossed += load.carried[channel.index()];
        if (cut.kind != CutKind::Digest) {
          EXPECT_GE(crossed, cut.bytes.count());
        }
      }
    }
  }
  EXPECT_GE(plans, 400U);
}

// 2. One holder, one receiver, one block: the time over the best route is known exactly.
TEST(BoundProperty, OneBlockOverOneRouteIsNotBeaten) {
  std::size_t attained = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(small_shape(random));
    const Router router(topology);
    RouteBook book(router);
    std::vector<NodeId> endpoints;
    for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
      if (is_endpoint(topology.nodes()[i].kind)) endpoints.emplace_back(i);
    }
    std::shuffle(endpoints.begin(), endpoints.end(), random);
    DemandBuilder builder("one", {0, 1}, Bytes(1 << 20), {Bytes(1 << 20)});
    builder.holds(builder.add_worker({endpoints[0], 0, Bytes(), true}), {BlockId(0U), 1});
    builder.wants(builder.add_worker({endpoints[1], 1, Bytes(), true}), {BlockId(0U), 1});
    const Demand demand = std::move(builder).build();
    Time best = Time::never();
    const Time digest = transfer_time(Bytes(1 << 20), topology.node(endpoints[1]).digest_rate);
    for (const Route& route : book.routes(endpoints[0], endpoints[1])) {
      Rate rate = topology.link(route[0].link()).capacity;
      for (const ChannelId channel : route) {
        rate = std::min(rate, topology.link(channel.link()).capacity);
      }
      best =
          std::min(best, router.latency(route) * 2 + digest + transfer_time(Bytes(1 << 20), rate));
    }
    for (const BoundMode mode : kModes) {
      const Bound bound = lower_bound(topology, demand, mode);
      EXPECT_LE(bound.time(), best);
      EXPECT_EQ(bound.by_group[1], bound.time());
      attained += bound.time() + picoseconds(1) >= best ? 1U : 0U;
    }
  }
  EXPECT_GE(attained, 100U) << "the bound should often be met";
}

// 3. Every certificate adds up, by the audit that shares no code with the search.
TEST(BoundProperty, CertificatesAddUp) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    for (const BoundMode mode : kModes) {
      const Bound bound = lower_bound(c.topology, c.demand, mode);
      EXPECT_EQ(refute(bound.cut, c.topology, c.demand).value_or(""), "");
      EXPECT_EQ(*std::max_element(bound.by_group.begin(), bound.by_group.end()) <= bound.time(),
                true);
    }
  }
}

// 4. Structured merges and never finds more than the exact flow; on clusters of like hosts with
// whole shards it finds the same.
TEST(BoundProperty, StructuredIsExactOnStructuredClusters) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ClusterShape shape = small_shape(random);
    if (shape.datacenters * shape.racks * shape.hosts < 2) shape.hosts = 2;
    // Uplinks of a rack wide enough for what one host takes in: the case a host's own cut decides.
    shape.uplink_rate = Rate(800'000'000'000);
    const Topology topology = make_cluster(shape);
    DemandShape what;
    what.sharded = random() % 2 == 0;
    what.replicated_block = random() % 2 == 0;
    what.blocks = 8;
    const Demand demand = make_demand(topology, what);
    const Bound exact = lower_bound(topology, demand, BoundMode::Exact);
    const Bound structured = lower_bound(topology, demand, BoundMode::Structured);
    EXPECT_EQ(exact.time(), structured.time())
        << exact.cut.sink << ' ' << exact.cut.bytes.count() << " / "
        << exact.cut.capacity.bytes_per_second() << " against " << structured.cut.sink << ' '
        << structured.cut.bytes.count() << " / " << structured.cut.capacity.bytes_per_second();
    EXPECT_EQ(exact.by_group, structured.by_group);
  }
}

TEST(BoundProperty, StructuredNeverFindsMore) {
  std::size_t equal = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    const Bound exact = lower_bound(c.topology, c.demand, BoundMode::Exact);
    const Bound structured = lower_bound(c.topology, c.demand, BoundMode::Structured);
    // The largest ratio is exact; with latencies a smaller ratio may win, met by one search alone.
    const auto crossing = [](const Cut& cut) {
      return bound::crossing_time({cut.bytes.count(), cut.capacity.bytes_per_second()});
    };
    if (structured.time() > exact.time()) {
      EXPECT_LE(crossing(structured.cut), crossing(exact.cut));
    }
    equal += structured.time() >= exact.time() ? 1U : 0U;
  }
  RecordProperty("equal_of_400", static_cast<int>(equal));
  EXPECT_GE(equal, 380U) << "merging should seldom cost anything";
}

// 5. The order of nodes and links does not matter.
TEST(BoundProperty, OrderDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const ClusterShape shape = small_shape(random);
    const Topology topology = make_cluster(shape);
    const Demand demand = random_demand(topology, random);
    for (const std::uint64_t shuffle : {11U, 12U, 13U}) {
      const Topology other = make_cluster(shape, shuffle);
      for (const BoundMode mode : kModes) {
        const Bound here = lower_bound(topology, demand, mode);
        const Bound there = lower_bound(other, moved(demand, topology, other), mode);
        EXPECT_EQ(here.time(), there.time());
        EXPECT_EQ(here.by_group, there.by_group);
      }
    }
  }
}

// 6. Twice the capacity everywhere, digests included, halves what is not latency.
TEST(BoundProperty, TwiceTheCapacityHalvesTheRest) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Topology base = make_cluster(small_shape(random));
    base = changed(
        base, [](Node&) {}, [](Link& link) { link.latency = Time(); });
    Demand demand = random_demand(base, random);
    demand.verify = false;
    const Topology twice = changed(
        base, [](Node&) {}, [](Link& link) { link.capacity = link.capacity * 2; });
    for (const BoundMode mode : kModes) {
      const Bound slow = lower_bound(base, demand, mode);
      const Bound fast = lower_bound(twice, demand, mode);
      EXPECT_EQ(slow.cut.latency, Time());
      EXPECT_NEAR(static_cast<double>(slow.time().picoseconds()) / 2,
                  static_cast<double>(fast.time().picoseconds()), 1.0);
    }
  }
}

// 7. Whatever the router allows is a way through the bound's graph.
TEST(BoundProperty, EveryRouteIsAWay) {
  std::size_t routes = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Topology topology = make_cluster(small_shape(random));
    if (seed % 2 == 1) topology = roughened(topology, random);
    const Router router(topology);
    RouteBook book(router);
    const bound::RoutingGraph graph(topology, std::vector<bool>(topology.nodes().size()));
    std::vector<NodeId> endpoints;
    for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
      if (is_endpoint(topology.nodes()[i].kind)) endpoints.emplace_back(i);
    }
    for (const NodeId from : endpoints) {
      for (const NodeId to : endpoints) {
        if (from == to) continue;
        for (const Route& route : book.routes(from, to)) {
          ++routes;
          std::vector<std::uint32_t> at{graph.departure(from)};
          for (const ChannelId channel : route) {
            std::vector<std::uint32_t> next;
            for (std::size_t i = 0; i < at.size(); ++i) {
              for (const bound::Arc& arc : graph.arcs_from(at[i])) {
                if (arc.channel == bound::kNone) at.push_back(arc.head);
                if (arc.channel == channel.value()) next.push_back(arc.head);
              }
            }
            at = next;
          }
          for (std::size_t i = 0; i < at.size(); ++i) {
            for (const bound::Arc& arc : graph.arcs_from(at[i])) {
              if (arc.channel == bound::kNone) at.push_back(arc.head);
            }
          }
          EXPECT_TRUE(std::find(at.begin(), at.end(), graph.arrival(to)) != at.end())
              << topology.node(from).name << " to " << topology.node(to).name;
        }
      }
    }
  }
  EXPECT_GE(routes, 1'000U);
}

// 8. What hardware does not do is no way: fabric traffic through a host, a GPU through another's
// PCIe where NVLink joins them.
TEST(BoundProperty, HostsAreNoTransit) {
  const Topology topology = changed(
      make_cluster({.hosts = 2, .gpus = 4, .nics = 4}),
      [](Node& node) { node.up = node.name != "d0.r0.leaf"; }, [](Link&) {});
  const bound::RoutingGraph graph(topology, std::vector<bool>(topology.nodes().size()));
  const NodeId gpu = topology.find_node("d0.r0.h0.gpu0");
  std::vector<std::uint32_t> queue{graph.departure(gpu)};
  std::vector<std::string> over_pcie;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const bound::Arc& arc : graph.arcs_from(queue[i])) {
      if (std::find(queue.begin(), queue.end(), arc.head) != queue.end()) continue;
      const bool nvlink = arc.channel != bound::kNone &&
                          topology.link(ChannelId(arc.channel).link()).kind == LinkKind::NvLink;
      if (!nvlink) queue.push_back(arc.head);
    }
  }
  for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
    const NodeId node(n);
    if (!is_endpoint(topology.node(node).kind)) continue;
    if (std::find(queue.begin(), queue.end(), graph.arrival(node)) != queue.end()) {
      over_pcie.push_back(topology.node(node).name);
    }
  }
  EXPECT_EQ(over_pcie, std::vector<std::string>{"d0.r0.h0.mem"});
}

}  // namespace
}  // namespace holdfast
