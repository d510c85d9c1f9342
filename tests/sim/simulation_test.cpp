// What a simulation reports: bytes, bins, events, failures; that it repeats.
#include "sim/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "core/error.hpp"
#include "sim/child_process.hpp"
#include "sim/engine_run.hpp"
#include "sim/result_codec.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

SimulationResult run(const Topology& topology, const Demand& demand, const Plan& plan,
                     const SimulationOptions& options = {}) {
  const Router router(topology);
  return simulate(router, demand, plan, options);
}

TEST(Simulation, RepeatsBitForBit) {
  const Topology topology = make_star({.hosts = 24, .digest_rate = Rate(3'000'000'000)});
  const Demand demand = make_demand(topology, 24, 50);
  const Plan plan = two_tree_plan(topology, demand, 2);
  SimulationOptions options;
  options.trace = Trace::Block;
  const auto first = encode_result(run(topology, demand, plan, options));
  const auto second = encode_result(run(topology, demand, plan, options));
  EXPECT_EQ(first, second);
}

// The public way to start flows gives the same times and bytes, bit for bit. (What happens in one
// instant may come in another order.)
TEST(Simulation, BothFlowDriversAgree) {
  if (std::string_view(HOLDFAST_SIMGRID_VERSION).substr(0, 4) != "3.32") {
    GTEST_SKIP() << "SimGrid " << HOLDFAST_SIMGRID_VERSION << " has only one of them";
  }
  ASSERT_EQ(best_flow_driver(), FlowDriver::KernelAction);
  const Topology topology = make_star({.hosts = 24, .digest_rate = Rate(3'000'000'000)});
  const Topology wan = make_wan(3);
  for (const Topology* machine : {&topology, &wan}) {
    const auto workers = static_cast<std::uint32_t>(machine == &wan ? 6 : 24);
    const Demand demand = make_demand(*machine, workers, 40);
    const Plan plan = two_tree_plan(*machine, demand, 3);
    const auto with = [&](FlowDriver driver) {
      ChildProcess child([&](ChildProcess::Channel& out) {
        const Router router(*machine);
        out.send(1, encode_result(run_engines(router, demand, plan, {}, {}, driver)));
      });
      const auto frame = child.next(60'000);
      EXPECT_TRUE(frame) << child.how_it_ended();
      SimulationResult result = frame ? decode_result(frame->payload) : SimulationResult{};
      std::sort(result.events.begin(), result.events.end(),
                [](const TraceEvent& a, const TraceEvent& b) {
                  return std::tie(a.at, a.worker, a.kind, a.percent) <
                         std::tie(b.at, b.worker, b.kind, b.percent);
                });
      return encode_result(result);
    };
    EXPECT_EQ(with(best_flow_driver()), with(FlowDriver::DirectComm));
  }
}

// A chain 0 -> 1 -> 2 over a switch: both hops cross two wires, both enter a host through its NIC.
TEST(Simulation, CountsBytesByChannel) {
  const Topology topology = make_star({.hosts = 3});
  const Demand demand = make_demand(topology, 3, 30);
  const auto result = run(topology, demand, tree_plan(topology, demand, chain_parents(2), 2));
  const Bytes all = kBlock * 30;
  EXPECT_EQ(result.deliveries, 60U);
  EXPECT_EQ(result.moved.gpu, all * 2);
  EXPECT_EQ(result.moved.nic, all * 2);
  EXPECT_EQ(result.moved.wan, Bytes(0));
  std::map<std::string, Bytes> totals;
  for (const ChannelUse& use : result.channels) {
    totals[topology.channel_name(use.channel)] = use.total;
    ASSERT_EQ(use.bins.size(), 50U);
    Bytes sum;
    for (const Bytes bin : use.bins) sum += bin;
    EXPECT_EQ(sum, use.total);
  }
  const std::map<std::string, Bytes> expected{{"wire0 >", all}, {"wire1 <", all}, {"wire1 >", all},
                                              {"wire2 <", all}, {"pcie0 >", all}, {"pcie1 <", all},
                                              {"pcie1 >", all}, {"pcie2 <", all}};
  EXPECT_EQ(totals, expected);
  EXPECT_TRUE(std::is_sorted(
      result.channels.begin(), result.channels.end(),
      [](const ChannelUse& a, const ChannelUse& b) { return a.channel < b.channel; }));
}

// One flow at the full rate all the time: every bin but the ragged ends carries the same.
TEST(Simulation, BinsFollowTheFlow) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 1000);
  SimulationOptions options;
  options.time_bins = 10;
  const auto result =
      run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2), options);
  for (const ChannelUse& use : result.channels) {
    ASSERT_EQ(use.bins.size(), 10U);
    for (const Bytes bin : use.bins) {
      EXPECT_NEAR(static_cast<double>(bin.count()), 1e8, 2e4) << topology.channel_name(use.channel);
    }
  }
}

TEST(Simulation, LinksInsideHostsGetOneBinInLargeRuns) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 10);
  SimulationOptions options;
  options.single_bin_above = 1;
  const auto result =
      run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2), options);
  ASSERT_EQ(result.channels.size(), 4U);
  for (const ChannelUse& use : result.channels) {
    const bool inside = topology.link(use.channel.link()).kind == LinkKind::Pcie;
    EXPECT_EQ(use.bins.size(), inside ? 1U : 50U);
    EXPECT_EQ(use.total, kBlock * 10);
  }
}

