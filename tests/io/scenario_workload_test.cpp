// Workloads, faults, retention, the protocol's options and baselines, as scenarios write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/io/scenario.hpp"
#include "core/io/scenario_members.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kGroups =
    "  trainer: {place: {hosts: h0}, layout: tp2, role: trainer}\n"
    "  rollout: {place: {hosts: 'h[1-2]'}, layout: tp1}\n"
    "  far: {place: {hosts: h3}, layout: tp4, reliability: spot}\n"
    "  stage: {place: {host_memory: h3.mem}, layout: tp1}\n";

// Complete; `more` are keys of the workload, `rest` of the scenario.
std::string workload(const std::string& more = "loop: synchronous", const std::string& rest = "",
                     const std::string& kind = "standalone",
                     const std::string& rollouts = "[rollout, far]") {
  return samples::scenario_text(
      kGroups, fmt::format("workload:\n"
                           "  kind: {}\n"
                           "  trainers: trainer\n"
                           "  rollouts: {}\n"
                           "  steps: 3\n"
                           "  step_time: 10s\n"
                           "  batch: 64\n"
                           "  lengths: {{lognormal: {{median: 1000, sigma: 1.0}}, most: 8192}}\n"
                           "  token_time: 20ms\n"
                           "  {}\n{}",
                           kind, rollouts, more, rest));
}

TEST(Workload, ReadsAStandaloneLoop) {
  const Scenario s = parse_scenario(
      workload("loop: asynchronous\n  write_time: 1s\n  slots: 16\n  partial_rollouts: true\n"
               "  staleness: 2",
               "options: {destination: shadow}\nseed: 5\n"),
      "s.yaml");
  ASSERT_TRUE(s.workload);
  const ScenarioWorkload& w = *s.workload;
  EXPECT_EQ(w.kind, WorkloadKind::Standalone);
  ASSERT_EQ(w.trainers.size(), 1U);
  EXPECT_EQ(w.trainers[0].group, 0U);
  ASSERT_EQ(w.rollouts.size(), 2U);
  EXPECT_EQ(w.rollouts[1].group, 2U);
  EXPECT_EQ(w.loop, TrainingLoop::Asynchronous);
  EXPECT_EQ(w.steps, 3U);
  EXPECT_EQ(w.step_time, seconds(10));
  EXPECT_EQ(w.write_time, seconds(1));
  EXPECT_EQ(w.batch, 64U);
  EXPECT_DOUBLE_EQ(w.lengths.quantile(0.5), 1000);
  EXPECT_DOUBLE_EQ(w.lengths.most(), 8192);
  EXPECT_EQ(w.token_time, milliseconds(20));
  EXPECT_EQ(w.slots, 16U);
  EXPECT_TRUE(w.partial_rollouts);
  EXPECT_EQ(w.staleness, 2U);
  EXPECT_EQ(s.update.destination, Destination::Shadow);
  // Its largest update.
  ASSERT_EQ(s.holders.size(), 1U);
  EXPECT_EQ(s.holders[0].group, 0U);
  ASSERT_EQ(s.update.receivers.size(), 2U);
  EXPECT_THAT(s.warnings, ElementsAre(HasSubstr("group 'stage' has no effect")));
  EXPECT_TRUE(draws(s));
}

TEST(Workload, HasDefaults) {
  const Scenario s = parse_scenario(workload(), "s.yaml");
  EXPECT_EQ(s.workload->slots, 64U);
  EXPECT_EQ(s.workload->write_time, Time());
  EXPECT_FALSE(s.workload->partial_rollouts);
  EXPECT_EQ(s.workload->staleness, 0U);
  EXPECT_EQ(s.update.destination, Destination::InPlace);
  EXPECT_EQ(parse_scenario(workload("loop: asynchronous"), "s.yaml").workload->staleness, 1U);
  EXPECT_FALSE(s.protocol.retain);
  EXPECT_GT(s.protocol.detection.worker, s.protocol.heartbeat);
  EXPECT_GT(s.protocol.detection.link, Time());
  EXPECT_EQ(s.protocol.on_deadline, OnDeadline::Fail);
  EXPECT_EQ(s.protocol.on_newer, OnNewer::Finish);
}

