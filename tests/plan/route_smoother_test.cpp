// The smoother on fabrics where a perfect spread is known to exist, and on those where none does.
#include "core/plan/route_smoother.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "core/plan/path_chooser.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/clos.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::changed;
using testing_support::ClosShape;
using testing_support::make_clos;
using testing_support::make_cluster;
using testing_support::nics_of;
using testing_support::one_block;

constexpr Bytes kMiB(1 << 20);

// One topology with what the smoother needs of it.
struct Scene {
  explicit Scene(Topology made)
      : topology(std::move(made)),
        router(topology),
        demand(one_block(topology)),
        space(router, demand),
        nics(nics_of(topology)) {}
  Topology topology;
  Router router;
  Demand demand;
  PlanSpace space;
  std::vector<NodeId> nics;
};

struct Pair {
  NodeId from;
  NodeId to;
  Bytes bytes;
};

// `degree` random permutations: each NIC sends and receives at most so many edges of one size, so
// that each leaf has at most hosts x degree edges each way and they can be coloured with as many
// colours (Koenig), which the spines share.
std::vector<Pair> permutations(const std::vector<NodeId>& nics, std::uint32_t degree,
                               std::mt19937_64& random) {
  std::vector<Pair> pairs;
  std::vector<NodeId> to = nics;
  for (std::uint32_t k = 0; k < degree; ++k) {
    std::shuffle(to.begin(), to.end(), random);
    for (std::size_t i = 0; i < nics.size(); ++i) {
      if (nics[i] != to[i]) pairs.push_back({nics[i], to[i], kMiB});
    }
  }
  return pairs;
}

std::vector<Pair> any_pairs(const std::vector<NodeId>& nics, std::size_t count,
                            std::mt19937_64& random) {
  std::vector<Pair> pairs;
  while (pairs.size() < count) {
    const NodeId from = nics[random() % nics.size()];
    const NodeId to = nics[random() % nics.size()];
    if (from != to) pairs.push_back({from, to, Bytes(1 + random() % (4 << 20))});
  }
  return pairs;
}

std::vector<RoutedEdge> chosen(const Scene& scene, PathChooser& paths,
                               const std::vector<Pair>& pairs) {
  std::vector<RoutedEdge> edges;
  for (const Pair& pair : pairs) {
    const auto path = paths.fabric(pair.from, pair.to, pair.bytes);
    if (!path) continue;
    const Route route = scene.router.between(pair.from, pair.to, path->stream);
    paths.load().add(route, pair.bytes);
    edges.push_back({*path, pair.bytes});
  }
  return edges;
}

ChannelLoad load_of(const Scene& scene, const std::vector<RoutedEdge>& edges) {
  ChannelLoad load(scene.topology);
  for (const RoutedEdge& edge : edges) {
    const Path& path = edge.path;
    const Route route = scene.router.between(path.source_port, path.destination_port, path.stream);
    EXPECT_FALSE(route.empty());
    load.add(route, edge.bytes);
  }
  return load;
}

bool between_switches(const Topology& topology, ChannelId channel, LinkKind kind) {
  const Link& link = topology.link(channel.link());
  return link.kind == kind && topology.usable(channel.link()) &&
         !is_inside_host(topology.node(link.a).kind) && !is_inside_host(topology.node(link.b).kind);
}

double busiest(const Scene& scene, const ChannelLoad& load) {
  double most = 0;
  for (std::uint32_t c = 0; c < scene.topology.channels(); ++c) {
    if (between_switches(scene.topology, ChannelId(c), LinkKind::Fabric)) {
      most = std::max(most, load.time(ChannelId(c)));
    }
  }
  return most;
}

