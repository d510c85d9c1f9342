// The hierarchical planner on damaged machines: what every one of its plans keeps, and what it
// makes of single slow links.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "core/error.hpp"
#include "core/plan/bound.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/cost_model.hpp"
#include "core/plan/hierarchical.hpp"
#include "core/plan/planner.hpp"
#include "tests/plan/bound_fixtures.hpp"
#include "tests/plan/cluster.hpp"
#include "tests/quality/damage.hpp"

namespace holdfast {
namespace {

using quality::damaged;
using testing_support::changed;
using testing_support::ClusterShape;
using testing_support::DemandShape;
using testing_support::make_cluster;
using testing_support::make_demand;
using testing_support::random_demand;
using testing_support::random_shape;
using testing_support::roughened;

struct Scene {
  Scene(Topology made, const Demand& wanted)
      : topology(std::move(made)), router(topology), demand(wanted), space(router, demand) {}
  Topology topology;
  Router router;
  Demand demand;
  PlanSpace space;

  [[nodiscard]] DomainId datacenter(WorkerId w) const { return space.around(w, Level::Datacenter); }
};

std::string listing(const Plan& plan, const Scene& scene) {
  std::string text;
  for (const Violation& v : check(plan, scene.demand, scene.router)) {
    text += fmt::format("{} {}: {}\n", to_string(v.code), v.pointer, v.message);
  }
  return text;
}

// A random machine with random damage, and a demand on it that is possible or not.
Scene random_scene(std::uint64_t seed, std::mt19937_64& random) {
  ClusterShape shape = random_shape(random);
  shape.hosts = 1 + static_cast<std::uint32_t>(random() % 4);
  if (seed % 4 == 0) shape.datacenters = 2 + static_cast<std::uint32_t>(random() % 2);
  if (shape.datacenters * shape.racks * shape.hosts * shape.gpus == 1) shape.hosts = 2;
  const Topology whole = make_cluster(shape);
  const Topology topology =
      seed % 3 == 0 ? roughened(whole, random)
                    : damaged(whole, seed, static_cast<std::uint32_t>(20 + random() % 200));
  const bool several_hosts = shape.datacenters * shape.racks * shape.hosts > 1;
  if (seed % 5 == 0) return {topology, random_demand(topology, random)};
  const bool sharded = several_hosts && random() % 2 == 0;
  return {topology, make_demand(topology, {.sharded = sharded,
                                           .blocks = 8 + static_cast<std::uint32_t>(random() % 60),
                                           .replicated_block = random() % 2 == 0})};
}

TEST(Exceptions, EveryCandidateIsRightAndNoneBeatsTheBound) {
  std::size_t candidates = 0;
  std::size_t scenes = 0;
  std::size_t cut_off = 0;
  std::size_t refused = 0;  // though a longer way around a link that is down exists
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Scene scene = random_scene(seed, random);
    const Bound bound = lower_bound(scene.topology, scene.demand);
    std::vector<CandidatePlan> all;
    try {
      all = hierarchical_candidates(scene.space);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Unsupported);
      ++(bound.time() == Time::never() ? cut_off : refused);
      continue;
    }
    EXPECT_NE(bound.time(), Time::never());
    ++scenes;
    candidates += all.size();
    for (const CandidatePlan& c : all) {
      EXPECT_EQ(listing(c.plan, scene), "");
      EXPECT_GE(c.prediction.makespan + picoseconds(10), bound.time());
    }
    const auto again = hierarchical_candidates(scene.space);
    ASSERT_EQ(again.size(), all.size());
    for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(again[k].plan, all[k].plan);
  }
  fmt::print("{} machines, {} plans; {} cut off, {} refused\n", scenes, candidates, cut_off,
             refused);
  EXPECT_LE(refused, 5U);
  EXPECT_GT(scenes, 90U);
  EXPECT_GT(candidates, scenes * 2);
}

// Each stripe comes into a datacenter once, or not at all where somebody holds it.
void expect_entered_once(const Plan& plan, const Scene& scene) {
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    const BlockClass& c = scene.demand.classes[plan.stripes[s].block_class.index()];
    std::set<DomainId> held;
    for (const WorkerId w : c.holders) held.insert(scene.datacenter(w));
    std::map<DomainId, int> entries;
    for (const Edge& edge : plan.stripes[s].edges) {
      const DomainId to = scene.datacenter(edge.child);
      if (scene.datacenter(edge.parent) != to) ++entries[to];
    }
    for (const auto& [datacenter, times] : entries) {
      EXPECT_EQ(times, held.contains(datacenter) ? 0 : 1)
          << "stripe " << s << " into " << scene.topology.domain(datacenter).name;
    }
  }
}