TEST(Workload, GivesADemandOfItsLargestUpdate) {
  const Scenario s =
      parse_scenario(workload("loop: synchronous\n  staging: stage", "", "cross_dc"), "s.yaml");
  const UpdateTask task = make_update(s, samples::machine(4, 4), samples::model());
  std::vector<std::string> receiving;
  for (const Replica& replica : task.replicas) {
    if (replica.receives) receiving.push_back(replica.name);
  }
  EXPECT_EQ(receiving.size(), 8U + 1 + 1);
  EXPECT_EQ(s.workload->staging.size(), 1U);
}

TEST(Workload, ReadsMembersOfAnElasticOne) {
  const Scenario s = parse_scenario(
      workload("loop: asynchronous\n  members: {arrivals: 0.5/min, initial: 1, notice: 2min,\n"
               "    lifetime: {exponential: {mean: 1h}, most: 6h}, without_notice: 10%}",
               "", "elastic"),
      "s.yaml");
  ASSERT_TRUE(s.workload->members && s.workload->members->process);
  const SpotProcess& process = *s.workload->members->process;
  EXPECT_DOUBLE_EQ(process.arrivals_per_hour, 30);
  EXPECT_EQ(process.initial, 1U);
  EXPECT_EQ(process.notice, seconds(120));
  EXPECT_EQ(process.unannounced, 100'000U);
  EXPECT_DOUBLE_EQ(process.lifetime.most(), 6 * 3600);
  const std::vector<Seat> seats = seats_of(s, samples::machine(4, 4));
  ASSERT_EQ(seats.size(), 1U);  // 'far' alone is on spot machines
  EXPECT_EQ(seats[0].group, 2U);
  EXPECT_EQ(seats[0].workers.size(), 4U);
}

TEST(Workload, ReadsATraceOfMembers) {
  const Scenario s = parse_scenario(
      workload("loop: asynchronous\n  members: {trace: spot.csv}", "", "elastic"), "s.yaml");
  ASSERT_TRUE(s.workload->members && s.workload->members->trace);
  EXPECT_EQ(s.workload->members->trace->text, "spot.csv");
  EXPECT_EQ(s.workload->members->trace->place.line, 24);
}

TEST(Faults, AreReadAndResolved) {
  const Scenario s = parse_scenario(
      workload("loop: synchronous",
               "faults:\n"
               "  - {kind: host, target: 'h[1-2]', action: kill, at_transfer: 50%, update: 2}\n"
               "  - {kind: link, target: ['h*.uplink', h0.uplink], action: slow, factor: 25%,\n"
               "     at: 2s, duration: 3s}\n"
               "  - {kind: nic, target: h0.nic, action: flap, period: 2s, duty: 25%, at: 0s}\n"
               "  - {kind: datacenter, target: dc1, action: partition, rate: 2/day,\n"
               "     duration: 1min}\n"
               "  - {kind: coordinator, action: crash, at: 1s, restart_after: 5s}\n"
               "  - {kind: worker, target: h1.gpu3, action: kill, at: 1s}\n"),
      "s.yaml");
  const Topology topology = samples::machine(4, 4);
  const std::vector<FaultRule> rules = rules_of(s.faults, topology);
  ASSERT_EQ(rules.size(), 6U);
  EXPECT_EQ(rules[0].kind, FaultKind::Host);
  EXPECT_THAT(rules[0].targets,
              ElementsAre(topology.find_domain("h1").value(), topology.find_domain("h2").value()));
  EXPECT_EQ(std::get<AtTransfer>(rules[0].when).update, 2U);
  EXPECT_EQ(std::get<AtTransfer>(rules[0].when).share, 500'000U);
  EXPECT_EQ(rules[1].targets.size(), 4U);
  EXPECT_EQ(rules[1].share, 250'000U);
  EXPECT_EQ(rules[1].duration, seconds(3));
  EXPECT_EQ(rules[2].action, FaultAction::Flap);
  EXPECT_EQ(rules[2].period, seconds(2));
  EXPECT_EQ(rules[2].down_share, 250'000U);
  EXPECT_DOUBLE_EQ(std::get<AtRate>(rules[3].when).per_hour, 1.0 / 12);
  EXPECT_EQ(rules[4].duration, seconds(5));
  EXPECT_THAT(rules[4].targets, IsEmpty());
  EXPECT_EQ(std::get<AtTime>(rules[5].when).at, seconds(1));
  EXPECT_EQ(rules[5].duration, std::nullopt);
}

TEST(Faults, ThatNameNothingAreRefusedAtThePattern) {
  const auto message = [](const std::string& fault) {
    const Scenario s =
        parse_scenario(workload("loop: synchronous", "faults: [" + fault + "]\n"), "s.yaml");
    std::vector<std::string> warnings;
    try {
      (void)rules_of(s.faults, samples::machine(4, 4), &warnings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return warnings.empty() ? "fine" : warnings.front();
  };
  EXPECT_THAT(message("{kind: host, target: h9, action: kill, at: 1s}"),
              HasSubstr("s.yaml:24:31: no host is called 'h9'"));
  EXPECT_THAT(message("{kind: host, target: dc0, action: kill, at: 1s}"),
              HasSubstr("no host is called 'dc0'"));
  EXPECT_THAT(message("{kind: rack, target: r0, action: kill, at: 1s}"),
              HasSubstr("this topology has no rack"));
  EXPECT_THAT(message("{kind: host, target: 'h[0-9]', action: kill, at: 1s}"),
              HasSubstr("'h[0-9]' names more than there is"));
}

TEST(Protocol, IsRead) {
  const Scenario s = parse_scenario(
      workload("loop: synchronous",
               "retain: {copies: 2, level: rack, versions: 3}\n"
               "options: {planning_time: 0s, gather: 1ms, heartbeat: 100ms, on_deadline: revoke,\n"
               "  detection: {worker: 300ms, link: 1s, coordinator: 5s}, on_newer: restart,\n"
               "  host_memory_budget: 64GB, deadlines: {fetch: 30s}}\n"),
      "s.yaml");
  const ScenarioProtocol& p = s.protocol;
  ASSERT_TRUE(p.retain);
  EXPECT_EQ(p.retain->copies, 2U);
  EXPECT_EQ(p.retain->level, Level::Rack);
  EXPECT_EQ(p.retain->versions, 3U);
  EXPECT_EQ(p.planning_time, Time());
  EXPECT_EQ(p.gather, milliseconds(1));
  EXPECT_EQ(p.heartbeat, milliseconds(100));
  EXPECT_EQ(p.detection.worker, milliseconds(300));
  EXPECT_EQ(p.detection.link, seconds(1));
  EXPECT_EQ(p.detection.coordinator, seconds(5));
  EXPECT_EQ(p.host_memory_budget, Bytes(64'000'000'000));
  EXPECT_EQ(p.deadlines.fetch, seconds(30));
  EXPECT_EQ(p.deadlines.publish, CallDeadlines{}.publish);
  EXPECT_EQ(p.on_deadline, OnDeadline::Revoke);
  EXPECT_EQ(p.on_newer, OnNewer::Restart);
}

TEST(Protocol, IsIdleInAnUpdateWithoutFaults) {
  const auto warnings = [](const std::string& rest) {
    return parse_scenario(samples::scenario_text(
                              "  trainer: {place: {hosts: h0}, layout: tp2}\n"
                              "  rollout: {place: {hosts: h1}, layout: tp1}\n"
                              "  last: {place: {hosts: h2}, layout: tp4}\n",
                              "holders: [trainer]\nupdate: {receivers: [rollout, last]}\n" + rest),
                          "s.yaml")
        .warnings;
  };
  EXPECT_THAT(warnings("options: {gather: 1ms}\n"),
              ElementsAre(HasSubstr("s.yaml:15:19: 'gather' has no effect")));
  const std::string fault = "faults: [{kind: host, target: h0, action: kill, at: 1s}]\n";
  EXPECT_THAT(warnings("options: {gather: 1ms}\n" + fault), IsEmpty());
  EXPECT_THAT(warnings("options: {host_memory_budget: 1GB}\n" + fault),
              ElementsAre(HasSubstr("nothing is kept without 'retain'")));
}

TEST(Baselines, AreRead) {
  const Scenario s = parse_scenario(
      workload("loop: synchronous",
               "baselines:\n"
               "  nccl: {init_time: 12s, algorithm: tree, channels: 2}\n"
               "  ucx: {connect_time: 1ms}\n"
               "  store: {place: {host_memory: 'h[0-1].mem'}, bandwidth: 10GB/s, put_time: 0s,\n"
               "          get_time: 3ms}\n"),
      "s.yaml");
  EXPECT_EQ(s.baselines.nccl.init_time, seconds(12));
  EXPECT_EQ(s.baselines.nccl.algorithm, NcclAlgorithm::Tree);
  EXPECT_EQ(s.baselines.nccl.channels, 2U);
  EXPECT_EQ(s.baselines.ucx.connect_time, milliseconds(1));
  ASSERT_EQ(s.baselines.store.hosts.size(), 1U);
  EXPECT_EQ(s.baselines.store.bandwidth, Rate(10'000'000'000));
  EXPECT_EQ(s.baselines.store.put_time, Time());
  EXPECT_EQ(s.baselines.store.get_time, milliseconds(3));
}

TEST(ScenarioReader, SaysWhatASingleUpdateCannotDo) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      refuse_more_than_an_update(parse_scenario(text, "s.yaml"));
    } catch (const Error& error) {
      return error.what();
    }
    return "fine";
  };
  EXPECT_THAT(message(workload()), HasSubstr("the scenario has a workload"));
  const std::string update =
      samples::scenario_text(kGroups, "holders: [trainer]\nupdate: {receivers: [rollout]}\n");
  EXPECT_EQ(message(update), "fine");
  EXPECT_THAT(message(update + "retain: {copies: 2}\n"),
              HasSubstr("16:10: this is about one update"));
  EXPECT_THAT(message(update + "faults: [{kind: host, target: h0, action: kill, at: 1s}]\n"),
              HasSubstr("the scenario has faults"));
}

// `find` is replaced in a good scenario; what is said of it, in which column of its line.
struct Wrong {
  const char* what;
  const char* find;
  const char* replace;
  ErrorCode code;
  int line;
  int column;
  const char* message;
};

const Wrong kWrong[] = {
    {"unknown kind", "kind: elastic", "kind: elastc", ErrorCode::BadValue, 15, 9, "elastic"},
    {"unknown group", "trainers: trainer", "trainers: trianer", ErrorCode::UnknownName, 16, 13,
     "did you mean 'trainer'"},
    {"a group twice", "[rollout, far]", "[rollout, far, rollout]", ErrorCode::Duplicate, 17, 28,
     "has a part"},
    {"a trainer as rollout", "[rollout, far]", "[far, trainer]", ErrorCode::Duplicate, 17, 19,
     "has a part"},
    {"memory as rollout", "[rollout, far]", "[far, stage]", ErrorCode::BadValue, 17, 19,
     "where nothing is generated"},
    {"spot trainer", "trainers: trainer\n  rollouts: [rollout, far]",
     "trainers: far\n  rollouts: rollout", ErrorCode::BadValue, 16, 13, "reliable ones"},
    {"no steps", "steps: 3", "steps: 0", ErrorCode::BadValue, 18, 10, "from 1"},
    {"no step time", "step_time: 10s", "step_time: 0s", ErrorCode::BadValue, 19, 14, "step_time"},
    {"bare time", "step_time: 10s", "step_time: 10", ErrorCode::BadUnit, 19, 14, "unit"},
    {"no batch", "  batch: 64\n", "", ErrorCode::MissingKey, 15, 3, "batch"},
    {"two shapes", "lognormal:", "constant: 4, lognormal:", ErrorCode::BadValue, 21, 13,
     "exactly one of"},
    {"no shape", "{lognormal: {median: 1000, sigma: 1.0}, most: 8192}", "{most: 8192}",
     ErrorCode::BadValue, 21, 13, "exactly one of"},
    {"negative sigma", "sigma: 1.0", "sigma: -1", ErrorCode::BadValue, 21, 46, "from 0"},
    {"heavy tail", "{lognormal: {median: 1000, sigma: 1.0}, most: 8192}",
     "{pareto: {least: 10, shape: 1}}", ErrorCode::BadValue, 21, 40, "infinite"},
    {"most below least", "{lognormal: {median: 1000, sigma: 1.0}, most: 8192}",
     "{pareto: {least: 10, shape: 2}, most: 10}", ErrorCode::BadValue, 21, 50, "more than"},
    {"table below 100%", "{lognormal: {median: 1000, sigma: 1.0}, most: 8192}",
     "{table: [{tokens: 5, share: 60%}]}", ErrorCode::BadValue, 21, 20, "60%"},
    {"table descends", "{lognormal: {median: 1000, sigma: 1.0}, most: 8192}",
     "{table: [{tokens: 5, share: 60%}, {tokens: 4, share: 40%}]}", ErrorCode::BadValue, 21, 55,
     "ascend"},
    {"staleness in step", "loop: asynchronous", "loop: synchronous\n  staleness: 1",
     ErrorCode::NoEffect, 24, 3, "latest version"},
    {"write too long", "loop: asynchronous", "loop: asynchronous\n  write_time: 11s",
     ErrorCode::BadValue, 24, 15, "part of 'step_time'"},
    {"staging elsewhere", "loop: asynchronous", "loop: asynchronous\n  staging: stage",
     ErrorCode::NoEffect, 24, 3, "cross_dc"},
    {"nobody joins", "arrivals: 20/h, ", "", ErrorCode::MissingKey, 24, 13, "nobody ever joins"},
    {"bare rate", "20/h", "20", ErrorCode::BadUnit, 24, 23, "'20/h'"},
    {"unknown rate", "20/h", "20/hour", ErrorCode::BadUnit, 24, 23, "'20/h'"},
    {"infinite rate", "20/h", "inf/h", ErrorCode::BadUnit, 24, 23, "'20/h'"},
    {"no rate", "20/h", "0/h", ErrorCode::BadUnit, 24, 23, "'20/h'"},
    {"no notice", "notice: 2min, without_notice: 10%", "without_notice: 10%", ErrorCode::NoEffect,
     24, 66, "nobody gets one"},
    {"trace and rate", "{arrivals: 20/h", "{trace: a.csv, arrivals: 20/h", ErrorCode::NoEffect, 24,
     27, "trace says"},
    {"holders", "workload:", "holders: [trainer]\nworkload:", ErrorCode::NoEffect, 14, 1,
     "trainers of a workload"},
    {"unknown fault", "kind: host", "kind: hots", ErrorCode::BadValue, 25, 17, "host"},
    {"impossible", "action: kill", "action: slow", ErrorCode::BadValue, 25, 43, "'kill'"},
    {"no target", "target: h1, ", "", ErrorCode::MissingKey, 25, 11, "target"},
    {"two times", "at: 1s", "at: 1s, rate: 1/h", ErrorCode::BadValue, 25, 11, "exactly one of"},
    {"no time", ", at: 1s", "", ErrorCode::MissingKey, 25, 11, "exactly one of"},
    {"at the end", "at: 1s", "at_transfer: 100%", ErrorCode::BadValue, 25, 62, "under way"},
    {"update of a time", "at: 1s", "at: 1s, update: 2", ErrorCode::NoEffect, 25, 57, "at_transfer"},
    {"factor of a kill", "at: 1s", "at: 1s, factor: 5%", ErrorCode::NoEffect, 25, 57, "slow"},
    {"duration of a kill", "at: 1s", "at: 1s, duration: 5s", ErrorCode::NoEffect, 25, 57,
     "restart_after"},
    {"bad pattern", "target: h1", "target: 'h['", ErrorCode::BadValue, 25, 31, ""},
    {"zero detection", "worker: 1s", "worker: 0s", ErrorCode::BadValue, 26, 31, "worker"},
    {"fast detection", "worker: 1s", "worker: 400ms", ErrorCode::BadValue, 26, 23, "heartbeats"},
    {"unknown detection", "worker: 1s", "wroker: 1s", ErrorCode::UnknownKey, 26, 23, "worker"},
    {"no copies", "copies: 2", "copies: 0", ErrorCode::BadValue, 27, 18, "from 1"},
    {"unknown level", "copies: 2", "copies: 2, level: row", ErrorCode::BadValue, 27, 28, "rack"},
    {"unknown baseline", "nccl: {}", "ncll: {}", ErrorCode::UnknownKey, 28, 13, "nccl"},
    {"unknown algorithm", "nccl: {}", "nccl: {algorithm: star}", ErrorCode::BadValue, 28, 31,
     "ring"},
};

TEST(Workload, WrongKeysAreRefusedWithPlaceAndAdvice) {
  const std::string whole = workload(
      "loop: asynchronous\n  members: {arrivals: 20/h, lifetime: {exponential: {mean: 1h}}, "
      "notice: 2min, without_notice: 10%}",
      "faults: [{kind: host, target: h1, action: kill, at: 1s}]\n"
      "options: {detection: {worker: 1s}}\n"
      "retain: {copies: 2}\n"
      "baselines: {nccl: {}}\n",
      "elastic");
  ASSERT_NO_THROW((void)parse_scenario(whole, "s.yaml"));
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.what);
    std::string text = whole;
    const std::size_t at = text.find(wrong.find);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(wrong.find).size(), wrong.replace);
    try {
      (void)parse_scenario(text, "s.yaml");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code))) << error.what();
      EXPECT_EQ(error.place().line, wrong.line) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
}

}  // namespace
}  // namespace holdfast
