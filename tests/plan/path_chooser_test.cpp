// How paths are chosen, what channels carry by then, and the way that disturbs least.
#include "core/plan/path_chooser.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/plan/way_finder.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/clos.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::changed;
using testing_support::ClosShape;
using testing_support::make_clos;
using testing_support::make_cluster;
using testing_support::make_demand;
using testing_support::nics_of;
using testing_support::one_block;
using testing_support::random_shape;
using testing_support::roughened;

constexpr Bytes kMiB(1 << 20);

struct Scene {
  Scene(Topology made, const Demand& wanted)
      : topology(std::move(made)), router(topology), demand(wanted), space(router, demand) {}
  explicit Scene(const Topology& made) : Scene(made, one_block(made)) {}
  Topology topology;
  Router router;
  Demand demand;
  PlanSpace space;
};

// Chooses and charges.
Path lay(const Scene& scene, PathChooser& paths, NodeId from, NodeId to, Bytes bytes = kMiB) {
  const Path path = *paths.fabric(from, to, bytes);
  paths.load().add(scene.router.between(from, to, path.stream), bytes);
  return path;
}

TEST(ChannelLoad, AddsAndTakesAwayByCapacity) {
  const Topology topology = make_clos({});
  const Router router(topology);
  const auto nics = nics_of(topology);
  ChannelLoad load(topology);
  const Route route = router.between(nics[0], nics[5], 1);
  ASSERT_EQ(route.size(), 4U);
  load.add(route, Bytes(5'000'000'000));
  for (const ChannelId channel : route) EXPECT_DOUBLE_EQ(load.time(channel), 0.5);
  EXPECT_DOUBLE_EQ(load.seconds(route[0], Bytes(20'000'000'000)), 2);
  EXPECT_DOUBLE_EQ(load.time_with(route, Bytes(10'000'000'000)), 1.5);
  // Another route from the same NIC shares its own link alone.
  const Route other = router.between(nics[0], nics[9], 2);
  EXPECT_DOUBLE_EQ(load.time_with(other, Bytes(10'000'000'000)), 1.5);
  EXPECT_DOUBLE_EQ(load.time(other[1]), 0);
  load.remove(route, Bytes(5'000'000'000));
  for (std::uint32_t c = 0; c < topology.channels(); ++c) EXPECT_EQ(load.time(ChannelId(c)), 0);
}

// 16 spines with 16 cores each: of 256 routes it looks at 16. Each of the 256 links between
// spines and cores has room for one of 256 edges.
TEST(PathChooser, SpreadsOverAllWaysOutOfASwitch) {
  const Scene scene(make_clos({.pods = 2, .racks = 1, .hosts = 16, .spines = 16, .cores = 16}));
  const auto nics = nics_of(scene.topology);
  ASSERT_EQ(scene.router.choices(nics[0], nics[16]), 256U);
  PathChooser paths(scene.space);
  for (std::uint32_t k = 0; k < 256; ++k) {
    lay(scene, paths, nics[k % 16], nics[16 + (k + k / 16) % 16]);
  }
  const double one = paths.load().seconds(ChannelId(0U), kMiB) *
                     static_cast<double>(scene.topology.links()[0].capacity.bytes_per_second()) /
                     1e10;  // every link carries 10 GB/s but PCIe
  double least = 1e9;
  double most = 0;
  std::size_t cores_used = 0;
  for (std::size_t i = 0; i < scene.topology.links().size(); ++i) {
    const Link& link = scene.topology.links()[i];
    const std::string& name = link.name;
    const double time = paths.load().time(ChannelId(LinkId(i), false)) / one;
    if (name.starts_with("leaf0-")) {
      least = std::min(least, time);
      most = std::max(most, time);
    }
    if (name.starts_with("pod0.spine") && time > 0.5) ++cores_used;
  }
  EXPECT_GE(least, 14);
  EXPECT_LE(most, 18);
  EXPECT_GE(cores_used, 140U);  // balls thrown blindly into 256 bins leave 94 of them empty
}

// One edge in sixteen is eight times as large: taking turns alone would put all of these on one
// spine. 16 x 8 + 240 x 1 over 16 uplinks: 23 each.
TEST(PathChooser, LargeEdgesInStepWithTheSpinesSpread) {
  const Scene scene(make_clos({.pods = 2, .racks = 1, .hosts = 16, .spines = 16, .cores = 16}));
  const auto nics = nics_of(scene.topology);
  PathChooser paths(scene.space);
  for (std::uint32_t k = 0; k < 256; ++k) {
    const Bytes bytes = kMiB * (k % 16 == 0 ? 8 : 1);
    lay(scene, paths, nics[k / 16], nics[16 + (k + k / 16) % 16], bytes);
  }
  for (std::uint32_t s = 0; s < 16; ++s) {
    const ChannelId up(scene.topology.find_link(fmt::format("leaf0-pod0.spine{}", s)), false);
    EXPECT_NEAR(paths.load().time(up) / paths.load().seconds(up, kMiB), 23, 8) << s;
  }
}

TEST(PathChooser, ASlowLinkGetsItsPart) {
  const Topology even = make_clos({.racks = 2, .hosts = 8, .spines = 8});
  const Scene scene(changed(
      even, [](Node&) {},
      [](Link& link) {
        if (link.name == "leaf0-pod0.spine3") link.capacity = link.capacity / 2;
      }));
  const auto nics = nics_of(scene.topology);
  PathChooser paths(scene.space);
  for (std::uint32_t k = 0; k < 300; ++k) lay(scene, paths, nics[k % 8], nics[8 + k % 8]);
  // 300 edges over 7.5 links' worth: 40 a link, 20 on the slow one.
  for (std::uint32_t s = 0; s < 8; ++s) {
    const LinkId link = scene.topology.find_link(fmt::format("leaf0-pod0.spine{}", s));
    const double edges = paths.load().time(ChannelId(link, false)) /
                         paths.load().seconds(ChannelId(link, false), kMiB);
    EXPECT_NEAR(edges, s == 3 ? 20 : 40, 2) << s;
  }
}

// On every fabric: what least_time says of the next choice is what that route then takes, and two
// edges of one pair never share a stream.
TEST(PathChooser, TakesWhatItPromisesOnAStreamOfItsOwn) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ClosShape shape{.pods = 1 + static_cast<std::uint32_t>(random() % 3),
                    .racks = 2,
                    .hosts = 2,
                    .spines = 2 + static_cast<std::uint32_t>(random() % 3),
                    .cores = 1 + static_cast<std::uint32_t>(random() % 4)};
    const Topology whole = make_clos(shape);
    const Scene scene(changed(
        whole, [](Node&) {},
        [&](Link& link) {
          if (is_inside_host(whole.node(link.a).kind)) return;
          link.up = random() % 5 != 0;
          link.capacity = link.capacity * (30 + random() % 71) / 100;
        }));
    const auto nics = nics_of(scene.topology);
    PathChooser paths(scene.space);
    std::set<Path> seen;
    for (int k = 0; k < 200; ++k) {
      const NodeId from = nics[random() % nics.size()];
      const NodeId to = nics[random() % nics.size()];
      if (from == to) continue;
      const Bytes bytes(1 + random() % (1 << 20));
      const auto promised = paths.least_time(from, to, bytes);
      const auto path = paths.fabric(from, to, bytes);
      ASSERT_EQ(promised.has_value(), path.has_value());
      EXPECT_EQ(path.has_value(), !scene.router.between(from, to, 0).empty());
      if (!path) continue;
      EXPECT_TRUE(seen.insert(*path).second) << "a stream for two edges";
      const Route route = scene.router.between(from, to, path->stream);
      EXPECT_DOUBLE_EQ(paths.load().time_with(route, bytes), *promised);
      paths.load().add(route, bytes);
    }
  }
}

// --- WayFinder -----------------------------------------------------------------------------------

// All pairs and all routes: the least time of the busiest channel, and the nearest pair that stays
// below the goal.
struct Oracle {
  double least = 1e99;
  std::size_t source = 0;  // the first pair below the goal, if any
  std::size_t target = 0;
  bool below = false;
};

Oracle oracle(const Scene& scene, const ChannelLoad& load, const std::vector<WorkerId>& insiders,
              const std::vector<Port>& sources, const std::vector<Port>& targets, double goal,
              Bytes bytes) {
  Oracle best;
  const auto take = [&](WorkerId parent, WorkerId child, const Path& path) {
    const auto route = scene.router.route(scene.space.node(parent), scene.space.node(child), path);
    if (!route) return 1e99;
    const double time = load.time_with(*route, bytes);
    best.least = std::min(best.least, time);
    return time;
  };
  for (const Port& target : targets) {
    for (const WorkerId insider : insiders) {
      const Path path{scene.space.node(insider), scene.space.node(target.worker), 0};
      if (insider != target.worker) take(insider, target.worker, path);
    }
  }
  for (std::size_t s = 0; s < sources.size(); ++s) {
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (sources[s].worker == targets[t].worker || sources[s].nic == targets[t].nic) continue;
      for (std::uint32_t stream = 0; stream < 12; ++stream) {
        const double time =
            take(sources[s].worker, targets[t].worker, {sources[s].nic, targets[t].nic, stream});
        if (best.below || time > goal) continue;
        best.below = true;
        best.source = s;
        best.target = t;
      }
    }
  }
  return best;
}

TEST(WayFinder, FindsTheWayThatDisturbsLeast) {
  std::size_t nearest = 0;
  std::size_t loaded = 0;
  std::size_t inside = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    auto shape = random_shape(random);
    shape.datacenters = 1;
    shape.hosts = 2 + static_cast<std::uint32_t>(random() % 3);
    shape.gpus = 2 + static_cast<std::uint32_t>(random() % 4);
    const Topology made = roughened(make_cluster(shape), random);
    const Scene scene(made, make_demand(made, {.sharded = false, .blocks = 4}));
    const std::size_t n = scene.demand.workers.size();
    const WorkerId child(random() % n);
    std::vector<Port> targets;
    for (const NodeId nic : scene.router.nics(scene.space.node(child))) {
      if (scene.space.leads_out(nic) && targets.size() < 4) targets.push_back({child, nic});
    }
    std::vector<Port> sources;
    std::vector<WorkerId> insiders;
    for (int k = 0; k < 40; ++k) {
      const WorkerId w(random() % n);
      if (scene.space.host(w) == scene.space.host(child)) {
        if (insiders.size() < 2 && w != child && seed % 2 == 0) insiders.push_back(w);
        continue;
      }
      const auto nics = scene.router.nics(scene.space.node(w));
      if (nics.empty() || sources.size() == 6) continue;
      const NodeId nic = nics[random() % nics.size()];
      if (scene.space.leads_out(nic)) sources.push_back({w, nic});
    }
    PathChooser paths(scene.space);
    for (int k = 0; k < 60; ++k) {
      const WorkerId a(random() % n);
      const WorkerId b(random() % n);
      if (scene.space.host(a) == scene.space.host(b)) continue;
      const auto out = scene.router.nics(scene.space.node(a));
      const auto in = scene.router.nics(scene.space.node(b));
      if (out.empty() || in.empty()) continue;
      const Path path{out[random() % out.size()], in[random() % in.size()],
                      static_cast<std::uint32_t>(random() % 4)};
      paths.charge(a, b, path, Bytes(random() % (8 << 20)));
    }
    const Bytes bytes(1 << 20);
    const double goal = seed % 3 == 0 ? 0 : 1e-4 * static_cast<double>(1 + random() % 20);
    const Oracle right = oracle(scene, paths.load(), insiders, sources, targets, goal, bytes);
    WayFinder finder(scene.space, paths, goal);
    const auto way = finder.find(insiders, sources, targets, bytes);
    ASSERT_EQ(way.has_value(), right.least < 1e98);
    if (!way) continue;
    const auto route =
        scene.router.route(scene.space.node(way->parent), scene.space.node(way->child), way->path);
    ASSERT_TRUE(route.has_value());
    const double time = paths.load().time_with(*route, bytes);
    EXPECT_NEAR(std::max(time, goal), std::max(right.least, goal), 1e-12);
    const bool local = scene.space.host(way->parent) == scene.space.host(way->child);
    if (local) {
      ++inside;
    } else if (right.below) {
      ++nearest;
      EXPECT_EQ(way->path.source_port, sources[right.source].nic);
      EXPECT_EQ(way->parent, sources[right.source].worker);
      EXPECT_EQ(way->path.destination_port, targets[right.target].nic);
    } else {
      ++loaded;
    }
  }
  fmt::print("ways: {} nearest below the goal, {} least loaded, {} inside a host\n", nearest,
             loaded, inside);
  EXPECT_GT(nearest, 20U);
  EXPECT_GT(loaded, 20U);
  EXPECT_GT(inside, 10U);
}

// Stripes over the same ports between the same workers share a path; others do not.
TEST(WayFinder, SharesThePathOfThePorts) {
  const Topology made = make_cluster({.hosts = 3, .gpus = 2, .nics = 2});
  const Scene scene(made, make_demand(made, {.sharded = false, .blocks = 4}));
  PathChooser paths(scene.space);
  WayFinder finder(scene.space, paths, 1);
  const Port source{WorkerId(0U), scene.space.nics(WorkerId(0U)).front()};
  const Port target{WorkerId(2U), scene.space.nics(WorkerId(2U)).front()};
  const auto first = finder.find({}, {&source, 1}, {&target, 1}, kMiB);
  const auto second = finder.find({}, {&source, 1}, {&target, 1}, kMiB);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->path, second->path);
  const Port other{WorkerId(1U), source.nic};  // another worker through the same NIC
  const auto third = finder.find({}, {&other, 1}, {&target, 1}, kMiB);
  ASSERT_TRUE(third);
  EXPECT_NE(third->path, first->path);
}

}  // namespace
}  // namespace holdfast
