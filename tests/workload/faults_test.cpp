#include "core/workload/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/workload/small_machine.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Faults : public ::testing::Test {
 protected:
  FaultRule rule(FaultKind kind, FaultAction action, const std::string& target) const {
    FaultRule made;
    made.kind = kind;
    made.action = action;
    made.when = AtTime{seconds(2)};
    if (kind == FaultKind::Link) {
      made.targets = {topology_.find_link(target).value()};
    } else if (kind == FaultKind::Worker || kind == FaultKind::Nic) {
      made.targets = {topology_.find_node(target).value()};
    } else if (kind != FaultKind::Coordinator) {
      made.targets = {topology_.find_domain(target).value()};
    }
    return made;
  }
  FaultSchedule schedule(const FaultRule& one, Time horizon = seconds(100)) const {
    return make_schedule({&one, 1}, topology_, horizon, 1);
  }
  std::vector<std::string> links(const FaultChange& change) const {
    std::vector<std::string> names;
    for (const LinkId link : change.links) names.push_back(topology_.link(link).name);
    return names;
  }
  std::vector<std::string> workers(const FaultChange& change) const {
    std::vector<std::string> names;
    for (const NodeId node : change.workers) names.push_back(topology_.node(node).name);
    return names;
  }
  const Topology topology_ = small_machine::topology();
};

TEST_F(Faults, AKilledHostTakesItsWorkersAndLinks) {
  const auto made = schedule(rule(FaultKind::Host, FaultAction::Kill, "dc0.r0.h1"));
  ASSERT_EQ(made.timed.size(), 1U);
  EXPECT_EQ(made.timed[0].at, seconds(2));
  EXPECT_THAT(workers(made.timed[0]),
              UnorderedElementsAre("dc0.r0.h1.gpu0", "dc0.r0.h1.gpu1", "dc0.r0.h1.mem"));
  EXPECT_THAT(links(made.timed[0]),
              UnorderedElementsAre("dc0.r0.h1.gpu0.link", "dc0.r0.h1.gpu1.link",
                                   "dc0.r0.h1.mem.link", "dc0.r0.h1.nic.link", "dc0.r0.h1.uplink"));
  EXPECT_EQ(made.timed[0].share, 0U);
}

TEST_F(Faults, APartitionCutsOnlyWhatLeavesTheDomain) {
  const auto rack = schedule(rule(FaultKind::Rack, FaultAction::Partition, "dc0.r0"));
  EXPECT_THAT(links(rack.timed.at(0)), ElementsAre("dc0.r0.trunk"));
  EXPECT_THAT(workers(rack.timed[0]), IsEmpty());
  const auto center = schedule(rule(FaultKind::Datacenter, FaultAction::Partition, "dc1"));
  EXPECT_THAT(links(center.timed.at(0)), ElementsAre("wan"));
  const auto host = schedule(rule(FaultKind::Host, FaultAction::Partition, "dc0.r0.h0"));
  EXPECT_THAT(links(host.timed.at(0)), ElementsAre("dc0.r0.h0.uplink"));
}

TEST_F(Faults, ANicLosesItsCableAndAWorkerNothingElse) {
  EXPECT_THAT(links(schedule(rule(FaultKind::Nic, FaultAction::Down, "dc0.r0.h0.nic")).timed.at(0)),
              ElementsAre("dc0.r0.h0.uplink"));
  const auto worker = schedule(rule(FaultKind::Worker, FaultAction::Kill, "dc0.r0.h0.gpu1"));
  EXPECT_THAT(workers(worker.timed.at(0)), ElementsAre("dc0.r0.h0.gpu1"));
  EXPECT_THAT(links(worker.timed[0]), IsEmpty());
}