TEST(Simulation, TracesTellTheStory) {
  const Topology topology = make_star({.hosts = 3});
  const Demand demand = make_demand(topology, 3, 20);
  const Plan plan = tree_plan(topology, demand, chain_parents(2), 2);
  std::map<TraceKind, int> kinds;
  SimulationOptions options;
  const auto count = [&](Trace trace) {
    options.trace = trace;
    auto result = run(topology, demand, plan, options);
    kinds.clear();
    for (const TraceEvent& event : result.events) ++kinds[event.kind];
    EXPECT_TRUE(
        std::is_sorted(result.events.begin(), result.events.end(),
                       [](const TraceEvent& a, const TraceEvent& b) { return a.at < b.at; }));
    return result;
  };
  EXPECT_TRUE(count(Trace::None).events.empty());
  count(Trace::Worker);
  EXPECT_EQ(kinds, (std::map<TraceKind, int>{
                       {TraceKind::Start, 2}, {TraceKind::Progress, 18}, {TraceKind::End, 2}}));
  const auto result = count(Trace::Block);
  EXPECT_EQ(kinds[TraceKind::BlockDone], 40);
  // Worker 1's third block: two latencies and three block times after the start.
  const auto third =
      std::find_if(result.events.begin(), result.events.end(), [](const TraceEvent& event) {
        return event.kind == TraceKind::BlockDone && event.worker == WorkerId(1U) &&
               event.block == BlockId(2U);
      });
  ASSERT_NE(third, result.events.end());
  EXPECT_EQ(third->at, kLatency * 2 + kBlockTime * 3);
  EXPECT_EQ(third->source, WorkerId(0U));
  EXPECT_EQ(third->stripe, StripeId(0U));
}

// Above a number of workers, links outside hosts keep their bins only if they are used most.
TEST(Simulation, KeepsTheBinsOfTheBusiestLinks) {
  const Topology topology = make_star({.hosts = 6});
  const Demand demand = make_demand(topology, 6, 40);
  // Worker 1 feeds all others: its wire carries four copies, the holder's and each receiver's one.
  const Plan plan = tree_plan(topology, demand, {0, 1, 1, 1, 1}, 2);
  SimulationOptions options;
  const SimulationResult all = run(topology, demand, plan, options);
  options.single_bin_above = 5;
  options.links_with_bins = 1;
  const SimulationResult some = run(topology, demand, plan, options);
  ASSERT_EQ(all.channels.size(), some.channels.size());
  std::vector<std::string> with_bins;
  for (std::size_t c = 0; c < all.channels.size(); ++c) {
    EXPECT_EQ(all.channels[c].bins.size(), options.time_bins);
    EXPECT_EQ(some.channels[c].total, all.channels[c].total);
    Bytes sum;
    for (const Bytes bin : some.channels[c].bins) sum += bin;
    EXPECT_EQ(sum, all.channels[c].total);
    if (some.channels[c].bins.size() == 1) continue;
    EXPECT_EQ(some.channels[c].bins, all.channels[c].bins);
    with_bins.push_back(topology.channel_name(some.channels[c].channel));
  }
  EXPECT_EQ(with_bins, std::vector<std::string>{"wire1 >"});
}

// The deadline of a block ends the run with the name of what went wrong; what was moved counts.
TEST(Simulation, AFailedReadEndsTheRun) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 10);
  SimulationOptions options;
  options.read_deadline = microseconds(1500);  // the second block is asked for at 0, here at 2 ms
  const auto result =
      run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2), options);
  ASSERT_TRUE(result.failure);
  EXPECT_NE(result.failure->find("gpu1 needs block"), std::string::npos) << *result.failure;
  EXPECT_NE(result.failure->find("deadline"), std::string::npos) << *result.failure;
  EXPECT_EQ(result.deliveries, 1U);
  ASSERT_FALSE(result.events.empty());
  EXPECT_EQ(result.events.back().kind, TraceKind::Fault);
  EXPECT_EQ(result.events.back().at, microseconds(1500));
  // One block and what of the second had left: the flow ran from L + 1 ms to 1.5 ms.
  EXPECT_EQ(result.moved.gpu, kBlock + Bytes(495'000));
}

TEST(Simulation, ReportsProgress) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 100);
  std::vector<double> seen;
  SimulationOptions options;
  options.progress = [&seen](double fraction) { seen.push_back(fraction); };
  run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2), options);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  ASSERT_FALSE(seen.empty());
  EXPECT_GT(seen.front(), 0.0);
  EXPECT_EQ(seen.back(), 1.0);
}

// The callback may give up: the child is ended, and another simulation works.
TEST(Simulation, ProgressMayThrow) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 100);
  const Plan plan = tree_plan(topology, demand, chain_parents(1), 2);
  SimulationOptions options;
  options.progress = [](double) { throw std::runtime_error("enough"); };
  EXPECT_THROW(run(topology, demand, plan, options), std::runtime_error);
  EXPECT_FALSE(run(topology, demand, plan).failure);
}

TEST(Simulation, BlocksOfWorkersThatHaveThemAreNotWaitedFor) {
  const Topology topology = make_star({.hosts = 2});
  Demand demand = make_demand(topology, 2, 4);
  Plan nothing = make_plan(topology, demand, {});
  const auto result = run(topology, demand, nothing);
  EXPECT_FALSE(result.failure);
  EXPECT_EQ(result.makespan, Time(0));
  EXPECT_EQ(result.deliveries, 0U);
}

TEST(Simulation, ErrorsOfTheChildComeThrough) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 4);
  Plan plan = tree_plan(topology, demand, chain_parents(1), 2);
  plan.stripes[0].edges[0].child = WorkerId(99U);
  try {
    run(topology, demand, plan);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadPlan);
    EXPECT_NE(error.message().find("worker"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
