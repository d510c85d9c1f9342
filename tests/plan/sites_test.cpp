// Where a class lives, seen from above its hosts, and who feeds whom.
#include "core/plan/sites.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/plan/checker.hpp"
#include "core/plan/cost_model.hpp"
#include "core/plan/hierarchical.hpp"
#include "core/plan/planner.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::changed;
using testing_support::ClusterShape;
using testing_support::make_cluster;
using testing_support::make_demand;
using testing_support::random_demand;
using testing_support::random_shape;

struct Scene {
  Scene(Topology made, const Demand& wanted)
      : topology(std::move(made)),
        router(topology),
        demand(wanted),
        space(router, demand),
        hosts(space, demand.classes[0]) {}
  Topology topology;
  Router router;
  Demand demand;
  PlanSpace space;
  ClassHosts hosts;

  // Of the first class; they point into `hosts`.
  [[nodiscard]] std::vector<Site> sites(const SiteRule& rule) const {
    return SitePlanner(space, rule).group(hosts);
  }
  [[nodiscard]] std::string host(WorkerId w) const { return topology.domain(space.host(w)).name; }
};

// NICs of the hosts whose name starts like that get so many percent of their rate.
Topology slower(const Topology& topology, const std::string& prefix, std::uint64_t percent) {
  return changed(
      topology, [](Node&) {},
      [&](Link& link) {
        const bool nic = link.kind == LinkKind::Fabric && link.name.find(".nic") < link.name.size();
        if (nic && link.name.starts_with(prefix)) link.capacity = link.capacity * percent / 100;
      });
}

TEST(Sites, GoByLevelOrTheNextThatIsThere) {
  const Topology topology = make_cluster({.datacenters = 2, .racks = 3, .hosts = 2});
  const Scene scene(topology, make_demand(topology, {.sharded = false}));
  const std::map<Level, std::size_t> counts{
      {Level::Host, 12}, {Level::Rack, 6}, {Level::Pod, 2}, {Level::Datacenter, 2}};
  for (const auto& [level, count] : counts) {
    const SiteRule rule{level, false};
    const auto sites = scene.sites(rule);
    EXPECT_EQ(sites.size(), count) << to_string(level);
    EXPECT_EQ(SitePlanner(scene.space, rule).count(), count);
    std::size_t hosts = 0;
    for (const Site& site : sites) {
      hosts += site.sources.size() + site.receivers.size();
      for (const auto* list : {&site.sources, &site.receivers}) {
        for (const ClassHost* host : *list) {
          EXPECT_EQ(site.datacenter, scene.topology.around(host->host, Level::Datacenter));
          EXPECT_EQ(host->holders.empty(), list == &site.receivers);
        }
      }
    }
    EXPECT_EQ(hosts, 12U);
    EXPECT_EQ(sites[0].sources.size(), 1U);
  }
}

TEST(Sites, TellHostsOfOtherSpeedApart) {
  const Topology topology = make_cluster({.hosts = 6});
  const std::map<std::uint64_t, std::size_t> counts{{100, 1}, {80, 1}, {50, 2}, {25, 2}};
  for (const auto& [percent, count] : counts) {
    const Topology mixed = slower(topology, "d0.r0.h3.", percent);
    const Scene scene(mixed, make_demand(mixed, {.sharded = false}));
    EXPECT_EQ(scene.sites({Level::Datacenter, false}).size(), 1U);
    EXPECT_EQ(scene.sites({Level::Datacenter, true}).size(), count) << percent;
    EXPECT_EQ(SitePlanner(scene.space, {Level::Datacenter, true}).count(), count);
  }
}