// Channels between switches that are busier than the busiest NIC and than those side by side with
// them on average.
std::vector<std::string> too_busy(const Scene& scene, const ChannelLoad& load) {
  const Topology& topology = scene.topology;
  double nic = 0;
  using Bundle = std::tuple<DomainId, NodeKind, DomainId, NodeKind>;
  std::map<Bundle, std::pair<double, double>> bundles;  // seconds, links
  const auto bundle = [&](ChannelId channel) {
    const Node& tail = topology.node(topology.tail(channel));
    const Node& head = topology.node(topology.head(channel));
    return Bundle{tail.domain, tail.kind, head.domain, head.kind};
  };
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    const ChannelId channel(c);
    if (between_switches(topology, channel, LinkKind::Fabric)) {
      auto& [time, links] = bundles[bundle(channel)];
      time += load.time(channel);
      links += 1;
    } else {
      nic = std::max(nic, load.time(channel));
    }
  }
  std::vector<std::string> names;
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    const ChannelId channel(c);
    if (!between_switches(topology, channel, LinkKind::Fabric)) continue;
    const auto& [time, links] = bundles[bundle(channel)];
    if (load.time(channel) > 1.0041 * std::max(nic, time / links)) {
      names.push_back(topology.channel_name(channel));
    }
  }
  return names;
}

// What smooth() promises of every set of edges, wherever they come from.
void expect_consistent(const Scene& scene, const std::vector<RoutedEdge>& before,
                       const std::vector<RoutedEdge>& after, const ChannelLoad& kept) {
  ASSERT_EQ(before.size(), after.size());
  std::set<Path> paths;
  for (std::size_t e = 0; e < after.size(); ++e) {
    EXPECT_EQ(after[e].path.source_port, before[e].path.source_port);
    EXPECT_EQ(after[e].path.destination_port, before[e].path.destination_port);
    EXPECT_EQ(after[e].bytes, before[e].bytes);
    EXPECT_TRUE(paths.insert(after[e].path).second) << "edge " << e << " shares its stream";
  }
  const ChannelLoad right = load_of(scene, after);
  for (std::uint32_t c = 0; c < scene.topology.channels(); ++c) {
    const ChannelId channel(c);
    EXPECT_NEAR(kept.time(channel), right.time(channel), 1e-9 * (1e-3 + right.time(channel)))
        << scene.topology.channel_name(channel);
  }
}

// Smooths and checks what is always promised; twice, since it is deterministic.
std::vector<RoutedEdge> smoothed(const Scene& scene, const std::vector<RoutedEdge>& edges) {
  std::vector<RoutedEdge> after = edges;
  ChannelLoad load = load_of(scene, edges);
  RouteSmoother(scene.space, load).smooth(after);
  expect_consistent(scene, edges, after, load);
  std::vector<RoutedEdge> again = edges;
  ChannelLoad other = load_of(scene, edges);
  RouteSmoother(scene.space, other).smooth(again);
  for (std::size_t e = 0; e < after.size(); ++e) EXPECT_EQ(after[e].path, again[e].path);
  return after;
}

ClosShape random_clos(std::mt19937_64& random, bool three_levels) {
  ClosShape shape;
  shape.racks = 2 + static_cast<std::uint32_t>(random() % 5);
  shape.hosts = 2 + static_cast<std::uint32_t>(random() % 5);
  shape.spines = shape.hosts;  // as much up as down
  if (!three_levels) return shape;
  shape.pods = 2 + static_cast<std::uint32_t>(random() % 2);
  shape.racks = 2 + static_cast<std::uint32_t>(random() % 3);
  shape.hosts = 2 + static_cast<std::uint32_t>(random() % 3);
  shape.spines = shape.hosts;
  shape.cores = shape.racks;
  return shape;
}

TEST(RouteSmoother, FindsThePerfectSpreadOfAClos) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Scene scene(make_clos(random_clos(random, seed % 3 == 0)));
    const auto degree = 1 + static_cast<std::uint32_t>(random() % 3);
    PathChooser paths(scene.space);
    const auto edges = chosen(scene, paths, permutations(scene.nics, degree, random));
    const auto after = smoothed(scene, edges);
    EXPECT_EQ(too_busy(scene, load_of(scene, after)), std::vector<std::string>{});
  }
}

