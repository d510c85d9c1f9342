// What the cost model says of plans of a few edges.
#include "core/plan/cost_model.hpp"

#include <gtest/gtest.h>

#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::make_cluster;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kBlocks = 64;

// Hosts of one GPU and one NIC; GPU 0 of the first host of each datacenter is worker 0, ...
struct Scene {
  explicit Scene(std::uint32_t datacenters, std::uint32_t hosts)
      : topology(make_cluster({.datacenters = datacenters,
                               .hosts = hosts,
                               .gpus = 1,
                               .nics = 1,
                               .uplink_rate = Rate(800'000'000'000)})),
        router(topology) {
    for (std::uint32_t d = 0; d < datacenters; ++d) {
      for (std::uint32_t h = 0; h < hosts; ++h) {
        const std::string host = "d" + std::to_string(d) + ".r0.h" + std::to_string(h);
        gpus.push_back(topology.find_node(host + ".gpu0"));
        nics.push_back(topology.find_node(host + ".nic0"));
      }
    }
  }

  // Worker 0 holds all, the others want all.
  [[nodiscard]] Demand demand() const {
    DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(kBlocks, Bytes(kMiB)));
    for (std::uint32_t i = 0; i < gpus.size(); ++i) {
      const WorkerId w = builder.add_worker({gpus[i], i, Bytes(1ULL << 40), true});
      if (i == 0) {
        builder.holds(w, {BlockId(0U), kBlocks});
      } else {
        builder.wants(w, {BlockId(0U), kBlocks});
      }
    }
    return std::move(builder).build();
  }

  [[nodiscard]] Edge edge(std::uint32_t parent, std::uint32_t child, std::uint32_t stream) const {
    return {WorkerId(child), WorkerId(parent), WorkerId(), {nics[parent], nics[child], stream}, 8};
  }

  // Stripe s of as many as there are streams; each from worker 0 down the line.
  [[nodiscard]] Plan line(const std::vector<std::uint32_t>& streams) const {
    Plan plan;
    for (std::uint32_t s = 0; s < streams.size(); ++s) {
      Stripe stripe{ClassId(0U), {s, static_cast<std::uint32_t>(streams.size()), kBlocks}, {}};
      for (std::uint32_t i = 1; i < gpus.size(); ++i) {
        stripe.edges.push_back(edge(i - 1, i, streams[s]));
      }
      plan.stripes.push_back(stripe);
    }
    return plan;
  }

  Topology topology;
  Router router;
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
};

// One edge of 64 blocks of 1 MiB at 50 GB/s: the blocks one after the other, request and data over
// 2 x 1.4 us each, and the digest of 1 MiB at 2 TB/s.
TEST(CostModel, OneEdge) {
  const Scene scene(1, 2);
  const Demand demand = scene.demand();
  const Prediction p = predict(scene.line({0}), demand, scene.router);
  const double way = 2 * 200e-9 * 2 + 2 * 1e-6;
  const double right = kBlocks * kMiB / 50e9 + 2 * way + kMiB / 2e12;
  EXPECT_NEAR(p.makespan.seconds(), right, 1e-9);
  EXPECT_NEAR(p.fill.seconds(), right - kBlocks * kMiB / 50e9, 1e-9);
  EXPECT_EQ(p.busiest_time, transfer_time(Bytes(kBlocks * kMiB), Rate(50'000'000'000)));
  EXPECT_NEAR(p.stall, p.makespan.seconds(), 1e-11);
}

// Stripes on one path share a connection, which serves them like one stripe of all their blocks:
// over the WAN they share its one stream's cap, and nowhere do they count as two.
TEST(CostModel, StripesOnOnePathAreLikeOne) {
  for (const std::uint32_t datacenters : {1U, 2U}) {
    for (const std::uint32_t stripes : {2U, 4U}) {
      const Scene scene(datacenters, 3);
      const Demand demand = scene.demand();
      const Prediction one = predict(scene.line({7}), demand, scene.router);
      const Plan plan = scene.line(std::vector<std::uint32_t>(stripes, 7));
      const Prediction several = predict(plan, demand, scene.router);
      EXPECT_NEAR(several.makespan.seconds(), one.makespan.seconds(), 1e-10);
      EXPECT_NEAR(several.stall, one.stall, 1e-10);
      EXPECT_EQ(several.carried, one.carried);
    }
  }
}

// 64 MiB over a WAN of 12.5 GB/s with 1.25 GB/s a stream: two streams take half as long.
TEST(CostModel, StreamsOfTheirOwnHaveACapOfTheirOwn) {
  const Scene scene(2, 1);
  const Demand demand = scene.demand();
  const double one = predict(scene.line({0}), demand, scene.router).makespan.seconds();
  const double two = predict(scene.line({0, 1}), demand, scene.router).makespan.seconds();
  const double latencies = 2 * (15e-3 + 4e-6 + 0.8e-6);
  EXPECT_NEAR(one, kBlocks * kMiB / 1.25e9 + latencies, 1e-5);
  EXPECT_NEAR(two, kBlocks * kMiB / 2.5e9 + latencies, 1e-5);
}

// Two holders feed one receiver each, apart. Every GPU of a group waits for the group's last.
TEST(CostModel, StallIsTheSumOverGroups) {
  const Scene scene(1, 6);
  DemandBuilder builder("m", {0, 1}, Bytes(kMiB), std::vector<Bytes>(60, Bytes(kMiB)));
  // Workers 0 and 1 hold a class each; 2 wants 40 blocks of the first, 3 wants 20 of the second;
  // 4 is with 2 and holds all; 5 is a group that waits for nothing.
  const std::uint32_t groups[] = {0, 0, 3, 4, 3, 6};
  for (std::uint32_t i = 0; i < 6; ++i) {
    builder.add_worker({scene.gpus[i], groups[i], Bytes(1ULL << 40), true});
  }
  builder.holds(WorkerId(0U), {BlockId(0U), 40});
  builder.holds(WorkerId(1U), {BlockId(40U), 20});
  builder.holds(WorkerId(4U), {BlockId(0U), 60});
  builder.wants(WorkerId(2U), {BlockId(0U), 40});
  builder.wants(WorkerId(3U), {BlockId(40U), 20});
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 2U);
  Plan plan;
  plan.stripes.push_back({ClassId(0U), {0, 1, 40}, {scene.edge(0, 2, 0)}});
  plan.stripes.push_back({ClassId(1U), {0, 1, 20}, {scene.edge(1, 3, 0)}});
  Plan first = plan;
  first.stripes.pop_back();
  Plan second = plan;
  second.stripes.erase(second.stripes.begin());
  const Prediction both = predict(plan, demand, scene.router);
  const Prediction a = predict(first, demand, scene.router);
  const Prediction b = predict(second, demand, scene.router);
  EXPECT_GT(a.makespan, b.makespan);
  EXPECT_EQ(both.makespan, a.makespan);
  EXPECT_NEAR(a.stall, 2 * a.makespan.seconds(), 1e-10);
  EXPECT_NEAR(b.stall, b.makespan.seconds(), 1e-10);
  EXPECT_NEAR(both.stall, a.stall + b.stall, 1e-10);
}

}  // namespace
}  // namespace holdfast