// A slow host never stands above a fast one, unless it holds what that one wants.
TEST(Sites, TheSlowReadFromTheFast) {
  const Topology even = make_cluster({.hosts = 8});
  Topology mixed = slower(even, "d0.r0.h2.", 50);
  for (const char* host : {"d0.r0.h4.", "d0.r0.h6."}) mixed = slower(mixed, host, 50);
  const std::set<std::string> slow{"d0.r0.h2", "d0.r0.h4", "d0.r0.h6"};
  for (const bool sharded : {true, false}) {
    const Scene scene(mixed, make_demand(mixed, {.sharded = sharded}));
    const Plan plan =
        plan_hierarchical(scene.space, {{Level::Datacenter, true}, SlowLinks(scene.space), 0});
    std::size_t entered = 0;
    for (const Stripe& stripe : plan.stripes) {
      for (const Edge& edge : stripe.edges) {
        const std::string from = scene.host(edge.parent);
        const std::string to = scene.host(edge.child);
        if (from == to) continue;
        EXPECT_TRUE(!slow.contains(from) || slow.contains(to)) << from << " feeds " << to;
        entered += slow.contains(to) ? 1U : 0U;
      }
    }
    EXPECT_GT(entered, 0U);
  }
}

// Whatever the machine: who is fed is fed by somebody reached before, and over each line that leads
// there from a datacenter reached before once.
TEST(Sites, FeedersAreReachedBeforeAndOneForEachLine) {
  std::size_t several = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ClusterShape shape = random_shape(random);
    shape.datacenters = 1 + static_cast<std::uint32_t>(seed % 4);
    shape.hosts = 1 + static_cast<std::uint32_t>(random() % 3);
    const Topology star = make_cluster(shape);
    TopologyBuilder builder(star);
    if (shape.datacenters > 2) {
      Link line = star.link(star.find_link("d0.gateway-d1.gateway"));
      line.name = "d1.gateway-d2.gateway";
      line.a = star.find_node("d1.gateway");
      line.b = star.find_node("d2.gateway");
      line.capacity = line.capacity * (1 + random() % 5) / 3;
      builder.add_link(line);
    }
    const Topology topology = builder.build();
    const Demand demand = random_demand(topology, random);
    const Router router(topology);
    const PlanSpace space(router, demand);
    std::set<std::pair<DomainId, DomainId>> lines;
    for (const Link& link : topology.links()) {
      if (link.kind != LinkKind::Wan) continue;
      const DomainId a = topology.around(link.a, Level::Datacenter);
      const DomainId b = topology.around(link.b, Level::Datacenter);
      lines.insert({a, b});
      lines.insert({b, a});
    }
    for (const BlockClass& c : demand.classes) {
      const ClassHosts hosts(space, c);
      for (const Level level : {Level::Datacenter, Level::Rack}) {
        SitePlanner planner(space, {level, false});
        std::vector<Site> sites = planner.group(hosts);
        const auto order = planner.order(sites);
        std::vector<bool> reached(sites.size());
        for (std::size_t s = 0; s < sites.size(); ++s) reached[s] = !sites[s].sources.empty();
        for (const std::size_t to : order) {
          EXPECT_FALSE(reached[to]);
          ASSERT_FALSE(sites[to].feeders.empty());
          std::set<DomainId> from;
          for (const Feeder& feeder : sites[to].feeders) {
            EXPECT_TRUE(reached[feeder.site]);
            EXPECT_EQ(feeder.datacenter, sites[feeder.site].datacenter);
            EXPECT_TRUE(from.insert(feeder.datacenter).second);
            if (&feeder != &sites[to].feeders.front()) {
              EXPECT_TRUE(lines.contains({feeder.datacenter, sites[to].datacenter}));
            }
          }
          // None is left out, once one line is used.
          if (lines.contains({sites[to].feeders.front().datacenter, sites[to].datacenter})) {
            for (std::size_t s = 0; s < sites.size(); ++s) {
              if (reached[s] && lines.contains({sites[s].datacenter, sites[to].datacenter})) {
                EXPECT_TRUE(from.contains(sites[s].datacenter));
              }
            }
          }
          several += from.size() > 1 ? 1U : 0U;
          reached[to] = true;
        }
        for (std::size_t s = 0; s < sites.size(); ++s) {
          EXPECT_TRUE(reached[s]);
          EXPECT_EQ(sites[s].sources.empty(), !sites[s].feeders.empty());
        }
      }
    }
  }
  EXPECT_GT(several, 100U);
}

