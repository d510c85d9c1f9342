// Histories of spot machines and schedules of faults for many seeds: they are possible, repeat,
// only grow with the horizon, and come at the rate that was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/workload/faults.hpp"
#include "core/workload/membership.hpp"
#include "tests/workload/small_machine.hpp"

namespace holdfast {
namespace {

SpotProcess process_of(Random& random) {
  SpotProcess process;
  process.arrivals_per_hour = random.uniform() < 0.1 ? 0 : 200 * random.uniform();
  process.initial = static_cast<std::uint32_t>(random.bits() % 20);
  process.lifetime = Distribution::lognormal(1 + 3600 * random.uniform(), 2 * random.uniform());
  process.notice = random.uniform() < 0.3 ? Time() : seconds(1 + random.bits() % 300);
  process.unannounced = static_cast<std::uint32_t>(random.bits() % 1'000'001);
  return process;
}

TEST(SpotEvents, ArePossibleRepeatAndGrowWithTheHorizon) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, 99);
    const SpotProcess process = process_of(random);
    const auto seats = static_cast<std::uint32_t>(1 + random.bits() % 30);
    const std::vector<MemberEvent> events = spot_events(process, seats, seconds(20'000), seed);
    const auto fault = fault_of(events, std::vector<char>(seats, 0));
    ASSERT_FALSE(fault) << fault->index << ": " << fault->message;
    EXPECT_EQ(events, spot_events(process, seats, seconds(20'000), seed));
    std::vector<MemberEvent> shorter = spot_events(process, seats, seconds(7'000), seed);
    ASSERT_LE(shorter.size(), events.size());
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), events.begin()));
    EXPECT_TRUE(shorter.size() == events.size() || events[shorter.size()].at >= seconds(7'000));
    std::map<std::uint32_t, Time> told;
    for (const MemberEvent& event : events) {
      if (event.kind == MemberEventKind::Notice) {
        told[event.seat] = event.gone;
        EXPECT_LE(event.gone - event.at, process.notice);
      } else if (event.kind == MemberEventKind::Kill && told.count(event.seat) > 0) {
        EXPECT_EQ(event.at, told[event.seat]);
        told.erase(event.seat);
      }
    }
  }
}

// With seats for everybody, arrivals are Poisson: n +- 5 sqrt(n); by Little's law the pool has
// rate x lifetime machines, and the share without notice is as asked for.
TEST(SpotEvents, ComeAtTheirRateAndStayTheirTime) {
  constexpr std::uint64_t kSeed = 11;
  SpotProcess process;
  process.arrivals_per_hour = 120;
  process.lifetime = Distribution::exponential(1800);
  process.notice = seconds(30);
  process.unannounced = 250'000;
  const Time horizon = seconds(2'000'000);
  const auto events = spot_events(process, 500, horizon, kSeed);
  double joins = 0;
  double notices = 0;
  double kills = 0;
  double lived = 0;
  std::map<std::uint32_t, Time> since;
  for (const MemberEvent& event : events) {
    if (event.kind == MemberEventKind::Join) {
      ++joins;
      since[event.seat] = event.at;
    }
    notices += event.kind == MemberEventKind::Notice ? 1 : 0;
    if (event.kind == MemberEventKind::Kill) {
      ++kills;
      lived += (event.at - since[event.seat]).seconds();
    }
  }
  const double expected = 120.0 / 3600 * horizon.seconds();
  EXPECT_NEAR(joins, expected, 5 * std::sqrt(expected)) << "seed " << kSeed;
  EXPECT_NEAR(lived / kills, 1800, 5 * 1800 / std::sqrt(kills)) << "seed " << kSeed;
  EXPECT_NEAR(notices / joins, 0.75, 5 * std::sqrt(0.25 * 0.75 / joins)) << "seed " << kSeed;
}

std::vector<FaultRule> rules_of(Random& random) {
  std::vector<FaultRule> rules;
  const std::uint64_t count = 1 + random.bits() % 4;
  for (std::uint64_t i = 0; i < count; ++i) {
    FaultRule rule;
    rule.kind = static_cast<FaultKind>(random.bits() % 8);
    const auto actions = actions_of(rule.kind);
    rule.action = actions[random.bits() % actions.size()];
    rule.targets = small_machine::targets_of(rule.kind);
    rule.share = 300'000;
    rule.period = seconds(1 + random.bits() % 20);
    rule.down_share = 1 + static_cast<std::uint32_t>(random.bits() % 1'000'000);
    if (random.uniform() < 0.7) rule.duration = seconds(1 + random.bits() % 50);
    if (random.uniform() < 0.5) {
      rule.when = AtRate{20 * random.uniform()};
    } else {
      rule.when = AtTime{seconds(random.bits() % 900)};
    }
    rules.push_back(rule);
  }
  return rules;
}

// Oracle: at each change, add up anew which faults are open.
TEST(FaultSchedule, IsOrderedGrowsAndAddsUp) {
  const Topology topology = small_machine::topology();
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, 98);
    const auto rules = rules_of(random);
    const FaultSchedule schedule = make_schedule(rules, topology, seconds(800), seed);
    const FaultSchedule longer = make_schedule(rules, topology, seconds(1600), seed);
    std::set<std::uint32_t> begun;
    std::map<std::uint32_t, const FaultChange*> open;
    std::set<std::pair<std::uint32_t, std::uint32_t>> hit;
    ActiveFaults active(topology);
    Time before;
    for (const FaultChange& change : schedule.timed) {
      ASSERT_GE(change.at, before);
      before = change.at;
      if (change.step == FaultStep::Begin) {
        ASSERT_LT(change.at, seconds(800));
        ASSERT_TRUE(begun.insert(change.fault).second);
        // A target of a rule is hit only while it is well.
        ASSERT_TRUE(hit.emplace(change.rule, change.target).second);
        open[change.fault] = &change;
      } else {
        ASSERT_EQ(open.count(change.fault), 1U);
        ASSERT_EQ(open[change.fault]->links, change.links);
        ASSERT_GT(change.at, open[change.fault]->at);
        open.erase(change.fault);
        hit.erase({change.rule, change.target});
      }
      active.apply(change);
      for (std::size_t l = 0; l < topology.links().size(); ++l) {
        std::uint32_t share = 1'000'000;
        for (const auto& [fault, each] : open) {
          if (std::count(each->links.begin(), each->links.end(), LinkId(l)) > 0) {
            share = std::min(share, each->share);
          }
        }
        ASSERT_EQ(active.share(LinkId(l)), share);
      }
      for (std::size_t n = 0; n < topology.nodes().size(); ++n) {
        const bool stopped = std::any_of(open.begin(), open.end(), [&](const auto& each) {
          const auto& workers = each.second->workers;
          return std::count(workers.begin(), workers.end(), NodeId(n)) > 0;
        });
        ASSERT_EQ(active.stopped(NodeId(n)), stopped);
      }
    }
    // What begins before the horizon does not depend on it.
    std::vector<std::pair<Time, std::uint32_t>> first;
    std::vector<std::pair<Time, std::uint32_t>> second;
    const auto begins = [](const FaultSchedule& from, auto& into) {
      for (const FaultChange& change : from.timed) {
        if (change.step == FaultStep::Begin && change.at < seconds(800)) {
          into.emplace_back(change.at, change.fault);
        }
      }
    };
    begins(schedule, first);
    begins(longer, second);
    EXPECT_EQ(first, second);
  }
}

TEST(FaultSchedule, FailsAtTheRateThatIsAskedFor) {
  constexpr std::uint64_t kSeed = 4;
  const Topology topology = small_machine::topology();
  FaultRule rule;
  rule.kind = FaultKind::Link;
  rule.action = FaultAction::Down;
  rule.targets = small_machine::targets_of(FaultKind::Link);
  rule.when = AtRate{2.0};
  rule.duration = seconds(900);
  // Well for 1,800 s on average, then down for 900 s: one fault in 2,700 s and target.
  const Time horizon = seconds(3'000'000);
  const FaultSchedule schedule = make_schedule({&rule, 1}, topology, horizon, kSeed);
  const double faults = static_cast<double>(schedule.timed.size()) / 2;
  const double expected = horizon.seconds() / 2700 * static_cast<double>(rule.targets.size());
  // Renewals vary less than a Poisson process.
  EXPECT_NEAR(faults, expected, 5 * std::sqrt(expected) + 1) << "seed " << kSeed;
}

}  // namespace
}  // namespace holdfast
