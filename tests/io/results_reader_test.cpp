#include "core/io/results_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/io/results_folder.hpp"
#include "tests/io/results_samples.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class ResultsReader : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        (std::string("reader_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    RunRecord failed = sample_.run();
    failed.policy = "star";
    failed.failure = "ReadTimeout";
    write_results(folder_.string(), sample_.context(), std::vector{sample_.run(), failed});
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] Json summary() const {
    std::ifstream in(folder_ / "summary.json");
    return Json::parse(in);
  }
  void write(const Json& json) const { std::ofstream(folder_ / "summary.json") << json.dump(1); }
  [[nodiscard]] std::optional<Error> refusal() const {
    try {
      (void)read_results(folder_.string());
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }

  samples::Results sample_;
  fs::path folder_;
};

TEST_F(ResultsReader, ReadsWhatWasWritten) {
  const Results results = read_results(folder_.string());
  EXPECT_EQ(results.scenario, "sample");
  EXPECT_EQ(results.model, "model");
  EXPECT_EQ(results.model_bytes, Bytes(4'000));
  EXPECT_EQ(results.topology, "sample");
  EXPECT_EQ(results.inputs.scenario, (Hash128{1, 2}));
  EXPECT_EQ(results.inputs.demand, (Hash128{3, 4}));
  EXPECT_EQ(results.inputs.topology, sample_.topology.hash());
  ASSERT_EQ(results.runs.size(), 2U);
  const RunFigures& run = results.runs[0];
  EXPECT_EQ(run.policy, "auto");
  EXPECT_EQ(run.planner, "chain");
  EXPECT_EQ(run.makespan, seconds(5));
  EXPECT_EQ(run.bound, milliseconds(2'500));
  EXPECT_EQ(run.predicted, seconds(4));
  EXPECT_EQ(run.moved.nic, Bytes(6'000));
  EXPECT_EQ(run.minimum.wan, Bytes(2'000));
  EXPECT_EQ(run.cut.sink, "h1");
  EXPECT_EQ(run.cut.channel_count, 40U);
  EXPECT_EQ(run.blocks, 4U);
  EXPECT_EQ(run.bound_fraction(), 0.5);
  ASSERT_EQ(run.links.size(), 1U);
  EXPECT_EQ(run.links[0].bytes, Bytes(2'000));
  ASSERT_EQ(run.detail.busiest.size(), 1U);
  EXPECT_EQ(run.detail.busiest[0].link, run.links[0].link);
  EXPECT_FALSE(results.runs[1].makespan);
  EXPECT_EQ(results.runs[1].failure, "ReadTimeout");
}

// Each key that is read: without it, and with a value of another type in its place.
TEST_F(ResultsReader, RefusesEachKeyThatIsMissingOrOfAnotherType) {
  const Json good = summary();
  const char* const pointers[] = {
      "/format",
      "/program/name",
      "/scenario",
      "/inputs/topology",
      "/model/bytes",
      "/runs",
      "/runs/0/policy",
      "/runs/0/seed",
      "/runs/0/objective",
      "/runs/0/jitter",
      "/runs/0/reader_cap",
      "/runs/0/makespan_s",
      "/runs/0/bound_s",
      "/runs/0/bound_cut/channels",
      "/runs/0/bound_cut/capacity_bytes_per_s",
      "/runs/0/predicted_s",
      "/runs/0/stall_fraction",
      "/runs/0/bytes_moved/wan",
      "/runs/0/depth",
      "/runs/0/crossings",
      "/runs/0/busiest_links/0/capacity_bytes_per_s",
      "/runs/0/busiest_links/0/leaves",
      "/runs/0/busiest_links/0/largest_stream_bytes",
      "/runs/0/digest",
      "/runs/0/group_waits",
      "/runs/1/failures",
      "/runs/1/failures/0/kind",
  };
  for (const char* text : pointers) {
    SCOPED_TRACE(text);
    const Json::json_pointer pointer(text);
    Json json = good;
    json[pointer.parent_pointer()].erase(pointer.back());
    write(json);
    auto error = refusal();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::MissingKey) << error->what();
    EXPECT_EQ(error->place().file, (folder_ / "summary.json").string());
    EXPECT_EQ(error->place().pointer, pointer.parent_pointer().to_string());
    EXPECT_THAT(error->message(), HasSubstr(pointer.back()));
    json = good;
    json[pointer] = true;
    write(json);
    error = refusal();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::BadValue) << error->what();
    EXPECT_THAT(error->place().pointer, HasSubstr(text));
  }
}

TEST_F(ResultsReader, RefusesWhatIsNoneOfOurs) {
  const Json good = summary();
  const std::pair<const char*, Json> changes[] = {
      {"/format", 2},
      {"/program/name", "other"},
      {"/runs", Json::array()},
      {"/runs/1/policy", "auto"},
      {"/runs/0/makespan_s", 0.0},
      {"/runs/0/makespan_s", -1},
      {"/runs/0/makespan_s", nullptr},
      {"/runs/0/bound_s", 1e300},
      {"/runs/0/busiest_links/0/capacity_bytes_per_s", 0},
      {"/runs/0/crossings", Json::array({1})},
      {"/inputs/topology", "0"},
  };
  for (const auto& [text, value] : changes) {
    SCOPED_TRACE(text);
    Json json = good;
    json[Json::json_pointer(text)] = value;
    write(json);
    EXPECT_TRUE(refusal());
  }
  std::ofstream(folder_ / "summary.json") << "{\n \"format\": 1,\n oops";
  const auto error = refusal();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::BadSyntax);
  EXPECT_EQ(error->place().line, 3);
}

TEST_F(ResultsReader, RefusesFilesOfDifferentRuns) {
  const Json good = summary();
  for (const auto& [text, value] :
       {std::pair("/runs/0/makespan_s", Json(5.5)), std::pair("/runs/0/policy", Json("chain")),
        std::pair("/runs/0/busiest_links/0/bytes", Json(2'001))}) {
    Json json = good;
    json[Json::json_pointer(text)] = value;
    write(json);
    const auto error = refusal();
    ASSERT_TRUE(error) << text;
    EXPECT_THAT(error->message(), HasSubstr("different runs"));
    EXPECT_EQ(error->place().file, (folder_ / "links.csv").string());
  }
}

TEST_F(ResultsReader, NamesTheFileThatIsNotThere) {
  fs::remove(folder_ / "links.csv");
  auto error = refusal();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::FileNotFound);
  EXPECT_THAT(error->place().file, HasSubstr("links.csv"));
  fs::remove(folder_ / "summary.json");
  error = refusal();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), HasSubstr("no summary.json in this folder"));
  EXPECT_THROW((void)read_results((folder_ / "nowhere").string()), Error);
}

}  // namespace
}  // namespace holdfast
