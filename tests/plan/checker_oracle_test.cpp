// The checker against an oracle that knows no tricks: it expands every stripe into single blocks
// and plays the plan with sets.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/plan/checker.hpp"
#include "tests/plan/plan_fixtures.hpp"

namespace holdfast {
namespace {

using fixtures::below;

class Oracle {
 public:
  Oracle(const Plan& plan, const Demand& demand, const Router& router)
      : plan_(plan), demand_(demand), router_(router) {}

  [[nodiscard]] bool accepts() {
    if (plan_.format != kPlanFormat || plan_.topology != router_.topology().hash() ||
        plan_.demand != hash_of(demand_)) {
      return false;
    }
    std::map<std::pair<WorkerId, BlockId>, int> received;
    for (const Stripe& stripe : plan_.stripes) {
      if (!stripe_is_right(stripe)) return false;
      for (const auto& [worker, block] : play(stripe, WorkerId())) ++received[{worker, block}];
    }
    std::map<WorkerId, std::uint64_t> bytes;
    std::size_t wanted = 0;
    for (const BlockClass& c : demand_.classes) {
      for (const WorkerId w : c.receivers) {
        for (const BlockId block : blocks_of(c)) {
          ++wanted;
          if (received[{w, block}] != 1) return false;
          bytes[w] += demand_.block_bytes[block.index()].count();
        }
      }
    }
    for (const auto& [w, sum] : bytes) {
      if (sum > demand_.workers[w.index()].memory_free.count()) return false;
    }
    return received.size() == wanted;
  }

 private:
  using Delivery = std::pair<WorkerId, BlockId>;

  [[nodiscard]] const BlockClass& class_of(const Stripe& stripe) const {
    return demand_.classes[stripe.block_class.index()];
  }
  static bool in(const std::vector<WorkerId>& list, WorkerId w) {
    return std::count(list.begin(), list.end(), w) == 1;
  }

  // The blocks one by one; empty if the selection leaves the class.
  [[nodiscard]] std::vector<BlockId> blocks(const Stripe& stripe) const {
    const std::vector<BlockId> all = blocks_of(class_of(stripe));
    std::vector<BlockId> chosen;
    if (stripe.blocks.step == 0 || stripe.blocks.end > all.size()) return {};
    for (std::uint64_t k = stripe.blocks.first; k < stripe.blocks.end; k += stripe.blocks.step) {
      chosen.push_back(all[k]);
    }
    return chosen;
  }

  // Everything that gets delivered if `absent` gets nothing: again and again over all edges.
  [[nodiscard]] std::multiset<Delivery> play(const Stripe& stripe, WorkerId absent) const {
    std::set<Delivery> has;
    for (const WorkerId w : class_of(stripe).holders) {
      for (const BlockId block : blocks(stripe)) has.insert({w, block});
    }
    std::multiset<Delivery> delivered;
    std::set<std::pair<std::size_t, BlockId>> done;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t e = 0; e < stripe.edges.size(); ++e) {
        const Edge& edge = stripe.edges[e];
        if (edge.child == absent) continue;
        for (const BlockId block : blocks(stripe)) {
          if (has.count({edge.parent, block}) == 0 || !done.insert({e, block}).second) continue;
          delivered.insert({edge.child, block});
          has.insert({edge.child, block});
          moved = true;
        }
      }
    }
    return delivered;
  }