// Three datacenters in a triangle, holders in the first. The second is fed over its own line; into
// the third lead two lines, which carry in the measure of their rates.
TEST(Sites, UnequalLinesShareInProportion) {
  for (const std::uint64_t third : {2U, 3U, 6U, 12U}) {
    for (const bool sharded : {true, false}) {
      SCOPED_TRACE(fmt::format("d1-d2 {} GB/s, sharded {}", third, sharded));
      const Topology star = make_cluster({.datacenters = 3,
                                          .hosts = 4,
                                          .wan_rate = Rate(6'000'000'000),
                                          .stream_cap = Rate(1'000'000'000)});
      TopologyBuilder builder(star);
      Link line = star.link(star.find_link("d0.gateway-d2.gateway"));
      line.name = "d1.gateway-d2.gateway";
      line.a = star.find_node("d1.gateway");
      line.capacity = Rate(third * 1'000'000'000);
      builder.add_link(line);
      const Topology topology = builder.build();
      const Demand demand = make_demand(topology, {.sharded = sharded, .blocks = 256});
      const Router router(topology);
      const Plan plan = make_plan(Policy::Hierarchical, router, demand).plan;
      const auto carried = predict(plan, demand, router).carried;
      const auto over = [&](const char* name, bool from_b) {
        return static_cast<double>(
            carried[ChannelId(topology.find_link(name), from_b).index()].count());
      };
      double model = 0;
      for (const Bytes size : demand.block_bytes) model += static_cast<double>(size.count());
      const double into_second =
          over("d0.gateway-d1.gateway", false) + over("d1.gateway-d2.gateway", true);
      const double into_third =
          over("d0.gateway-d2.gateway", false) + over("d1.gateway-d2.gateway", false);
      EXPECT_EQ(into_second, model);
      EXPECT_EQ(into_third, model);
      if (third > 6) continue;  // then the third is reached last, by way of the second or not
      const double part = over("d1.gateway-d2.gateway", false) / model;
      const double right = static_cast<double>(third) / static_cast<double>(third + 6);
      EXPECT_NEAR(part, right, 0.12 * right + 0.02);
    }
  }
}

// --- Objectives ----------------------------------------------------------------------------------

// Twelve hosts of 400 and four of 200 Gb/s a GPU between them: told to keep the stall short, the
// fast ones do not wait for the slow; told to keep the makespan short, no plan is 1 % shorter.
TEST(Objectives, StallPutsTheFastFirst) {
  Topology mixed = make_cluster({.racks = 4, .hosts = 4, .spines = 4});
  for (std::uint32_t r = 0; r < 4; ++r) mixed = slower(mixed, fmt::format("d0.r{}.h2.", r), 50);
  const Scene scene(mixed, make_demand(mixed, {}));
  const Planned stall =
      make_plan(Policy::Hierarchical, scene.router, scene.demand, {0, Objective::Stall});
  const Planned makespan =
      make_plan(Policy::Hierarchical, scene.router, scene.demand, {0, Objective::Makespan});
  double least_stall = 1e99;
  double most_stall = 0;
  Time least = Time::never();
  for (const CandidatePlan& c : hierarchical_candidates(scene.space)) {
    least_stall = std::min(least_stall, c.prediction.stall);
    most_stall = std::max(most_stall, c.prediction.stall);
    least = std::min(least, c.prediction.makespan);
  }
  EXPECT_GT(most_stall, least_stall * 1.3);  // it matters
  EXPECT_LE(predict(stall.plan, scene.demand, scene.router).stall, least_stall * 1.0101);
  EXPECT_LE(makespan.predicted.seconds(), least.seconds() * 1.0101);
  EXPECT_EQ(predict(makespan.plan, scene.demand, scene.router).makespan, makespan.predicted);
  for (const Stripe& stripe : stall.plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      const bool from_slow = scene.host(edge.parent).ends_with("h2");
      const bool to_slow = scene.host(edge.child).ends_with("h2");
      EXPECT_TRUE(!from_slow || to_slow);
    }
  }
  for (const Planned* planned : {&stall, &makespan}) {
    EXPECT_TRUE(check(planned->plan, scene.demand, scene.router).empty());
  }
}

}  // namespace
}  // namespace holdfast
