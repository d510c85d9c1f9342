// Our own sharing against the simple algorithm, and whole simulations against SimGrid.
#include "sim/fair_rates.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "core/plan/planner.hpp"
#include "sim/end_queue.hpp"
#include "sim/fair_flows.hpp"
#include "sim/sim_network.hpp"
#include "sim/simulation.hpp"
#include "tests/plan/cluster.hpp"
#include "tests/sim/reference_rates.hpp"
#include "tests/sim/scale_fixture.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

// Flows that come and go over random links; after each batch the rates are those of the reference,
// and exactly the flows whose rate has changed were named.
class Churn {
 public:
  explicit Churn(std::uint64_t seed) : random_(seed) {
    const auto links = pick(1, 30);
    for (std::uint32_t l = 0; l < links; ++l) {
      // Often equal, so that ties are common; sometimes a wide one that many share.
      capacity_.push_back(pick(0, 1) == 0 ? 10.0 : pick(1, 100) * 1.5);
    }
    longest_ = pick(1, std::min(6U, links));
    with_caps_ = pick(0, 1) == 0;
    with_changing_links_ = pick(0, 1) == 0;
    most_ = pick(1, 60);
  }

  void run() {
    FairRates rates(capacity_);
    for (int batch = 0; batch < 60; ++batch) {
      const std::uint32_t changes = pick(1, 4) == 1 ? pick(1, 20) : 1;
      for (std::uint32_t k = 0; k < changes; ++k) change(rates);
      check(rates);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  struct Flow {
    std::vector<std::uint32_t> links;
    double cap = 0;
  };

  std::uint32_t pick(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }

  void change(FairRates& rates) {
    if (with_changing_links_ && pick(0, 3) == 0) {
      const std::uint32_t link = pick(0, static_cast<std::uint32_t>(capacity_.size()) - 1);
      capacity_[link] = pick(0, 1) == 0 ? 10.0 : pick(1, 100) * 1.5;
      rates.set_capacity(link, capacity_[link]);
      return;
    }
    const std::uint32_t id = pick(0, most_ - 1);
    if (flows_.erase(id) != 0) {
      rates.remove(id);
      if (pick(0, 1) == 0) return;
    }
    Flow flow;
    std::vector<std::uint32_t> all(capacity_.size());
    for (std::uint32_t l = 0; l < all.size(); ++l) all[l] = l;
    std::shuffle(all.begin(), all.end(), random_);
    flow.links.assign(all.begin(), all.begin() + pick(1, longest_));
    flow.cap = with_caps_ && pick(0, 2) == 0 ? pick(1, 20) * 0.7 : FairRates::kNoCap;
    rates.add(id, flow.links, flow.cap);
    flows_.emplace(id, flow);
  }

  void check(FairRates& rates) {
    const auto span = rates.settle();
    const std::vector<std::uint32_t> changed(span.begin(), span.end());
    std::vector<std::span<const std::uint32_t>> links;
    std::vector<double> caps;
    for (const auto& [id, flow] : flows_) {
      links.emplace_back(flow.links);
      caps.push_back(flow.cap);
    }
    const auto expected = reference_rates(links, capacity_, caps);
    ASSERT_EQ(rates.live(), flows_.size());
    std::size_t f = 0;
    for (const auto& [id, flow] : flows_) {
      ASSERT_NEAR(rates.rate(id) / expected[f++], 1, 1e-9) << "flow " << id;
      const bool named = std::find(changed.begin(), changed.end(), id) != changed.end();
      const auto before = last_.find(id);
      if (before == last_.end() || before->second != rates.rate(id)) {
        ASSERT_TRUE(named) << "flow " << id;
      }
    }
    last_.clear();
    for (const auto& [id, flow] : flows_) last_[id] = rates.rate(id);
  }

  std::mt19937_64 random_;
  std::vector<double> capacity_;
  std::map<std::uint32_t, Flow> flows_;
  std::map<std::uint32_t, double> last_;
  std::uint32_t longest_ = 1;
  std::uint32_t most_ = 1;
  bool with_caps_ = false;
  bool with_changing_links_ = false;
};

TEST(FairRates, AreThoseOfTheSimpleAlgorithm) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Churn(seed).run();
    if (HasFailure()) return;
  }
}

// Against an ordered set of pairs.
TEST(EndQueue, IsOrderedByTimeThenNumber) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const auto pick = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    EndQueue queue;
    std::map<std::uint32_t, Time> ends;
    std::set<std::pair<Time, std::uint32_t>> ordered;
    for (int step = 0; step < 400; ++step) {
      const auto flow = static_cast<std::uint32_t>(pick(0, 40));
      if (const auto known = ends.find(flow); known != ends.end()) {
        ordered.erase({known->second, flow});
        ends.erase(known);
      }
      if (pick(0, 2) == 0) {
        queue.erase(flow);
      } else {
        const Time at(pick(0, 20));
        queue.set(flow, at);
        ends[flow] = at;
        ordered.insert({at, flow});
      }
      ASSERT_EQ(queue.empty(), ordered.empty());
      if (ordered.empty()) continue;
      ASSERT_EQ(queue.first_time(), ordered.begin()->first);
      ASSERT_EQ(queue.first(), ordered.begin()->second);
    }
  }
}