  [[nodiscard]] bool stripe_is_right(const Stripe& stripe) const {
    if (stripe.block_class.index() >= demand_.classes.size() || blocks(stripe).empty()) {
      return false;
    }
    for (std::size_t e = 0; e < stripe.edges.size(); ++e) {
      const Edge& edge = stripe.edges[e];
      if (e > 0 && !(stripe.edges[e - 1].child < edge.child)) return false;
      const auto known = [&](WorkerId w) { return w.index() < demand_.workers.size(); };
      if (!known(edge.child) || !known(edge.parent) || edge.child == edge.parent) return false;
      if (!in(class_of(stripe).receivers, edge.child)) return false;
      if (!demand_.workers[edge.parent.index()].may_serve) return false;
      if (edge.window < 1 || edge.window > 4'096) return false;
      if (!router_.route(demand_.workers[edge.parent.index()].node,
                         demand_.workers[edge.child.index()].node, edge.path)) {
        return false;
      }
      if (edge.alternate.valid() && !(known(edge.alternate) && can_stand_in(stripe, edge))) {
        return false;
      }
    }
    return true;
  }

  // The alternate has all blocks of the stripe even if the child gets none.
  [[nodiscard]] bool can_stand_in(const Stripe& stripe, const Edge& edge) const {
    if (edge.alternate == edge.parent || edge.alternate == edge.child) return false;
    if (!demand_.workers[edge.alternate.index()].may_serve) return false;
    if (in(class_of(stripe).holders, edge.alternate)) return true;
    const std::multiset<Delivery> delivered = play(stripe, edge.child);
    for (const BlockId block : blocks(stripe)) {
      if (delivered.count({edge.alternate, block}) == 0) return false;
    }
    return true;
  }

  const Plan& plan_;
  const Demand& demand_;
  const Router& router_;
};

// Changes one thing: a field by a little or a lot, an edge or a stripe gone, doubled or moved.
void mutate(Plan& plan, Demand& demand, fixtures::Random& random) {
  Stripe& stripe = plan.stripes[below(random, plan.stripes.size())];
  const auto workers = static_cast<std::uint32_t>(demand.workers.size());
  const auto any_worker = [&] { return WorkerId(below(random, workers + 1)); };
  const auto pick = [&]() -> Edge& { return stripe.edges[below(random, stripe.edges.size())]; };
  switch (below(random, 16)) {
    case 0:
      stripe.block_class = ClassId(below(random, demand.classes.size() + 1));
      break;
    case 1:
      stripe.blocks.first += 1 + below(random, 3);
      break;
    case 2:
      stripe.blocks.step = below(random, 4);
      break;
    case 3:
      stripe.blocks.end += below(random, 5) - 2;
      break;
    case 4:
      pick().child = any_worker();
      break;
    case 5:
    case 6:
      pick().parent = any_worker();
      break;
    case 7:
    case 8:
      pick().alternate = any_worker();
      break;
    case 9:
      pick().window = below(random, 3) == 0 ? 4'097 : below(random, 3);
      break;
    case 10:
      pick().path.destination_port = NodeId(below(random, 40));
      break;
    case 11:
      pick().path.stream += 1 + below(random, 1'000);
      break;
    case 12:
      stripe.edges.erase(stripe.edges.begin() + below(random, stripe.edges.size()));
      break;
    case 13: {
      const Edge copy = pick();
      plan.stripes[below(random, plan.stripes.size())].edges.push_back(copy);
      break;
    }
    case 14: {
      const Stripe copy = stripe;
      plan.stripes.push_back(copy);
      break;
    }
    default: {
      DemandWorker& worker = demand.workers[below(random, workers)];
      if (below(random, 2) == 0) {
        worker.may_serve = !worker.may_serve;
      } else {
        worker.memory_free = Bytes(below(random, 6'000));
      }
      plan.demand = hash_of(demand);
    }
  }
}

// Makes a changed parent's path right again, half of the time, so that more than NoPath is tried.
void repair_paths(Plan& plan, const Demand& demand, const Router& router) {
  const auto known = [&](WorkerId w) { return w.index() < demand.workers.size(); };
  for (Stripe& stripe : plan.stripes) {
    for (Edge& edge : stripe.edges) {
      if (!known(edge.child) || !known(edge.parent) || edge.child == edge.parent) continue;
      edge.path = fixtures::path_between(router, demand, edge.parent, edge.child);
    }
  }
}

std::string listing(const std::vector<Violation>& violations) {
  std::string text;
  for (const auto& [code, pointer, message] : violations) {
    text += std::string(to_string(code)) + " " + pointer + ": " + message + "\n";
  }
  return text;
}

TEST(CheckerProperty, AgreesWithTheOracleOnRandomPlansAndOnSingleMutations) {
  const fixtures::Cluster cluster = fixtures::cluster(3, 2);
  const Router router(cluster.topology);
  constexpr std::uint64_t kSeeds = 6'000;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    fixtures::Random random(seed);
    Demand demand = fixtures::random_demand(cluster, random);
    ASSERT_NO_THROW(validate(demand, cluster.topology));
    Plan plan = fixtures::random_plan(router, demand, random);
    ASSERT_EQ(listing(check(plan, demand, router)), "");
    ASSERT_TRUE(Oracle(plan, demand, router).accepts());
    mutate(plan, demand, random);
    if (below(random, 2) == 0) repair_paths(plan, demand, router);
    const std::vector<Violation> violations = check(plan, demand, router);
    ASSERT_EQ(violations.empty(), Oracle(plan, demand, router).accepts()) << listing(violations);
    refused += violations.empty() ? 0 : 1;
  }
  // Neither answer may be the only one that was tried.
  EXPECT_GT(refused, kSeeds / 4);
  EXPECT_LT(refused, kSeeds * 9 / 10);
}

// The structural checks and the execution know nothing of each other: where only deliveries are
// wrong, they must agree.
TEST(CheckerProperty, ExecutionAgreesWithTheStructuralChecks) {
  const fixtures::Cluster cluster = fixtures::cluster(3, 2);
  const Router router(cluster.topology);
  const std::set<ViolationCode> deliveries = {
      ViolationCode::NeverHeld,    ViolationCode::MissingBlock, ViolationCode::DuplicateBlock,
      ViolationCode::WaitCycle,    ViolationCode::SelfRead,     ViolationCode::BadStripe,
      ViolationCode::UnknownWorker};
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    fixtures::Random random(seed);
    const Demand demand = fixtures::random_demand(cluster, random);
    Plan plan = fixtures::random_plan(router, demand, random);
    Demand same = demand;
    mutate(plan, same, random);
    bool structural = false;
    bool stuck = false;
    const auto violations = check(plan, demand, router);
    for (const Violation& violation : violations) {
      structural = structural || deliveries.count(violation.code) != 0;
      stuck = stuck || violation.code == ViolationCode::NotExecutable;
    }
    if (stuck) {
      EXPECT_TRUE(structural) << listing(violations);
    }
  }
}

}  // namespace
}  // namespace holdfast