// With damage and all, and over the line that leads there.
TEST(Exceptions, EachByteEntersADatacenterOnce) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ClusterShape shape = random_shape(random);
    shape.datacenters = 2 + static_cast<std::uint32_t>(seed % 2);
    shape.racks = 1 + static_cast<std::uint32_t>(random() % 2);
    shape.hosts = 1 + static_cast<std::uint32_t>(random() % 4);
    const Topology topology = damaged(make_cluster(shape), seed, 60);
    const Scene scene(topology, make_demand(topology, {.sharded = seed % 4 < 2, .blocks = 32}));
    for (const CandidatePlan& c : hierarchical_candidates(scene.space)) {
      expect_entered_once(c.plan, scene);
      // Holders are in d0, from where lines lead to each of the others.
      Bytes model;
      for (const BlockClass& k : scene.demand.classes) model += bytes_of(scene.demand, k);
      for (std::size_t i = 0; i < topology.links().size(); ++i) {
        if (topology.links()[i].kind != LinkKind::Wan) continue;
        EXPECT_EQ(c.prediction.carried[ChannelId(LinkId(i), false).index()], model);
        EXPECT_EQ(c.prediction.carried[ChannelId(LinkId(i), true).index()], Bytes(0));
      }
    }
  }
}

// Receivers that may not serve read from a member of their host, else from somebody of their
// datacenter, if one of them serves.
TEST(Exceptions, LeavesDoNotCrossTheWanWhereTheyNeedNot) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster({.datacenters = 2 + static_cast<std::uint32_t>(seed % 2),
                                            .racks = 2,
                                            .hosts = 2,
                                            .gpus = 2,
                                            .nics = 2});
    Demand demand = make_demand(topology, {.sharded = seed % 4 < 2, .blocks = 16});
    for (std::size_t w = 2; w < demand.workers.size(); ++w) {
      demand.workers[w].may_serve = random() % 2 == 0;
    }
    const Scene scene(topology, demand);
    const Plan plan = make_plan(Policy::Hierarchical, scene.router, scene.demand).plan;
    EXPECT_EQ(listing(plan, scene), "");
    for (const Stripe& stripe : plan.stripes) {
      std::set<DomainId> served;
      const BlockClass& c = demand.classes[stripe.block_class.index()];
      for (const auto* list : {&c.holders, &c.receivers}) {
        for (const WorkerId w : *list) {
          if (scene.space.may_serve(w)) served.insert(scene.datacenter(w));
        }
      }
      for (const Edge& edge : stripe.edges) {
        if (scene.space.may_serve(edge.child)) continue;
        const DomainId here = scene.datacenter(edge.child);
        EXPECT_TRUE(!served.contains(here) || scene.datacenter(edge.parent) == here);
      }
    }
  }
}

// Links marked by hand, at most one NIC in five: nobody reads from a receiver in another host
// through a slow NIC.
TEST(Exceptions, NobodyReadsFromAReceiverBehindASlowNic) {
  std::size_t marked = 0;
  std::size_t entered = 0;  // edges into hosts with a slow NIC
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    ClusterShape shape{.datacenters = 1 + static_cast<std::uint32_t>(seed % 2),
                       .racks = 2,
                       .hosts = 3,
                       .gpus = 1 + static_cast<std::uint32_t>(random() % 4)};
    shape.nics = shape.gpus;
    const Topology whole = make_cluster(shape);
    // Of each rack's three hosts one may have slow NICs, so that a site always has others.
    std::vector<bool> slow(whole.links().size(), false);
    const Topology topology = changed(
        whole, [](Node&) {},
        [&](Link& link) {
          const bool nic = whole.node(link.a).kind == NodeKind::Nic &&
                           link.kind == LinkKind::Fabric &&
                           link.name.find(".h1.") != std::string::npos;
          if (!nic || random() % 2 == 0) return;
          link.capacity = link.capacity * (10 + random() % 50) / 100;
          slow[whole.find_link(link.name).index()] = true;
        });
    std::set<NodeId> slow_nics;
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (slow[i]) slow_nics.insert(topology.links()[i].a);
    }
    const Scene scene(topology, make_demand(topology, {.sharded = seed % 4 < 2, .blocks = 48}));
    for (const SiteRule& rule :
         {SiteRule{Level::Datacenter, false}, SiteRule{Level::Rack, false}}) {
      const Plan plan = plan_hierarchical(scene.space, {rule, SlowLinks(scene.space, slow), 1e-3});
      EXPECT_EQ(listing(plan, scene), "");
      expect_entered_once(plan, scene);
      for (const Stripe& stripe : plan.stripes) {
        for (const Edge& edge : stripe.edges) {
          if (scene.space.host(edge.parent) == scene.space.host(edge.child)) continue;
          marked += slow_nics.contains(edge.path.source_port) ? 1U : 0U;
          entered += slow_nics.contains(edge.path.destination_port) ? 1U : 0U;
        }
      }
    }
  }
  EXPECT_EQ(marked, 0U);
  EXPECT_GT(entered, 50U);  // it is used as far as it goes
}

