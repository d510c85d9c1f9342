// Every policy's plan, carried out: nobody is left out and no plan beats the bound.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <random>

#include "core/plan/bound.hpp"
#include "core/plan/planner.hpp"
#include "sim/simulation.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::make_cluster;
using testing_support::random_demand;
using testing_support::random_shape;

constexpr std::array kPolicies{Policy::Star, Policy::Chain, Policy::Binomial, Policy::TwoTree,
                               Policy::Hierarchical};

TEST(SimulatedPlans, DeliverEverythingAndNeverBeatTheBound) {
  double best = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = make_cluster(random_shape(random));
    const Demand demand = random_demand(topology, random);
    const Router router(topology);
    const Bound bound = lower_bound(topology, demand);
    const std::vector<Bytes> missing = missing_bytes(demand);
    Bytes all;
    for (const Bytes bytes : missing) all += bytes;
    for (const Policy policy : kPolicies) {
      SCOPED_TRACE(to_string(policy));
      const Planned planned = make_plan(policy, router, demand);
      const sim::SimulationResult result = sim::simulate(router, demand, planned.plan);
      ASSERT_EQ(result.failure, std::nullopt);
      EXPECT_EQ(result.moved.gpu, all);
      // A simulated instant is a double: one part in 10^9 is what the closed forms hold to.
      EXPECT_GE(result.makespan.seconds(), bound.time().seconds() * (1 - 1e-9));
      std::vector<Time> last(bound.by_group.size());
      for (std::size_t w = 0; w < missing.size(); ++w) {
        EXPECT_EQ(result.completed[w] > Time(0), missing[w] > Bytes(0)) << "worker " << w;
        Time& group = last[demand.workers[w].group];
        group = std::max(group, result.completed[w]);
      }
      for (std::size_t g = 0; g < last.size(); ++g) {
        EXPECT_GE(last[g].seconds(), bound.by_group[g].seconds() * (1 - 1e-9)) << "group " << g;
      }
      best = std::max(best, bound.time().seconds() / result.makespan.seconds());
    }
  }
  // A bound that no plan comes near would pass everything above.
  EXPECT_GT(best, 0.9);
}

// The predicted time is what `auto` chooses by: on clusters in good order it has to be close.
TEST(SimulatedPlans, ThePredictionIsCloseWhereFlowsAreInStep) {
  for (const bool sharded : {true, false}) {
    for (const std::uint32_t hosts : {2U, 5U, 16U}) {
      const Topology topology = make_cluster({.hosts = hosts});
      const Demand demand = testing_support::make_demand(topology, {.sharded = sharded});
      const Router router(topology);
      for (const Policy policy : kPolicies) {
        SCOPED_TRACE(fmt::format("{} hosts, sharded {}, {}", hosts, sharded, to_string(policy)));
        const Planned planned = make_plan(policy, router, demand);
        const sim::SimulationResult result = sim::simulate(router, demand, planned.plan);
        const double ratio = planned.predicted.seconds() / result.makespan.seconds();
        EXPECT_GT(ratio, 0.9);
        EXPECT_LT(ratio, 1.1);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
