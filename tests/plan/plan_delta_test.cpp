#include "core/plan/plan_delta.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace holdfast {
namespace {

// Two classes of 12 blocks, two stripes each; worker 0 holds all, 1 .. receivers want all.
Demand demand_of(std::uint32_t receivers, std::uint32_t spare) {
  Demand demand;
  demand.model = "test";
  demand.version = {1, 2};
  demand.block_size = Bytes(100);
  demand.block_bytes.assign(24, Bytes(100));
  demand.workers.resize(1 + receivers + spare);
  for (std::uint32_t c = 0; c < 2; ++c) {
    BlockClass& one = demand.classes.emplace_back();
    one.blocks = {{BlockId(12 * c), 12}};
    one.holders = {WorkerId(0U)};
    for (std::uint32_t w = 1; w <= receivers; ++w) one.receivers.emplace_back(w);
  }
  return demand;
}

Plan star(const Demand& demand) {
  Plan plan;
  plan.demand = hash_of(demand);
  for (std::uint32_t s = 0; s < 4; ++s) {
    Stripe& stripe = plan.stripes.emplace_back();
    stripe.block_class = ClassId(s / 2);
    stripe.blocks = {s % 2, 2, 12};
    for (const WorkerId w : demand.classes[s / 2].receivers) {
      stripe.edges.push_back({w, WorkerId(0U), {}, {}, 2});
    }
  }
  return plan;
}

EdgeAdd add(std::uint32_t child, std::uint32_t stripe, std::uint32_t parent,
            std::uint32_t from = 0) {
  return {WorkerId(child), StripeId(stripe), WorkerId(parent), {}, from, {}, 2};
}
EdgeDrop drop(std::uint32_t child, std::uint32_t stripe) {
  return {WorkerId(child), StripeId(stripe)};
}

TEST(PlanDelta, GivesAChildAnotherParent) {
  const Demand demand = demand_of(3, 0);
  const Plan base = star(demand);
  const auto delta = make_delta(demand, base, {drop(2, 1)}, {add(2, 1, 3, 4)});
  ASSERT_TRUE(delta) << to_string(delta.error());
  const auto result = apply(demand, base, *delta);
  ASSERT_TRUE(result) << to_string(result.error());
  Plan expected = base;
  expected.stripes[1].edges[1].parent = WorkerId(3U);
  EXPECT_EQ(*result, expected);
  EXPECT_EQ(delta->base, hash_of(base));
  EXPECT_EQ(delta->result, hash_of(expected));
}

TEST(PlanDelta, AJoinerAndADeathChangeTheDemand) {
  const Demand demand = demand_of(3, 1);
  const Plan base = star(demand);
  const std::vector<WorkerId> dead{WorkerId(0U), WorkerId(2U)};
  const std::vector<Joiner> joiners{{WorkerId(4U), {ClassId(1U)}}};
  const Demand after = mended_demand(demand, dead, joiners);
  EXPECT_EQ(after.workers, demand.workers);
  EXPECT_TRUE(after.classes[0].holders.empty());
  EXPECT_EQ(after.classes[0].receivers, (std::vector<WorkerId>{WorkerId(1U), WorkerId(3U)}));
  EXPECT_EQ(after.classes[1].receivers,
            (std::vector<WorkerId>{WorkerId(1U), WorkerId(3U), WorkerId(4U)}));
  EXPECT_EQ(mended_demand(after, dead, joiners), after) << "nobody joins twice";
  const auto delta = make_delta(after, base, {drop(2, 3)}, {add(4, 2, 1)});
  ASSERT_TRUE(delta);
  const auto result = apply(after, base, *delta);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->demand, hash_of(after));
  EXPECT_EQ(result->stripes[2].edges.back().child, WorkerId(4U));
  EXPECT_EQ(result->stripes[3].edges.size(), 2U);
  // Another demand gives another plan: refused.
  EXPECT_EQ(apply(demand, base, *delta).error().error, DeltaError::WrongResult);
}

