#include "core/io/scenario_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

std::string write(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}

std::string scenario(const std::string& topology, const std::string& model) {
  return "format: 1\nname: s\ntopology: " + topology + "\nmodel: {" + model +
         "}\n"
         "layouts: {tp8: {tensor_parallel: 8}}\n"
         "groups:\n  a: {place: {hosts: h0}, layout: tp8}\n  b: {place: {hosts: h1}, layout: tp8}\n"
         "holders: [a]\nupdate: {receivers: [b]}\n";
}

const std::string kTopology = HOLDFAST_SOURCE_DIR "/topologies/h100-16-hosts.yaml";

TEST(ScenarioFiles, EveryScenarioOfTheProjectMakesADemand) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const LoadedScenario loaded = load_scenario(entry.path().string());
    EXPECT_FALSE(loaded.scenario.teaches.empty());
    EXPECT_TRUE(loaded.scenario.warnings.empty());
    EXPECT_TRUE(idle_options(loaded.scenario, loaded.scenario.policies).empty());
    EXPECT_EQ(loaded.scenario.name + ".yaml", entry.path().filename().string());
    const UpdateTask task = make_update(loaded.scenario, loaded.topology, loaded.manifest);
    EXPECT_TRUE(task.warnings.empty());
    EXPECT_NO_THROW(validate(task.demand, loaded.topology));
    ++found;
  }
  EXPECT_GE(found, 12);
}

TEST(ScenarioFiles, OtherTrafficMakesTheMachineSmaller) {
  const std::string text = scenario(kTopology, "preset: llama-3.1-70b");
  const LoadedScenario whole = load_scenario(write("whole.yaml", text));
  const LoadedScenario left =
      load_scenario(write("left.yaml", text + "other_traffic: [{kind: nic, share: 30%}]\n"));
  EXPECT_NE(left.topology.hash(), whole.topology.hash());
  const LinkId nic = whole.topology.find_link("h1.nic3--switch");
  ASSERT_TRUE(nic.valid());
  EXPECT_EQ(whole.topology.link(nic).capacity, Rate(50'000'000'000));
  EXPECT_EQ(left.topology.link(nic).capacity, Rate(35'000'000'000));
}

TEST(ScenarioFiles, ReportsAtTheKeyThatNamesTheFile) {
  struct Case {
    std::string text;
    ErrorCode code;
    int line;
    int column;
    const char* message;
  };
  const Case cases[] = {
      {scenario("nowhere.yaml", "preset: llama-3.1-70b"), ErrorCode::FileNotFound, 3, 11,
       "nowhere.yaml"},
      {scenario(kTopology, "preset: llama-3.1-7b"), ErrorCode::UnknownName, 4, 17, "llama-3.1-70b"},
      {scenario(kTopology, "safetensors: nowhere.safetensors"), ErrorCode::FileNotFound, 4, 22,
       "nowhere.safetensors"},
      {scenario(kTopology, "preset: llama-3.1-70b") + "other_traffic: [{kind: wan, share: 1%}]\n",
       ErrorCode::BadValue, 11, 18, "no wan"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const std::string path = write("case.yaml", c.text);
    try {
      (void)load_scenario(path);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(c.code))) << error.what();
      EXPECT_EQ(error.place().file, path);
      EXPECT_EQ(error.place().line, c.line);
      EXPECT_EQ(error.place().column, c.column);
      EXPECT_THAT(error.message(), HasSubstr(c.message));
    }
  }
}

TEST(ScenarioFiles, AWrongTopologyIsReportedInItsOwnFile) {
  const std::string topology = write("broken.yaml", "format: 1\nname: t\nlinkz: []\n");
  try {
    (void)load_scenario(write("case.yaml", scenario("broken.yaml", "preset: llama-3.1-70b")));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.place().file, topology);
    EXPECT_EQ(error.place().line, 3);
  }
}

TEST(ScenarioFiles, AMissingScenarioIsNamed) {
  EXPECT_THROW((void)load_scenario("/nowhere/at/all.yaml"), Error);
}

}  // namespace
}  // namespace holdfast
