// Pipeline and expert parallelism in scenarios: what is read and refused, and which worker of a
// replica gets what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/io/scenario_update.hpp"
#include "core/weights/weight_map.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

// Four layers of four experts; everything is 128 KiB but for the norm.
Manifest mixture() {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::string& name) {
    tensors.push_back({name + ".weight", DType::BF16, {256, 256}});
  };
  add("model.embed_tokens");
  add("lm_head");
  tensors.push_back({"model.norm.weight", DType::BF16, {256}});
  for (int layer = 0; layer < 4; ++layer) {
    add(fmt::format("model.layers.{}.self_attn.q_proj", layer));
    for (int expert = 0; expert < 4; ++expert) {
      add(fmt::format("model.layers.{}.mlp.experts.{}.up_proj", layer, expert));
    }
  }
  return {"mixture", std::move(tensors)};
}

// Line 6 is the layout of the trainer on h0, line 7 that of the rollouts on h1, h2 and h3.
std::string text(const std::string& trainer, const std::string& rollout) {
  return "format: 1\nname: sample\ntopology: machine.yaml\nmodel: {preset: llama-3.1-70b}\n"
         "layouts:\n  a: " +
         trainer + "\n  b: " + rollout +
         "\ngroups:\n"
         "  trainer: {place: {hosts: h0}, layout: a}\n"
         "  rollout: {place: {hosts: 'h[1-3]'}, layout: b}\n"
         "holders: [trainer]\nupdate: {receivers: [rollout]}\noptions: {block_size: 16KiB}\n";
}

UpdateTask update_of(const std::string& trainer, const std::string& rollout,
                     const Topology& topology) {
  return make_update(parse_scenario(text(trainer, rollout), "s.yaml"), topology, mixture());
}

TEST(ScenarioLayouts, ReadsEveryNumber) {
  const Scenario s = parse_scenario(text("{tensor_parallel: 2, pipeline_parallel: 3}",
                                         "{tensor_parallel: 4, expert_parallel: 8, "
                                         "expert_tensor_parallel: 1}"),
                                    "s.yaml");
  EXPECT_EQ(s.layouts[0].layout.shards(), 6U);
  EXPECT_EQ(s.layouts[0].layout.expert_tensor_parallel, std::nullopt);
  EXPECT_EQ(s.layouts[1].layout.expert_parallel, 8U);
  EXPECT_EQ(s.layouts[1].layout.expert_tensor_parallel, 1U);
  EXPECT_EQ(s.layouts[1].layout.shards(), 8U);
  EXPECT_EQ(to_string(s.layouts[1].place_of(LayoutKey::ExpertParallel)), "s.yaml:7:44");
  EXPECT_EQ(to_string(s.layouts[0].place_of(LayoutKey::ExpertParallel)), "s.yaml:6:3");
}

// Each worker of a replica receives its shard, in the order of the grid.
TEST(ScenarioLayouts, WorkersOfAReplicaAreTheShardsInOrder) {
  const Topology topology = samples::machine(4, 8);
  const std::string grids[] = {
      "{tensor_parallel: 8}",
      "{tensor_parallel: 4, pipeline_parallel: 2}",
      "{tensor_parallel: 2, pipeline_parallel: 2, expert_parallel: 2}",
      "{tensor_parallel: 8, expert_parallel: 4, expert_tensor_parallel: 2}",
      "{tensor_parallel: 1, pipeline_parallel: 4, expert_parallel: 2}",
  };
  for (const std::string& trainer : grids) {
    for (const std::string& rollout : grids) {
      SCOPED_TRACE(trainer + " to " + rollout);
      const UpdateTask task = update_of(trainer, rollout, topology);
      ASSERT_NO_THROW(validate(task.demand, topology));
      ASSERT_EQ(task.replicas.size(), 4U);
      const Scenario s = parse_scenario(text(trainer, rollout), "s.yaml");
      const WeightMap map(mixture(), {s.layouts[0].layout, s.layouts[1].layout}, Bytes(16'384));
      const std::vector<Bytes> missing = missing_bytes(task.demand);
      for (std::uint32_t w = 8; w < 32; ++w) {
        EXPECT_EQ(missing[w], map.shard_bytes(1, w % 8)) << "worker " << w;
      }
    }
  }
}

// Where both sides have one layout, every block comes from the same shard of the trainer or, for
// what a stage has several copies of, from one of its copies.
TEST(ScenarioLayouts, OneLayoutOnBothSidesPairsShards) {
  const Topology topology = samples::machine(4, 8);
  const std::string grid = "{tensor_parallel: 2, pipeline_parallel: 2, expert_parallel: 2}";
  const UpdateTask task = update_of(grid, grid, topology);
  for (const BlockClass& c : task.demand.classes) {
    std::vector<std::uint32_t> held;
    for (const WorkerId w : c.holders) held.push_back(w.value() % 8);
    ASSERT_EQ(c.receivers.size(), 3 * c.holders.size());
    for (std::size_t i = 0; i < c.receivers.size(); ++i) {
      EXPECT_EQ(c.receivers[i].value() % 8, held[i % held.size()]);
    }
  }
}

struct Wrong {
  const char* layout;
  ErrorCode code;
  int column;
  const char* message;
};

// All in line 7, where the number stands; without one, at the layout's name.
const Wrong kWrong[] = {
    {"{tensor_parallel: 1, pipeline_parallel: 8}", ErrorCode::LayoutMismatch, 46,
     "8 stages, but the model has 4 layers; write at most 4"},
    {"{tensor_parallel: 1, expert_parallel: 8}", ErrorCode::LayoutMismatch, 44,
     "the 4 experts of a layer over 8 ranks, which does not divide evenly; write a divisor, like "
     "4"},
    {"{tensor_parallel: 4, expert_parallel: 2, expert_tensor_parallel: 1}",
     ErrorCode::LayoutMismatch, 71, "a multiple of tensor_parallel"},
    {"{tensor_parallel: 8, expert_tensor_parallel: 1}", ErrorCode::NoEffect, 27,
     "there is no 'expert_parallel'"},
    {"{tensor_parallel: 3}", ErrorCode::LayoutMismatch, 24, "write a divisor of 256"},
    {"{tensor_parallel: 8, pipeline_parallel: 0}", ErrorCode::BadValue, 46, "pipeline_parallel"},
    {"{tensor_parallel: 4096, pipeline_parallel: 8}", ErrorCode::LimitExceeded, 49, "write fewer"},
    {"{pipeline_parallel: 8}", ErrorCode::MissingKey, 7, "tensor_parallel"},
};

TEST(ScenarioLayouts, RefusesWithPlaceAndAdvice) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.layout);
    try {
      (void)update_of("{tensor_parallel: 8}", wrong.layout, samples::machine(4, 8));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code)));
      EXPECT_EQ(error.place().line, 7) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
}

TEST(ScenarioLayouts, RefusesExpertsOfADenseModel) {
  const std::string dense =
      text("{tensor_parallel: 8}", "{tensor_parallel: 2, expert_parallel: 4}");
  try {
    (void)make_update(parse_scenario(dense, "s.yaml"), samples::machine(4, 8), samples::model());
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LayoutMismatch);
    EXPECT_EQ(to_string(error.place()), "s.yaml:7:44");
    EXPECT_THAT(error.message(), HasSubstr("the model has none"));
  }
}

}  // namespace
}  // namespace holdfast