// All edges over the first of all routes: the worst that it may be given.
TEST(RouteSmoother, SpreadsWhatLiesOnOneSpine) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Scene scene(make_clos(random_clos(random, false)));
    std::vector<RoutedEdge> edges;
    std::map<std::pair<NodeId, NodeId>, std::uint32_t> again;
    for (const Pair& pair : permutations(scene.nics, 2, random)) {
      const std::uint32_t choices = scene.router.choices(pair.from, pair.to);
      const std::uint32_t stream = choices * again[{pair.from, pair.to}]++;
      edges.push_back({{pair.from, pair.to, stream}, pair.bytes});
    }
    const auto after = smoothed(scene, edges);
    EXPECT_EQ(too_busy(scene, load_of(scene, after)), std::vector<std::string>{});
  }
}

// Where spines differ in how many cores they still reach, a stream's number decodes to another
// number of choices on each way.
TEST(RouteSmoother, StaysConsistentWhereLinksAreDownOrSlow) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology whole = make_clos(random_clos(random, seed % 2 == 0));
    const Scene scene(changed(
        whole, [](Node&) {},
        [&](Link& link) {
          if (is_inside_host(whole.node(link.a).kind)) return;
          link.up = random() % 6 != 0;
          link.capacity = link.capacity * (20 + random() % 81) / 100;
        }));
    PathChooser paths(scene.space);
    const auto pairs = any_pairs(scene.nics, scene.nics.size() * 3, random);
    const auto edges = chosen(scene, paths, pairs);
    expect_consistent(scene, edges, edges, paths.load());
    const auto after = smoothed(scene, edges);
    EXPECT_LE(busiest(scene, load_of(scene, after)), busiest(scene, load_of(scene, edges)) * 1.02);
  }
}

// 4:1: no spread is good enough for a NIC's time. It ends, and leaves nothing worse.
TEST(RouteSmoother, EndsWhereALevelIsOversubscribed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ClosShape shape = random_clos(random, seed % 2 == 0);
    shape.uplink_rate = shape.nic_rate / 4;
    shape.core_rate = shape.nic_rate / 16;
    const Scene scene(make_clos(shape));
    PathChooser paths(scene.space);
    const auto edges = chosen(scene, paths, any_pairs(scene.nics, 300, random));
    const auto after = smoothed(scene, edges);
    EXPECT_LE(busiest(scene, load_of(scene, after)), busiest(scene, load_of(scene, edges)) * 1.001);
  }
}

// Two lines side by side, fast or slow: each carries what it did.
TEST(RouteSmoother, LeavesLinesOfAWanAlone) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology one = make_cluster({.datacenters = 2,
                                       .racks = 3,
                                       .hosts = 4,
                                       .gpus = 1,
                                       .nics = 1,
                                       .spines = 4,
                                       .uplink_rate = Rate(50'000'000'000),
                                       .wan_rate = Rate((1 + random() % 400) * 1'000'000'000)});
    TopologyBuilder builder(one);
    Link line = one.link(one.find_link("d0.gateway-d1.gateway"));
    line.name = "second line";
    line.capacity = line.capacity * (1 + random() % 10) / 10;
    builder.add_link(line);
    const Scene scene(builder.build());
    PathChooser paths(scene.space);
    const auto edges = chosen(scene, paths, any_pairs(scene.nics, 200, random));
    const ChannelLoad before = load_of(scene, edges);
    const ChannelLoad after = load_of(scene, smoothed(scene, edges));
    for (std::uint32_t c = 0; c < scene.topology.channels(); ++c) {
      if (scene.topology.link(ChannelId(c).link()).kind != LinkKind::Wan) continue;
      EXPECT_NEAR(after.time(ChannelId(c)), before.time(ChannelId(c)), 1e-12);
    }
  }
}

}  // namespace
}  // namespace holdfast
