#include "core/plan/baseline_planners.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plan/checker.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::make_cluster;
using testing_support::random_demand;
using testing_support::random_shape;

bool every_receiver_serves(const Demand& demand) {
  for (const BlockClass& c : demand.classes) {
    for (const WorkerId receiver : c.receivers) {
      if (!demand.workers[receiver.index()].may_serve) return false;
    }
  }
  return true;
}

class Baselines : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Baselines()
      : random_(GetParam()),
        topology_(make_cluster(random_shape(random_))),
        demand_(random_demand(topology_, random_)),
        router_(topology_) {}
  void accept(const Plan& plan) const {
    for (const Violation& v : check(plan, demand_, router_)) {
      ADD_FAILURE() << v.pointer << ": " << v.message;
    }
  }
  std::mt19937_64 random_;
  const Topology topology_;
  const Demand demand_;
  const Router router_;
};

TEST_P(Baselines, UcxReadsFromHoldersAloneAndEvenly) {
  const Plan plan = make_plan(Policy::Ucx, router_, demand_).plan;
  accept(plan);
  for (const Stripe& stripe : plan.stripes) {
    const BlockClass& c = demand_.classes[stripe.block_class.index()];
    std::map<WorkerId, std::uint32_t> readers;
    for (const WorkerId holder : c.holders) {
      if (demand_.workers[holder.index()].may_serve) readers[holder] = 0;
    }
    for (const Edge& edge : stripe.edges) {
      ASSERT_EQ(readers.count(edge.parent), 1U);
      ++readers[edge.parent];
    }
    const auto [least, most] =
        std::minmax_element(readers.begin(), readers.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(most->second - least->second, 1U);
  }
}

TEST_P(Baselines, NcclPassesThroughEveryRankFromOneRoot) {
  for (const NcclAlgorithm algorithm : {NcclAlgorithm::Ring, NcclAlgorithm::Tree}) {
    SCOPED_TRACE(to_string(algorithm));
    PlanOptions options;
    options.nccl = algorithm;
    if (!every_receiver_serves(demand_)) {
      EXPECT_THROW((void)make_plan(Policy::Nccl, router_, demand_, options), Error);
      continue;
    }
    const Plan plan = make_plan(Policy::Nccl, router_, demand_, options).plan;
    accept(plan);
    for (const Stripe& stripe : plan.stripes) {
      const BlockClass& c = demand_.classes[stripe.block_class.index()];
      std::map<WorkerId, std::uint32_t> children;
      std::uint32_t from_holders = 0;
      for (const Edge& edge : stripe.edges) {
        ++children[edge.parent];
        const bool holder = std::count(c.holders.begin(), c.holders.end(), edge.parent) > 0;
        from_holders += holder ? 1 : 0;
        if (algorithm == NcclAlgorithm::Ring && !holder) {
          EXPECT_LT(edge.parent, edge.child);  // rank order
        }
      }
      EXPECT_EQ(from_holders, 1U);
      for (const auto& [parent, count] : children) {
        EXPECT_LE(count, algorithm == NcclAlgorithm::Ring ? 1U : 2U);
      }
    }
  }
}

TEST_P(Baselines, AStoreHasNoPlan) {
  EXPECT_THROW((void)make_plan(Policy::Store, router_, demand_), Error);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Baselines, ::testing::Range(std::uint64_t{1}, std::uint64_t{61}));

}  // namespace
}  // namespace holdfast
