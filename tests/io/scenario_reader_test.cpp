#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/scenario.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kGroups =
    "  trainer: {place: {hosts: h0}, layout: tp2, role: trainer}\n"
    "  rollout: {place: {gpus: ['h[1-3].gpu*']}, layout: tp1}\n"
    "  cache: {place: {host_memory: [h0]}, layout: tp4}\n";

std::string good(const std::string& more = "") {
  return samples::scenario_text(kGroups,
                                "holders: [trainer, cache]\n"
                                "update: {receivers: [rollout]}\n" +
                                    more);
}

TEST(ScenarioReader, ReadsEveryKey) {
  const Scenario s = parse_scenario(
      samples::scenario_text(
          "  - {name: trainer, place: {hosts: [h0, 'dc1.h*']}, layout: tp2, role: trainer,\n"
          "     reliability: reliable, replicas: 2}\n"
          "  - {name: rollout, place: {gpus: ['h[1-3].gpu*']}, layout: tp1, reliability: spot,\n"
          "     replicas: all}\n",
          "teaches: Something.\n"
          "holders: [trainer, {group: rollout, replicas: [5, 3], part: {last: 12.5%}}]\n"
          "update: {receivers: [rollout], destination: shadow}\n"
          "policy: [star, auto]\n"
          "options: {block_size: 4MiB, serve_from_spot: false, jitter: 2.5%, "
          "objective: stall}\n"
          "other_traffic: [{kind: nic, share: 30%}]\n"
          "seed: 3\n"
          "verify: false\n"
          "assumptions: [one, two]\n"),
      "s.yaml");
  EXPECT_EQ(s.name, "sample");
  EXPECT_EQ(s.teaches, "Something.");
  EXPECT_EQ(s.topology.text, "machine.yaml");
  EXPECT_EQ(s.topology.place.line, 3);
  EXPECT_EQ(s.model.source, ModelSource::Preset);
  EXPECT_EQ(s.model.value.text, "llama-3.1-70b");
  ASSERT_EQ(s.layouts.size(), 3U);
  EXPECT_EQ(s.layouts[1].name.text, "tp2");
  EXPECT_EQ(s.layouts[1].layout.tensor_parallel, 2U);
  ASSERT_EQ(s.groups.size(), 2U);
  EXPECT_EQ(s.groups[0].placement.patterns.size(), 2U);
  EXPECT_FALSE(s.groups[0].placement.by_node);
  EXPECT_EQ(s.groups[0].role, Role::Trainer);
  EXPECT_EQ(s.groups[0].replicas, 2U);
  EXPECT_EQ(s.groups[0].layout, 1U);
  EXPECT_TRUE(s.groups[1].placement.by_node);
  EXPECT_EQ(s.groups[1].role, std::nullopt);
  EXPECT_EQ(s.groups[1].reliability, Reliability::Spot);
  EXPECT_EQ(s.groups[1].replicas, std::nullopt);
  ASSERT_EQ(s.holders.size(), 2U);
  EXPECT_THAT(s.holders[1].replicas, ElementsAre(3U, 5U));
  ASSERT_TRUE(s.holders[1].part);
  EXPECT_TRUE(s.holders[1].part->from_end);
  EXPECT_EQ(s.holders[1].part->parts_per_million, 125'000U);
  ASSERT_EQ(s.update.receivers.size(), 1U);
  EXPECT_EQ(s.update.receivers[0].group, 1U);
  EXPECT_EQ(s.update.destination, Destination::Shadow);
  EXPECT_THAT(s.policies, ElementsAre(Policy::Star, Policy::Auto));
  EXPECT_EQ(s.options.objective, Objective::Stall);
  EXPECT_EQ(s.options.block_size, Bytes(4U << 20U));
  EXPECT_FALSE(s.options.serve_from_spot);
  EXPECT_EQ(s.options.jitter, 25'000U);
  ASSERT_EQ(s.other_traffic.size(), 1U);
  EXPECT_EQ(s.other_traffic[0].share, 300'000U);
  EXPECT_EQ(s.seed, 3U);
  EXPECT_FALSE(s.verify);
  EXPECT_THAT(s.assumptions, ElementsAre("one", "two"));
  EXPECT_EQ(s.warnings,
            std::vector<std::string>{"s.yaml:8:3: layout 'tp4' has no effect: no group uses it"});
}

TEST(ScenarioReader, HasDefaults) {
  const Scenario s = parse_scenario(good(), "s.yaml");
  EXPECT_THAT(s.policies, ElementsAre(Policy::Auto));
  EXPECT_EQ(s.options.reader_cap, std::nullopt);
  EXPECT_EQ(s.update.destination, Destination::InPlace);
  EXPECT_EQ(s.options.block_size, std::nullopt);
  EXPECT_EQ(s.options.blocks_per_eighth, 256U);
  EXPECT_TRUE(s.options.serve_from_spot);
  EXPECT_EQ(s.options.jitter, 0U);
  EXPECT_EQ(s.options.objective, Objective::Makespan);
  EXPECT_TRUE(s.other_traffic.empty());
  EXPECT_TRUE(s.verify);
  EXPECT_EQ(s.seed, std::nullopt);
  EXPECT_EQ(s.groups[2].placement.on, PlacedOn::HostMemory);
  EXPECT_THAT(s.warnings, IsEmpty());
}

TEST(ScenarioReader, AllMeansEveryPolicy) {
  const Scenario s = parse_scenario(good("policy: all\n"), "s.yaml");
  EXPECT_EQ(s.policies.size(), policy_names().size() - 3);  // all but the baselines
}

struct Wrong {
  const char* what;
  const char* find;     // in the good scenario ...
  const char* replace;  // ... with this
  ErrorCode code;
  int line;
  int column;
  const char* message;
};

// The lines of good(): 1 format, 2 name, 3 topology, 4 model, 5 layouts, 6-8 tp1 tp2 tp4, 9 groups,
// 10 trainer, 11 rollout, 12 cache, 13 holders, 14 update.
const Wrong kWrong[] = {
    {"later format", "format: 1", "format: 2", ErrorCode::Unsupported, 1, 9, "it reads format 1"},
    {"no format", "format: 1\n", "", ErrorCode::MissingKey, 1, 1, "format"},
    {"unknown key", "name: sample", "nmae: sample\nname: sample", ErrorCode::UnknownKey, 2, 1,
     "'name'"},
    {"no topology", "topology: machine.yaml\n", "", ErrorCode::MissingKey, 1, 1, "topology"},
    {"empty model", "{preset: llama-3.1-70b}", "{}", ErrorCode::MissingKey, 4, 8, "either"},
    {"two models", "{preset: llama-3.1-70b}", "{preset: a, safetensors: b}", ErrorCode::BadValue, 4,
     9, "either"},
    {"zero shards", "tp1: {tensor_parallel: 1}", "tp1: {tensor_parallel: 0}", ErrorCode::BadValue,
     6, 26, "tensor_parallel"},
    {"twice a layout", "  tp2:", "  tp1:", ErrorCode::Duplicate, 7, 3, "tp1"},
    {"unknown layout", "layout: tp2", "layout: pt2", ErrorCode::UnknownName, 10, 41,
     "did you mean 'tp2'"},
    {"no placement", "place: {hosts: h0}", "place: {}", ErrorCode::BadValue, 10, 20, "exactly one"},
    {"two placements", "{hosts: h0}", "{hosts: h0, gpus: [h0.gpu0]}", ErrorCode::BadValue, 10, 21,
     "exactly one"},
    {"empty placement", "{hosts: h0}", "{hosts: []}", ErrorCode::BadValue, 10, 28, "at least one"},
    {"bad pattern", "h[1-3].gpu*", "h[3-1].gpu*", ErrorCode::BadValue, 11, 28, "write '1-3'"},
    {"unknown role", "role: trainer", "role: trianer", ErrorCode::BadValue, 10, 52, "trainer"},
    {"no replicas", "layout: tp1}", "layout: tp1, replicas: 0}", ErrorCode::BadValue, 11, 68,
     "replicas"},
    {"unknown holder", "holders: [trainer", "holders: [triner", ErrorCode::UnknownName, 13, 11,
     "did you mean 'trainer'"},
    {"holder twice", "[trainer, cache]", "[trainer, trainer]", ErrorCode::Duplicate, 13, 20,
     "name it once"},
    {"no holder", "[trainer, cache]", "[]", ErrorCode::BadValue, 13, 10, "somebody must hold"},
    {"whole part", "[trainer, cache]", "[{group: cache, part: {first: 100%}}]", ErrorCode::NoEffect,
     13, 40, "leave 'part' away"},
    {"part without unit", "[trainer, cache]", "[{group: cache, part: {first: 50}}]",
     ErrorCode::BadUnit, 13, 40, "'50%'"},
    {"part above all", "[trainer, cache]", "[{group: cache, part: {first: 101%}}]",
     ErrorCode::BadUnit, 13, 40, "above 0%"},
    {"part too fine", "[trainer, cache]", "[{group: cache, part: {first: 0.00001%}}]",
     ErrorCode::BadUnit, 13, 40, "above 0%"},
    {"two parts", "[trainer, cache]", "[{group: cache, part: {first: 1%, last: 1%}}]",
     ErrorCode::BadValue, 13, 33, "either"},
    {"replica twice", "[trainer, cache]", "[{group: cache, replicas: [1, 1]}]",
     ErrorCode::Duplicate, 13, 36, "twice"},
    {"replica alone", "[trainer, cache]", "[{group: cache, replicas: 1}]", ErrorCode::BadValue, 13,
     36, "list of replica numbers"},
    {"no update", "update: {receivers: [rollout]}\n", "", ErrorCode::MissingKey, 1, 1, "update"},
    {"no receiver", "[rollout]", "[]", ErrorCode::BadValue, 14, 21, "at least one group"},
    {"unknown receiver", "[rollout]", "[rolout]", ErrorCode::UnknownName, 14, 22,
     "did you mean 'rollout'"},
    {"receiver twice", "[rollout]", "[rollout, rollout]", ErrorCode::Duplicate, 14, 31, "twice"},
    {"unknown destination", "[rollout]}", "[rollout], destination: inplace}", ErrorCode::BadValue,
     14, 45, "in_place"},
    {"workload", "update:", "workload: {}\nupdate:", ErrorCode::BadValue, 14, 11,
     "'update' is given as well"},
    {"faults", "update:", "faults: []\nupdate:", ErrorCode::BadValue, 14, 9, "leave the key away"},
    {"unknown policy", "update:", "policy: two_treee\nupdate:", ErrorCode::UnknownName, 14, 9,
     "two_tree"},
    {"policy twice", "update:", "policy: [star, star]\nupdate:", ErrorCode::Duplicate, 14, 16,
     "twice"},
    {"two block sizes", "update:", "options: {block_size: 4MiB, blocks_per_eighth: 4}\nupdate:",
     ErrorCode::BadValue, 14, 48, "only one"},
    {"ambiguous size", "update:", "options: {block_size: 4M}\nupdate:", ErrorCode::BadUnit, 14, 23,
     "4M"},
    {"zero size", "update:", "options: {block_size: 0B}\nupdate:", ErrorCode::BadValue, 14, 23,
     "block_size"},
    {"unknown option", "update:", "options: {blok_size: 4MB}\nupdate:", ErrorCode::UnknownKey, 14,
     11, "block_size"},
    {"later option", "update:", "options: {window: 4}\nupdate:", ErrorCode::Unsupported, 14, 19,
     "window"},
    {"unknown objective", "update:", "options: {objective: stal}\nupdate:", ErrorCode::BadValue, 14,
     22, "stall"},
    {"jitter without unit", "update:", "options: {jitter: 0.05}\nupdate:", ErrorCode::BadUnit, 14,
     19, "'50%'"},
    {"too much jitter", "update:", "options: {jitter: 95%}\nupdate:", ErrorCode::BadValue, 14, 19,
     "at most 90%"},
    {"reader cap", "update:", "options: {reader_cap: some}\nupdate:", ErrorCode::BadValue, 14, 23,
     "from 1 to 65536, or none"},
    {"no readers", "update:", "options: {reader_cap: 0}\nupdate:", ErrorCode::BadValue, 14, 23,
     "from 1 to 65536"},
    {"other traffic", "update:", "other_traffic: {kind: nic}\nupdate:", ErrorCode::BadValue, 14, 17,
     "other_traffic"},
    {"seed below zero", "update:", "seed: -1\nupdate:", ErrorCode::BadValue, 14, 7, "seed"},
    {"assumption", "update:", "assumptions: text\nupdate:", ErrorCode::BadValue, 14, 14,
     "assumptions"},
};

TEST(ScenarioReader, RefusesWithPlaceAndAdvice) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.what);
    std::string text = good();
    const std::size_t at = text.find(wrong.find);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(wrong.find).size(), wrong.replace);
    try {
      (void)parse_scenario(text, "s.yaml");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code)));
      EXPECT_EQ(error.place().file, "s.yaml");
      EXPECT_EQ(error.place().line, wrong.line) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
}