// Two flows share a link of 10; when the second begins and ends the first one's rate changes.
TEST(FairFlows, CountsBytesAndTime) {
  FairFlows flows(std::vector<Rate>{Rate(10)});
  std::vector<std::pair<std::uint32_t, Time>> ended;
  const std::vector<std::uint32_t> link{0};
  flows.run([&](std::span<const std::uint32_t> now_ended) {
    for (const std::uint32_t id : now_ended) ended.emplace_back(id, flows.now());
    if (flows.now() == Time(0)) {
      flows.start(0, link, Bytes(100), std::nullopt);
      flows.wake_at(seconds(2));
    } else if (flows.now() == seconds(2)) {
      flows.start(1, link, Bytes(20), std::nullopt);  // both at 5 from here on
      flows.start(2, link, Bytes(1000), Rate(1));     // and this one at 1: 4.5 each
      flows.wake_at(seconds(4));
    } else if (flows.now() == seconds(4)) {
      EXPECT_EQ(flows.cancel(2), Bytes(2));  // 5 each again
      EXPECT_EQ(flows.cancel(2), Bytes(1000)) << "what has ended has moved everything";
    }
  });
  // Flow 1: 9 bytes until 4 s, 11 more at 5 a second. Flow 0: 20 + 9 + 11, then 60 at 10 a second.
  EXPECT_EQ(ended, (std::vector<std::pair<std::uint32_t, Time>>{{1, milliseconds(6'200)},
                                                                {0, milliseconds(12'200)}}));
}

// The same with a step of a second: what ends leaves its part idle until then, what begins is lent
// what is idle.
TEST(FairFlows, MakesRatesFairOnceInAStep) {
  FairFlows flows(std::vector<Rate>{Rate(10)}, seconds(1));
  std::vector<std::pair<std::uint32_t, Time>> ended;
  const std::vector<std::uint32_t> link{0};
  flows.run([&](std::span<const std::uint32_t> now_ended) {
    for (const std::uint32_t id : now_ended) ended.emplace_back(id, flows.now());
    if (flows.now() == Time(0)) {
      flows.start(0, link, Bytes(100), std::nullopt);  // lent all of it
      flows.wake_at(milliseconds(500));
    } else if (flows.now() == milliseconds(500)) {
      flows.start(1, link, Bytes(20), std::nullopt);  // lent nothing until 1 s, then 5
    }
  });
  // Flow 1: 1 s to 5 s. Flow 0: 10 until 1 s, 20 at 5 until 5 s, 5 more until 6 s, 65 at 10.
  EXPECT_EQ(ended, (std::vector<std::pair<std::uint32_t, Time>>{{1, seconds(5)},
                                                                {0, milliseconds(12'500)}}));
}

// The largest difference between completions, as a share of the makespan.
double difference(const SimulationResult& own, const SimulationResult& simgrid) {
  EXPECT_EQ(own.failure, std::nullopt);
  EXPECT_EQ(simgrid.failure, std::nullopt);
  EXPECT_EQ(own.sharing, Sharing::MaxMin);
  EXPECT_EQ(simgrid.sharing, Sharing::SimGrid);
  EXPECT_EQ(own.deliveries, simgrid.deliveries);
  EXPECT_EQ(own.moved.gpu, simgrid.moved.gpu);
  EXPECT_EQ(own.moved.nic, simgrid.moved.nic);
  EXPECT_EQ(own.moved.wan, simgrid.moved.wan);
  double most = 0;
  for (std::size_t w = 0; w < own.completed.size(); ++w) {
    most = std::max(most, std::abs((own.completed[w] - simgrid.completed[w]).seconds()));
  }
  return most / simgrid.makespan.seconds();
}

// Where two things happen at the same time, rounding alone decides which comes first and with it
// who waits for whom, so block times vary here. What is left is the picosecond to which
// the end of each block is rounded.
TEST(MaxMinSimulation, AgreesWithSimgridOnEveryPlan) {
  double most = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = testing_support::make_cluster(testing_support::random_shape(random));
    const Demand demand = testing_support::random_demand(topology, random);
    const Router router(topology);
    SimulationOptions options;
    options.jitter = 50'000;  // millionths
    options.seed = seed;
    for (const Policy policy :
         {Policy::Star, Policy::Chain, Policy::TwoTree, Policy::Hierarchical}) {
      SCOPED_TRACE(to_string(policy));
      const Plan plan = holdfast::make_plan(policy, router, demand).plan;
      options.sharing = Sharing::MaxMin;
      const SimulationResult own = simulate(router, demand, plan, options);
      options.sharing = Sharing::SimGrid;
      const double apart = difference(own, simulate(router, demand, plan, options));
      EXPECT_LT(apart, 1e-6);
      most = std::max(most, apart);
    }
  }
  fmt::print("completions differ by at most {:.2g} of the makespan\n", most);
}

// A block's deadline ends the run: what had moved by then, and who is named, are the same.
TEST(MaxMinSimulation, CutsOffWhatFails) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 10);
  const Plan plan = tree_plan(topology, demand, chain_parents(1), 2);
  const Router router(topology);
  SimulationOptions options;
  options.read_deadline = microseconds(1500);
  options.sharing = Sharing::SimGrid;
  const SimulationResult simgrid = simulate(router, demand, plan, options);
  options.sharing = Sharing::MaxMin;
  const SimulationResult own = simulate(router, demand, plan, options);
  ASSERT_TRUE(own.failure);
  EXPECT_EQ(own.failure, simgrid.failure);
  EXPECT_EQ(own.moved.gpu, simgrid.moved.gpu);
  EXPECT_EQ(own.moved.gpu, kBlock + Bytes(495'000));
  EXPECT_EQ(own.events.back().at, simgrid.events.back().at);
}

// Random trees over trunks that are half as wide as what hangs on them: what the step costs.
TEST(MaxMinSimulation, AStepMovesTheMakespanLittle) {
  double most = 0;
  double sum = 0;
  constexpr std::uint64_t kSeeds = 6;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ScaleCase scale = make_coupled_case(32, 24, 8, seed);
    const Router router(scale.topology);
    SimulationOptions options;
    options.sharing = Sharing::SimGrid;
    const SimulationResult exact = simulate(router, scale.demand, scale.plan, options);
    options.sharing = Sharing::MaxMin;
    options.sharing_step = transfer_time(Bytes(kScaleBlock), kScaleRate) / 50;
    const SimulationResult stepped = simulate(router, scale.demand, scale.plan, options);
    ASSERT_EQ(exact.failure, std::nullopt);
    ASSERT_EQ(stepped.failure, std::nullopt);
    EXPECT_EQ(stepped.sharing_step, *options.sharing_step);
    EXPECT_EQ(stepped.deliveries, exact.deliveries);
    EXPECT_EQ(stepped.moved.gpu, exact.moved.gpu);
    const double error = stepped.makespan.seconds() / exact.makespan.seconds() - 1;
    most = std::max(most, std::abs(error));
    sum += error;
  }
  fmt::print("a step of 2 % of a block time: {:+.2f} % on average, {:.2f} % at most\n",
             sum / kSeeds * 100, most * 100);
  EXPECT_LT(most, 0.02);
}

// Two connections a receiver, all coupled by the trunks.
TEST(MaxMinSimulation, IsChosenByHowMuchIsCoupled) {
  const auto run_hosts = [](std::uint32_t hosts) {
    const ScaleCase scale = make_coupled_case(hosts, 2, 8, 1);
    const Router router(scale.topology);
    return simulate(router, scale.demand, scale.plan);
  };
  const SimulationResult few = run_hosts(kMostCoupledForSimgrid / 16);  // one host less receives
  EXPECT_EQ(few.sharing, Sharing::SimGrid);
  EXPECT_EQ(few.sharing_step, Time(0));
  const SimulationResult more = run_hosts(kMostCoupledForSimgrid / 16 + 2);
  EXPECT_EQ(more.sharing, Sharing::MaxMin);
  EXPECT_EQ(more.sharing_step, Time(0));
}

// The step of the test above comes into use when enough rates have been computed, and not before.
TEST(FairFlows, IsExactUntilItHasComputedEnough) {
  const std::vector<std::uint32_t> link{0};
  for (const std::uint64_t exact : {0U, 2U, 3U, 100U}) {
    FairFlows flows(std::vector<Rate>{Rate(10)}, seconds(1), exact);
    Time end;
    flows.run([&](std::span<const std::uint32_t> ended) {
      for (const std::uint32_t id : ended) end = id == 1 ? flows.now() : end;
      if (flows.now() == Time(0)) {
        flows.start(0, link, Bytes(1000), std::nullopt);
        flows.wake_at(milliseconds(500));
      } else if (flows.now() == milliseconds(500)) {
        flows.start(1, link, Bytes(20), std::nullopt);
      }
    });
    // The first settle computes one rate, the second three, in two waves. With the step in use from
    // the start the second flow gets nothing until 1 s, else its half at once.
    EXPECT_EQ(end, exact == 0 ? seconds(5) : milliseconds(4'500)) << exact;
    EXPECT_EQ(flows.step_used(), exact <= 4 ? seconds(1) : Time(0)) << exact;
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