double share_of_bound(const Scene& scene) {
  const Planned planned = make_plan(Policy::Hierarchical, scene.router, scene.demand);
  EXPECT_EQ(listing(planned.plan, scene), "");
  return lower_bound(scene.topology, scene.demand).time().seconds() / planned.predicted.seconds();
}

Topology with_slow(const Topology& topology, const std::string& link, std::uint64_t percent) {
  EXPECT_TRUE(topology.find_link(link).valid());
  return changed(
      topology, [](Node&) {},
      [&](Link& l) {
        if (l.name == link) l.capacity = l.capacity * percent / 100;
      });
}

// One NIC of one host at half speed: the others take over, 7.5 NICs' worth comes in.
TEST(Exceptions, AHostWithAHalfSpeedNicReachesItsBound) {
  for (const std::uint32_t hosts : {8U, 9U}) {
    for (const bool sharded : {true, false}) {
      SCOPED_TRACE(fmt::format("{} hosts, sharded {}", hosts, sharded));
      const Topology topology =
          with_slow(make_cluster({.hosts = hosts}), "d0.r0.h5.nic2-d0.r0.leaf", 50);
      const Scene scene(topology, make_demand(topology, {.sharded = sharded, .blocks = 512}));
      EXPECT_GE(share_of_bound(scene), 0.9);
    }
  }
}

// A GPU whose NVLink is slower than a NIC: some of what it wants comes over its PCIe link instead,
// more than the eighth that its own rail brings anyhow.
TEST(Exceptions, AGpuWithASlowNvLinkGetsPartOverPcie) {
  const Topology whole = make_cluster({.hosts = 8});
  const std::string gpu = "d0.r0.h3.gpu5";
  const Topology topology = with_slow(whole, gpu + "-d0.r0.h3.nvswitch", 10);
  const Scene scene(topology, make_demand(topology, {.sharded = false, .blocks = 256}));
  const auto all = hierarchical_candidates(scene.space);
  const Planned planned = make_plan(Policy::Hierarchical, scene.router, scene.demand);
  EXPECT_LT(planned.predicted.seconds(), all.front().prediction.makespan.seconds() * 0.8);
  const auto carried = predict(planned.plan, scene.demand, scene.router).carried;
  const LinkId pcie = topology.find_link(gpu + "-d0.r0.h3.pcie5");
  const Bytes over_pcie = carried[ChannelId(pcie, true).index()];
  Bytes model;
  for (const Bytes size : scene.demand.block_bytes) model += size;
  EXPECT_GT(over_pcie.count(), model.count() / 4);
  EXPECT_LT(over_pcie.count(), model.count());
  EXPECT_GE(share_of_bound(scene), 0.8);
}

// Strands cut finer, sites repeated for a WAN, few blocks: however many stripes a class has, the
// plan is right and carries no more over the WAN.
TEST(Exceptions, StripesCountNothingTowardsTheWan) {
  for (const std::uint32_t blocks : {1U, 2U, 5U, 17U, 64U, 200U}) {
    SCOPED_TRACE(fmt::format("{} blocks a shard", blocks));
    const Topology topology = damaged(
        make_cluster({.datacenters = 3, .racks = 1, .hosts = 4, .gpus = 4, .nics = 4}), 5, 80);
    const Scene scene(topology, make_demand(topology, {.blocks = blocks}));
    std::set<std::size_t> stripes;
    for (const CandidatePlan& c : hierarchical_candidates(scene.space)) {
      EXPECT_EQ(listing(c.plan, scene), "");
      expect_entered_once(c.plan, scene);
      stripes.insert(c.plan.stripes.size());
    }
    if (blocks >= 64) {
      EXPECT_GT(stripes.size(), 1U);
    }
  }
}

}  // namespace
}  // namespace holdfast
