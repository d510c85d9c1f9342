#include "core/io/results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/io/exact_decimal.hpp"
#include "core/io/results_folder.hpp"
#include "tests/io/results_samples.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

TEST(ExactDecimal, KeepsEveryDigit) {
  EXPECT_EQ(exact_decimal(0, 12), "0");
  EXPECT_EQ(exact_decimal(1, 12), "0.000000000001");
  EXPECT_EQ(exact_decimal(1'500'000'000'000, 12), "1.5");
  EXPECT_EQ(exact_decimal(-1'500, 3), "-1.5");
  EXPECT_EQ(exact_decimal(Time::never().picoseconds(), 12), "9223372.036854775807");
  EXPECT_EQ(bin_edge(picoseconds(10), 1, 3), "0.000000000003");
  EXPECT_EQ(bin_edge(picoseconds(10), 3, 3), "0.00000000001");
  EXPECT_EQ(bin_edge(Time::never(), 50, 50), "9223372.036854775807");
}

TEST(Results, SummaryHoldsTheFigures) {
  const samples::Results results;
  const std::vector<RunRecord> runs = {results.run()};
  const auto json = summary_json(results.context(), runs);
  EXPECT_EQ(json["scenario"], "sample");
  EXPECT_EQ(json["assumptions"], nlohmann::ordered_json({"perfect network"}));
  EXPECT_EQ(json["warnings"], nlohmann::ordered_json({"a warning"}));
  EXPECT_EQ(json["model"]["bytes"], 4'000);
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["policy"], "auto");
  EXPECT_EQ(run["planner"], "chain");
  EXPECT_EQ(run["makespan_s"], 5.0);
  EXPECT_EQ(run["bound_s"], 2.5);
  EXPECT_EQ(run["bound_fraction"], 0.5);
  EXPECT_EQ(run["rollout_stall_s"], 18.0);
  EXPECT_EQ(run["gpu_stall_s"], 18.0);
  EXPECT_EQ(run["stall_bound_s"], 9.0);
  EXPECT_EQ(run["stall_fraction"], 0.5);
  EXPECT_EQ(run["bytes_moved"]["nic"], 6'000);
  // h1 misses all four blocks, h2 two of them; both datacenters are in reach of no WAN link, but
  // h2 is in the other one: two blocks.
  EXPECT_EQ(run["bytes_minimum"]["gpu"], 6'000);
  EXPECT_EQ(run["bytes_minimum"]["nic"], 6'000);
  EXPECT_EQ(run["bytes_minimum"]["wan"], 2'000);
  EXPECT_EQ(run["bound_cut"]["channels"].size(), 32U);
  EXPECT_EQ(run["bound_cut"]["channel_count"], 40);
  EXPECT_EQ(run["updates"][0]["receivers"], 3);
  EXPECT_EQ(run["updates"][0]["replicas"], 2);
  EXPECT_TRUE(run["failures"].empty());
}

TEST(Results, AFailedRunHasNoMakespan) {
  const samples::Results results;
  RunRecord failed = results.run();
  failed.failure = "ReadTimeout";
  const auto run = summary_json(results.context(), std::vector<RunRecord>{failed})["runs"][0];
  for (const char* key : {"makespan_s", "bound_fraction", "gpu_stall_s", "stall_fraction"}) {
    EXPECT_TRUE(run[key].is_null()) << key;
  }
  EXPECT_EQ(run["failures"][0]["message"], "ReadTimeout");
  EXPECT_EQ(run["failures"][0]["kind"], "run");
  EXPECT_EQ(run["updates"][0]["completed"], 0);
  EXPECT_EQ(run["updates"][0]["failed"], 2);
}

// Two replicas of two GPUs. Version 1: [0,4) and [1,5), bounds 3 s each, a fault at 2 s; version 2:
// [10,12), bound 1 s, and one that fails at 13 s. Stall: rollouts 2 x (4 + 4 + 2), the trainer's 1
// s of 8 GPUs, half a second of 2 GPUs for an offload.
TEST(Results, AWorkloadIsAddedUp) {
  const samples::Results results;
  RunRecord run = results.run();
  run.completed.clear();
  WorkloadRecord workload;
  const auto fetch = [&](std::uint64_t number, std::uint32_t group, Time from, Time to, Time bound,
                         bool completed) {
    workload.fetches.push_back(
        {Version{1, number}, group, 2, 2, true, true, from, to, completed, bound});
  };
  fetch(1, 0, seconds(0), seconds(4), seconds(3), true);
  fetch(1, 1, seconds(1), seconds(5), seconds(3), true);
  fetch(2, 0, seconds(10), seconds(12), seconds(1), true);
  fetch(2, 1, seconds(10), seconds(13), seconds(1), false);
  const std::vector<Interval> always{{seconds(0), seconds(20)}};
  workload.groups = {{2,
                      always,
                      {{StallPart::Rollout, seconds(0), seconds(4)},
                       {StallPart::Rollout, seconds(10), seconds(12)}}},
                     {2,
                      {{seconds(0), seconds(9)}},
                      {{StallPart::Rollout, seconds(1), seconds(5)},
                       {StallPart::Offload, seconds(6), milliseconds(6'500)}}},
                     {8, always, {{StallPart::Trainer, seconds(9), seconds(10)}}}};
  workload.failures = {{seconds(2), "host", "h1", milliseconds(1'000), "2 readers re-parented"},
                       {seconds(9), "spot", "rollout[1]", std::nullopt, "1 fetch failed"}};
  run.workload = workload;
  run.minimum = PayloadBytes{Bytes(10), Bytes(9), Bytes(8)};
  const auto json = summary_json(results.context(), std::vector<RunRecord>{run})["runs"][0];
  EXPECT_EQ(json["makespan_s"], 7.0);
  EXPECT_EQ(json["bound_s"], 5.0);  // 1 + 3 and 1
  EXPECT_EQ(json["bound_fraction"], 5.0 / 7);
  EXPECT_EQ(json["bound_kind"], "nominal");
  EXPECT_EQ(json["rollout_stall_s"], 20.0);
  EXPECT_EQ(json["trainer_stall_s"], 8.0);
  EXPECT_EQ(json["offload_stall_s"], 1.0);
  EXPECT_EQ(json["gpu_stall_s"], 29.0);
  EXPECT_EQ(json["stall_bound_s"], 14.0);
  EXPECT_EQ(json["stall_fraction"], 14.0 / 20);
  EXPECT_EQ(json["bytes_minimum"]["gpu"], 10);
  ASSERT_EQ(json["updates"].size(), 2U);
  EXPECT_EQ(json["updates"][0]["makespan_s"], 5.0);
  EXPECT_EQ(json["updates"][0]["last_completion_s"], 5.0);
  EXPECT_EQ(json["updates"][1]["start_s"], 10.0);
  EXPECT_EQ(json["updates"][1]["completed"], 1);
  EXPECT_EQ(json["updates"][1]["failed"], 1);
  ASSERT_EQ(json["failures"].size(), 2U);
  EXPECT_EQ(json["failures"][0]["detected_after_s"], 1.0);
  EXPECT_EQ(json["failures"][0]["message"], "host h1: 2 readers re-parented");
  EXPECT_TRUE(json["failures"][1]["detected_after_s"].is_null());
  EXPECT_EQ(json["group_waits"].size(), 0U);
}

TEST(Results, EventsAreOneALine) {
  const samples::Results results;
  std::ostringstream out;
  write_events(out, results.context(), std::vector<RunRecord>{results.run()});
  EXPECT_EQ(out.str(),
            R"({"policy":"auto","at_s":0,"event":"start","worker":"h1.gpu0"}
{"policy":"auto","at_s":0.000000000001,"event":"block","worker":"h1.gpu0","stripe":0,"block":1,"source":"h0.gpu0"}
{"policy":"auto","at_s":1,"event":"progress","worker":"h1.gpu0","percent":50}
{"policy":"auto","at_s":3,"event":"end","worker":"h1.gpu0"}
{"policy":"auto","at_s":4,"event":"fault","worker":"h1.gpu1","message":"lost \"x\"\\x0a"}
)");
}

TEST(Results, LinksHaveARowABin) {
  const samples::Results results;
  std::ostringstream out;
  write_links(out, results.context(), std::vector<RunRecord>{results.run()});
  const std::string name = results.topology.channel_name(ChannelId(2));
  EXPECT_EQ(out.str(),
            "policy,link,start_s,end_s,bytes,capacity_bytes_per_s\n"
            "auto," +
                name +
                ",0,2.5,500,1000000000\n"
                "auto," +
                name + ",2.5,5,1500,1000000000\n");
}

TEST(Results, TraceIsJsonWithASliceAWorker) {
  const samples::Results results;
  const std::vector<RunRecord> runs = {results.run(), results.run()};
  std::ostringstream out;
  write_trace(out, results.context(), runs);
  const auto json = nlohmann::json::parse(out.str());
  int processes = 0;
  int slices = 0;
  for (const auto& event : json["traceEvents"]) {
    processes += event["name"] == "process_name" ? 1 : 0;
    if (event["ph"] == "X") {
      ++slices;
      EXPECT_EQ(event["ts"], 0);
      EXPECT_EQ(event["dur"], 3'000'000);
      EXPECT_EQ(event["tid"], 2);
    }
  }
  EXPECT_EQ(processes, 6);  // three hosts, two runs
  EXPECT_EQ(slices, 2);
}

class ResultsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write() { write_results(folder_.string(), results_.context(), {{results_.run()}}); }
  void write_results(const std::string& folder, const ResultsContext& context,
                     const std::vector<RunRecord>& runs) {
    holdfast::write_results(folder, context, runs);
  }
  [[nodiscard]] std::string read(const char* name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  samples::Results results_;
  fs::path folder_;
};

TEST_F(ResultsFolder, IsCreatedAndWrittenAgain) {
  folder_ /= "deep/er";
  write();
  EXPECT_EQ(entries(), 4U);  // nothing temporary stays
  const std::string before = read("summary.json");
  EXPECT_FALSE(before.empty());
  std::ofstream(folder_ / "notes.txt") << "mine";
  write();
  EXPECT_EQ(read("summary.json"), before);
  EXPECT_EQ(read("notes.txt"), "mine");
}

TEST_F(ResultsFolder, MayBeEmpty) {
  fs::create_directories(folder_);
  EXPECT_NO_THROW(write());
}

TEST_F(ResultsFolder, OfSomebodyElseIsRefused) {
  fs::create_directories(folder_);
  for (const char* text :
       {"precious", "{}", "{\"program\": 1}", "{\"program\": {\"name\": \"x\"}}"}) {
    std::ofstream(folder_ / "summary.json") << text;
    EXPECT_THROW(write(), Error) << text;
    EXPECT_EQ(read("summary.json"), text);
    EXPECT_EQ(entries(), 1U);
  }
}

TEST_F(ResultsFolder, AFileIsRefused) {
  std::ofstream(folder_.string()) << "precious";
  EXPECT_THROW(write(), Error);
}

}  // namespace
}  // namespace holdfast