TEST(ScenarioReader, ReadsCapsOfReaders) {
  const std::pair<const char*, std::optional<std::uint32_t>> cases[] = {
      {"1", 1U}, {"3", 3U}, {"65536", 65'536U}, {"none", std::nullopt}};
  for (const auto& [text, cap] : cases) {
    const Scenario s = parse_scenario(
        good(std::string("policy: greedy\noptions: {reader_cap: ") + text + "}\n"), "s.yaml");
    EXPECT_EQ(s.options.reader_cap, cap);
    EXPECT_THAT(s.warnings, IsEmpty());
  }
}

TEST(ScenarioReader, WarnsOfWhatHasNoEffect) {
  const std::pair<std::string, const char*> cases[] = {
      {good("seed: 7\n"), "s.yaml:15:7: 'seed' has no effect"},
      {good("options: {jitter: 0%}\nseed: 7\n"), "s.yaml:16:7: 'seed' has no effect"},
      {good("options: {serve_from_spot: false}\n"),
       "s.yaml:15:28: 'serve_from_spot' has no effect"},
      {samples::scenario_text(std::string(kGroups) + "  idle: {place: {hosts: h4}, layout: tp1}\n",
                              "holders: [trainer, cache]\nupdate: {receivers: [rollout]}\n"),
       "s.yaml:13:3: group 'idle' has no effect"},
      {samples::scenario_text(
           "  a: {place: {hosts: h0}, layout: tp2, reliability: spot}\n"
           "  b: {place: {hosts: h1}, layout: tp1}\n  c: {place: {hosts: h2}, layout: tp4}\n",
           "holders: [a]\nupdate: {receivers: [b, c]}\n"),
       "s.yaml:10:3: 'reliability: spot' of group 'a' has no effect"},
  };
  for (const auto& [text, warning] : cases) {
    const Scenario scenario = parse_scenario(text, "s.yaml");
    ASSERT_EQ(scenario.warnings.size(), 1U) << warning;
    EXPECT_THAT(scenario.warnings[0], HasSubstr(warning));
  }
}

// Whatever the scenario itself names: the policies that run count.
TEST(ScenarioReader, TellsWhichOptionsThePoliciesIgnore) {
  const Scenario s =
      parse_scenario(good("policy: chain\noptions: {objective: stall, reader_cap: 2}\n"), "s.yaml");
  EXPECT_THAT(s.warnings, IsEmpty());
  const auto objective = HasSubstr("s.yaml:16:22: 'objective' has no effect");
  const auto cap = HasSubstr("s.yaml:16:41: 'reader_cap' has no effect");
  EXPECT_THAT(idle_options(s, {Policy::Chain}), ElementsAre(objective, cap));
  EXPECT_THAT(idle_options(s, {Policy::Star, Policy::Auto}), ElementsAre(cap));
  EXPECT_THAT(idle_options(s, {Policy::Hierarchical}), ElementsAre(cap));
  EXPECT_THAT(idle_options(s, {Policy::Greedy}), ElementsAre(objective));
  EXPECT_THAT(idle_options(s, {Policy::Auto, Policy::Greedy}), IsEmpty());
  EXPECT_THAT(idle_options(parse_scenario(good(""), "s.yaml"), {Policy::Chain}), IsEmpty());
}

}  // namespace
}  // namespace holdfast