TEST(PlanDelta, EachRefusalHasAName) {
  const Demand demand = demand_of(3, 1);
  const Plan base = star(demand);
  const auto refusal = [&](std::vector<EdgeDrop> drops, std::vector<EdgeAdd> adds) {
    const auto delta = make_delta(demand, base, std::move(drops), std::move(adds));
    return delta ? std::string("accepted") : to_string(delta.error());
  };
  EXPECT_EQ(refusal({drop(1, 4)}, {}), "UnknownStripe: stripe 4 of worker 1 is not there");
  EXPECT_EQ(refusal({}, {add(3, 9, 0)}), "UnknownStripe: stripe 9 of worker 3 is not there");
  EXPECT_EQ(refusal({{WorkerId(1U), StripeId()}}, {}),
            "UnknownStripe: stripe 4294967295 of worker 1 is not there");
  EXPECT_EQ(refusal({drop(4, 1)}, {}), "NoSuchEdge: worker 4 has no edge in stripe 1 to drop");
  EXPECT_EQ(refusal({drop(1, 1), drop(1, 1)}, {}),
            "NoSuchEdge: worker 1 has no edge in stripe 1 to drop");
  EXPECT_EQ(refusal({drop(0, 1)}, {}), "NoSuchEdge: worker 0 has no edge in stripe 1 to drop");
  EXPECT_EQ(refusal({}, {add(3, 2, 1)}), "EdgeExists: worker 3 still has an edge in stripe 2");
  EXPECT_EQ(refusal({}, {add(4, 2, 1), add(4, 2, 0)}),
            "EdgeExists: worker 4 still has an edge in stripe 2");
  EXPECT_EQ(refusal({}, {add(4, 2, 1, 7)}),
            "BlockOutOfRange: worker 4 is to begin beyond the end of stripe 2");
  EXPECT_EQ(refusal({}, {add(4, 2, 1, 6)}), "accepted");

  PlanDelta delta = *make_delta(demand, base, {drop(2, 1)}, {add(2, 1, 3)});
  Plan other = base;
  other.stripes[0].edges[0].window = 3;
  EXPECT_EQ(to_string(apply(demand, other, delta).error()),
            "WrongBase: the delta was made for another plan");
  delta.adds[0].window = 9;
  EXPECT_EQ(to_string(apply(demand, base, delta).error()),
            "WrongResult: the result is not the plan that the delta promises");
}

// Against a map of edges, for random drops and adds, right ones and wrong ones.
TEST(PlanDelta, DoesWhatAMapWouldDo) {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const Demand demand = demand_of(5, 3);
    const Plan base = star(demand);
    std::map<std::pair<std::uint32_t, WorkerId>, Edge> edges;
    for (std::uint32_t s = 0; s < 4; ++s) {
      for (const Edge& edge : base.stripes[s].edges) edges[{s, edge.child}] = edge;
    }
    std::vector<EdgeDrop> drops;
    std::vector<EdgeAdd> adds;
    bool good = true;
    for (std::uint32_t k = below(4); k-- > 0;) {
      drops.push_back(drop(1 + below(6), below(4)));
      good = edges.erase({drops.back().stripe.value(), drops.back().child}) == 1 && good;
    }
    for (std::uint32_t k = below(4); k-- > 0;) {
      adds.push_back(add(1 + below(8), below(4), below(9), below(7)));
      const EdgeAdd& one = adds.back();
      good = edges
                 .insert({{one.stripe.value(), one.child},
                          {one.child, one.parent, one.alternate, one.path, one.window}})
                 .second &&
             good;
    }
    const auto delta = make_delta(demand, base, drops, adds);
    ASSERT_EQ(delta.has_value(), good);
    ++(good ? accepted : refused);
    if (!good) continue;
    const auto result = apply(demand, base, *delta);
    ASSERT_TRUE(result);
    std::size_t count = 0;
    for (std::uint32_t s = 0; s < 4; ++s) {
      const std::vector<Edge>& now = result->stripes[s].edges;
      count += now.size();
      ASSERT_TRUE(std::is_sorted(now.begin(), now.end()));
      for (const Edge& edge : now) ASSERT_EQ(edges.at({s, edge.child}), edge);
    }
    ASSERT_EQ(count, edges.size());
  }
  EXPECT_GT(accepted, 50U);
  EXPECT_GT(refused, 50U);
}

}  // namespace
}  // namespace holdfast