TEST_F(Faults, ASlowLinkKeepsItsShareForItsTime) {
  FaultRule slow = rule(FaultKind::Link, FaultAction::Slow, "wan");
  slow.share = 250'000;
  slow.duration = seconds(5);
  const auto made = schedule(slow);
  ASSERT_EQ(made.timed.size(), 2U);
  EXPECT_EQ(made.timed[0].share, 250'000U);
  EXPECT_EQ(made.timed[1].at, seconds(7));
  EXPECT_EQ(made.timed[1].step, FaultStep::End);
  ActiveFaults active(topology_);
  const LinkId wan = topology_.find_link("wan");
  active.apply(made.timed[0]);
  EXPECT_EQ(active.share(wan), 250'000U);
  active.apply(made.timed[1]);
  EXPECT_EQ(active.share(wan), 1'000'000U);
}

TEST_F(Faults, AFlapGoesDownFirstAndEndsUp) {
  FaultRule flap = rule(FaultKind::Link, FaultAction::Flap, "wan");
  flap.period = seconds(4);
  flap.down_share = 250'000;
  flap.duration = seconds(8) + milliseconds(500);
  std::vector<std::int64_t> at;
  for (const FaultChange& change : schedule(flap).timed) {
    at.push_back(change.at.picoseconds() / 1'000'000'000);
    EXPECT_EQ(change.step, at.size() % 2 == 1 ? FaultStep::Begin : FaultStep::End);
  }
  EXPECT_THAT(at, ElementsAre(2000, 3000, 6000, 7000, 10'000, 10'500));
}

TEST_F(Faults, AFlapWithoutEndGoesOnToTheHorizon) {
  FaultRule flap = rule(FaultKind::Link, FaultAction::Flap, "wan");
  flap.period = seconds(10);
  flap.down_share = 500'000;
  EXPECT_EQ(schedule(flap, seconds(32)).timed.size(), 6U);
}

TEST_F(Faults, TheCoordinatorCrashesAndComesBack) {
  FaultRule crash = rule(FaultKind::Coordinator, FaultAction::Crash, "");
  crash.duration = seconds(5);
  const auto made = schedule(crash);
  ASSERT_EQ(made.timed.size(), 2U);
  ActiveFaults active(topology_);
  active.apply(made.timed[0]);
  EXPECT_TRUE(active.coordinator_stopped());
  active.apply(made.timed[1]);
  EXPECT_FALSE(active.coordinator_stopped());
}

TEST_F(Faults, ATriggerKeepsTimesRelativeToIt) {
  FaultRule half = rule(FaultKind::Host, FaultAction::Kill, "dc0.r0.h0");
  half.when = AtTransfer{3, 500'000};
  half.duration = seconds(9);
  const auto made = schedule(half);
  EXPECT_THAT(made.timed, IsEmpty());
  ASSERT_EQ(made.triggered.size(), 1U);
  EXPECT_EQ(made.triggered[0].when.update, 3U);
  EXPECT_EQ(made.triggered[0].changes.at(0).at, Time());
  EXPECT_EQ(made.triggered[0].changes.at(1).at, seconds(9));
}

TEST_F(Faults, OverlappingFaultsLeaveTheLeastShare) {
  FaultRule slow = rule(FaultKind::Link, FaultAction::Slow, "wan");
  slow.share = 250'000;
  FaultRule cut = rule(FaultKind::Datacenter, FaultAction::Partition, "dc0");
  cut.duration = seconds(1);
  const std::vector<FaultRule> rules{slow, cut};
  const auto made = make_schedule(rules, topology_, seconds(9), 1);
  ActiveFaults active(topology_);
  const LinkId wan = topology_.find_link("wan");
  std::vector<std::uint32_t> shares;
  for (const FaultChange& change : made.timed) {
    active.apply(change);
    shares.push_back(active.share(wan));
  }
  EXPECT_THAT(shares, ElementsAre(250'000U, 0U, 250'000U));
}

TEST_F(Faults, TooManyChangesAreRefused) {
  FaultRule flap = rule(FaultKind::Link, FaultAction::Flap, "wan");
  flap.period = microseconds(1);
  flap.down_share = 500'000;
  try {
    (void)schedule(flap);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
  }
}

TEST(FaultKinds, AllowWhatMakesSense) {
  EXPECT_TRUE(can(FaultKind::Nic, FaultAction::Flap));
  EXPECT_FALSE(can(FaultKind::Worker, FaultAction::Slow));
  EXPECT_FALSE(can(FaultKind::Coordinator, FaultAction::Kill));
  EXPECT_TRUE(can(FaultKind::Datacenter, FaultAction::Partition));
}

}  // namespace
}  // namespace holdfast
