#include "core/plan/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/plan/plan_fixtures.hpp"

namespace holdfast {
namespace {

using fixtures::worker_on;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::set<ViolationCode> codes(const std::vector<Violation>& violations) {
  std::set<ViolationCode> found;
  for (const Violation& violation : violations) found.insert(violation.code);
  return found;
}

std::string listing(const std::vector<Violation>& violations) {
  std::string text;
  for (const auto& [code, pointer, message] : violations) {
    text += std::string(to_string(code)) + " " + pointer + ": " + message + "\n";
  }
  return text;
}

// Three hosts of two GPUs. Worker 0 (h0g0) holds blocks 0-7, worker 1 (h0g1) holds 0-3. Workers 1
// to 4 want all eight; so there are two classes: blocks 0-3 held by 0 and 1, blocks 4-7 held by 0.
// Worker 5 (h2g1) wants nothing; worker 6 (h0mem) holds everything and may not serve.
class CheckerTest : public ::testing::Test {
 protected:
  CheckerTest() {
    DemandBuilder builder("model", {1, 2}, Bytes(1'000), std::vector<Bytes>(8, Bytes(1'000)));
    for (const NodeId gpu : cluster_.gpus) builder.add_worker(worker_on(gpu));
    builder.add_worker(worker_on(cluster_.memory[0], 0, false));
    builder.holds(WorkerId(0U), {BlockId(0U), 8});
    builder.holds(WorkerId(1U), {BlockId(0U), 4});
    for (std::uint32_t w = 1; w <= 4; ++w) builder.wants(WorkerId(w), {BlockId(0U), 8});
    demand_ = std::move(builder).build();
    plan_ = fixtures::chain_plan(router_, demand_, 2);
  }

  [[nodiscard]] std::vector<Violation> violations() const { return check(plan_, demand_, router_); }
  // After a change to the demand, so that only the change itself is wrong.
  void reseal() { plan_.demand = hash_of(demand_); }
  // Stripes 0, 1: class 0, receivers 2, 3, 4; stripes 2, 3: class 1, receivers 1, 2, 3, 4.
  Edge& edge(std::size_t stripe, std::uint32_t child) {
    for (Edge& it : plan_.stripes[stripe].edges) {
      if (it.child == WorkerId(child)) return it;
    }
    throw std::logic_error("no such edge");
  }
  void read_from(std::size_t stripe, std::uint32_t child, std::uint32_t parent) {
    edge(stripe, child).parent = WorkerId(parent);
    edge(stripe, child).path =
        fixtures::path_between(router_, demand_, WorkerId(parent), WorkerId(child));
  }

  fixtures::Cluster cluster_ = fixtures::cluster(3, 2);
  Router router_{cluster_.topology};
  Demand demand_;
  Plan plan_;
};

TEST_F(CheckerTest, AcceptsRightPlans) {
  ASSERT_EQ(demand_.classes.size(), 2U);
  ASSERT_EQ(plan_.stripes.size(), 4U);
  EXPECT_EQ(listing(violations()), "");
  EXPECT_EQ(listing(check(fixtures::star_plan(router_, demand_), demand_, router_)), "");
  EXPECT_EQ(listing(check(fixtures::chain_plan(router_, demand_, 1), demand_, router_)), "");
}

TEST_F(CheckerTest, EveryCodeHasAName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ViolationCode::NotExecutable); ++code) {
    names.insert(to_string(static_cast<ViolationCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ViolationCode::NotExecutable) + 1);
  EXPECT_THAT(names, Not(Contains("Unknown")));
}

TEST_F(CheckerTest, WrongFormat) {
  plan_.format = 2;
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::WrongFormat}));
}

TEST_F(CheckerTest, WrongTopology) {
  ++plan_.topology.low;
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::WrongTopology}));
}

TEST_F(CheckerTest, WrongDemand) {
  demand_.version.number = 3;
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::WrongDemand}));
}

TEST_F(CheckerTest, BadStripeForAClassThatIsNotThere) {
  plan_.stripes.push_back({ClassId(2U), {0, 1, 1}, {}});
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::BadStripe}));
  plan_.stripes.back().block_class = ClassId();
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::BadStripe}));
}

TEST_F(CheckerTest, BadStripeForASelectionThatIsEmptyOrOutOfRange) {
  for (const BlockSelection selection :
       {BlockSelection{0, 2, 5}, BlockSelection{0, 0, 4}, BlockSelection{2, 1, 2},
        BlockSelection{3, 1, 0}, BlockSelection{0, 1, 0xffffffffU}}) {
    SCOPED_TRACE(::testing::Message()
                 << selection.first << " " << selection.step << " " << selection.end);
    plan_.stripes[0].blocks = selection;
    const auto found = violations();
    EXPECT_EQ(codes(found), (std::set{ViolationCode::BadStripe, ViolationCode::MissingBlock,
                                      ViolationCode::NotExecutable}));
    EXPECT_EQ(found.front().pointer, "/plan/stripes/0/blocks");
  }
}

TEST_F(CheckerTest, BadStripeForEdgesThatDoNotAscend) {
  std::swap(plan_.stripes[2].edges[1], plan_.stripes[2].edges[2]);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::BadStripe}));
  EXPECT_EQ(violations().front().pointer, "/plan/stripes/2/edges/2/child");
}

TEST_F(CheckerTest, UnknownWorkerAsParentChildOrAlternate) {
  edge(0, 4).alternate = WorkerId(7U);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::UnknownWorker}));
  edge(0, 4).alternate = WorkerId();
  edge(0, 4).parent = WorkerId(7U);
  EXPECT_THAT(codes(violations()), Contains(ViolationCode::UnknownWorker));
  EXPECT_EQ(violations().front().pointer, "/plan/stripes/0/edges/2/parent");
  read_from(0, 4, 3);
  EXPECT_THAT(violations(), IsEmpty());
  edge(0, 4).child = WorkerId();
  EXPECT_THAT(codes(violations()), Contains(ViolationCode::UnknownWorker));
}

TEST_F(CheckerTest, SelfRead) {
  edge(2, 3).parent = WorkerId(3U);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::SelfRead, ViolationCode::NotExecutable}));
}

TEST_F(CheckerTest, UnwantedBlockForAStrangerAndForAHolder) {
  plan_.stripes[2].edges.push_back({WorkerId(5U), WorkerId(0U), WorkerId(), {}, 2});
  read_from(2, 5, 0);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::UnwantedBlock}));
  plan_.stripes[2].edges.pop_back();
  auto& edges = plan_.stripes[0].edges;
  edges.insert(edges.begin(), {WorkerId(1U), WorkerId(0U), WorkerId(), {}, 2});
  read_from(0, 1, 0);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::UnwantedBlock}));
}

TEST_F(CheckerTest, AHolderWaitsForNobody) {
  // Worker 1 holds class 0 and feeds worker 2; that it also reads from 2 is unwanted and no cycle.
  read_from(0, 2, 1);
  auto& edges = plan_.stripes[0].edges;
  edges.insert(edges.begin(), {WorkerId(1U), WorkerId(2U), WorkerId(), {}, 2});
  read_from(0, 1, 2);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::UnwantedBlock}));
}

TEST_F(CheckerTest, NeverHeld) {
  read_from(2, 4, 5);
  EXPECT_EQ(codes(violations()),
            (std::set{ViolationCode::NeverHeld, ViolationCode::NotExecutable}));
}

TEST_F(CheckerTest, NeverHeldByOneWhoReceivesOnlyInAnotherStripe) {
  // Worker 1 holds class 0 and receives class 1 in both stripes; without its edge in stripe 2 it
  // cannot feed worker 2 there, although it gets other blocks of the class in stripe 3.
  plan_.stripes[2].edges.erase(plan_.stripes[2].edges.begin());
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::NeverHeld, ViolationCode::MissingBlock,
                                           ViolationCode::NotExecutable}));
}

TEST_F(CheckerTest, ForbiddenSource) {
  demand_.workers[2].may_serve = false;
  reseal();
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::ForbiddenSource}));
  demand_.workers[2].may_serve = true;
  demand_.classes[1].holders.push_back(WorkerId(6U));
  reseal();
  EXPECT_THAT(violations(), IsEmpty());
  read_from(2, 4, 6);
  EXPECT_THAT(codes(violations()), Contains(ViolationCode::ForbiddenSource));
}

TEST_F(CheckerTest, MissingBlock) {
  plan_.stripes[3].edges.pop_back();
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::MissingBlock, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.front().pointer, "/demand/classes/1/receivers/3");
  // Stripe 3 carries the second and the fourth block of the class: blocks 5 and 7.
  EXPECT_THAT(found.front().message, HasSubstr("'h2g0' gets 2 of 4 blocks"));
  EXPECT_THAT(found.front().message, HasSubstr("block 5"));
}

TEST_F(CheckerTest, MissingBlockWithoutAnyStripe) {
  plan_.stripes.clear();
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::MissingBlock, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.size(), 3U + 4U + 1U);
}

TEST_F(CheckerTest, DuplicateBlockWithinAStripe) {
  auto& edges = plan_.stripes[2].edges;
  edges.insert(edges.begin() + 3, edges[2]);
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::DuplicateBlock, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.size(), 2U) << listing(found);
  EXPECT_EQ(found.front().pointer, "/plan/stripes/2/edges/3/child");
}

TEST_F(CheckerTest, DuplicateBlockOverTwoStripes) {
  plan_.stripes.push_back({ClassId(1U), {3, 1, 4}, {edge(2, 2)}});
  plan_.stripes.back().edges[0].parent = WorkerId(0U);
  plan_.stripes.back().edges[0].alternate = WorkerId();
  plan_.stripes.back().edges[0].path =
      fixtures::path_between(router_, demand_, WorkerId(0U), WorkerId(2U));
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::DuplicateBlock, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.front().pointer, "/demand/classes/1/receivers/1");
  EXPECT_THAT(found.front().message, HasSubstr("'h1g0' gets block 7 more than once"));
  EXPECT_THAT(found.front().message, HasSubstr("stripe 4"));
}

TEST_F(CheckerTest, DuplicateAndMissingBlocksOfOneReceiverAreBothSaid) {
  plan_.stripes[3].blocks = {0, 2, 4};
  EXPECT_EQ(codes(violations()),
            (std::set{ViolationCode::DuplicateBlock, ViolationCode::MissingBlock,
                      ViolationCode::NotExecutable}));
}

TEST_F(CheckerTest, NoPathForAPortThatTheWorkerDoesNotHave) {
  edge(0, 4).path.source_port = cluster_.nics[0];  // worker 3 is on host 1
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::NoPath}));
}

TEST_F(CheckerTest, NoPathForAPortThatIsNotThere) {
  edge(0, 4).path.destination_port = NodeId(100'000U);
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::NoPath}));
  edge(0, 4).path.destination_port = NodeId();
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::NoPath}));
}

TEST_F(CheckerTest, WaitCycleIsSaidOnce) {
  // 1 -> 2 -> 3 -> 4 from holder 0; now 2 reads from 4.
  read_from(2, 2, 4);
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::WaitCycle, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.size(), 2U) << listing(found);
  EXPECT_EQ(found.front().pointer, "/plan/stripes/2/edges/1");
  EXPECT_THAT(found.front().message, HasSubstr("'h1g0', 'h2g0', 'h1g1' wait for each other"));
}

TEST_F(CheckerTest, TwoCyclesAndWhatHangsBelowThem) {
  // 1 <-> 2 wait for each other, 4 hangs below; 3 reads from the holder.
  read_from(2, 1, 2);
  read_from(2, 3, 0);
  read_from(2, 4, 2);
  // 3 <-> 4 in the other stripe.
  read_from(3, 3, 4);
  for (const std::uint32_t child : {1U, 2U, 3U, 4U}) {
    edge(2, child).alternate = WorkerId();
    edge(3, child).alternate = WorkerId();
  }
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::WaitCycle, ViolationCode::NotExecutable}));
  EXPECT_EQ(found.size(), 3U) << listing(found);
}

TEST_F(CheckerTest, OutOfMemory) {
  demand_.workers[1].memory_free = Bytes(4'000);  // exactly what it misses
  reseal();
  EXPECT_THAT(violations(), IsEmpty());
  demand_.workers[1].memory_free = Bytes(3'999);
  reseal();
  const auto found = violations();
  EXPECT_EQ(codes(found), (std::set{ViolationCode::OutOfMemory}));
  EXPECT_EQ(found.front().pointer, "/demand/workers/1/memory_free");
}

TEST_F(CheckerTest, BadWindow) {
  edge(1, 3).window = 1;
  edge(1, 4).window = 4'096;
  EXPECT_THAT(violations(), IsEmpty());
  edge(1, 3).window = 0;
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::BadWindow}));
  edge(1, 3).window = 1;
  edge(1, 4).window = 4'097;
  EXPECT_EQ(codes(violations()), (std::set{ViolationCode::BadWindow}));
}

TEST_F(CheckerTest, BadAlternate) {
  // Edge 3 <- 2 of the chain 0 -> 1 -> 2 -> 3 -> 4 in stripe 2; worker 6 holds but may not serve.
  demand_.classes[1].holders.push_back(WorkerId(6U));
  reseal();
  const std::vector<std::pair<std::uint32_t, const char*>> bad = {
      {2, "is the parent"}, {3, "is the child"},  {4, "by way of the child"},
      {5, "neither holds"}, {6, "may not serve"},
  };
  for (const auto& [alternate, why] : bad) {
    SCOPED_TRACE(alternate);
    edge(2, 3).alternate = WorkerId(alternate);
    const auto found = violations();
    EXPECT_EQ(codes(found), (std::set{ViolationCode::BadAlternate}));
    EXPECT_THAT(found.front().message, HasSubstr(why));
  }
  for (const WorkerId good : {WorkerId(), WorkerId(0U), WorkerId(1U)}) {
    edge(2, 3).alternate = good;
    EXPECT_EQ(listing(violations()), "");
  }
}

TEST_F(CheckerTest, NotExecutableOnlyWherePlansAreSmall) {
  plan_.stripes[3].edges.pop_back();
  CheckOptions options;
  options.execute_below = 4 * 3 + 4 * 4;  // the demand's deliveries
  EXPECT_THAT(codes(check(plan_, demand_, router_, options)),
              Contains(ViolationCode::NotExecutable));
  --options.execute_below;
  EXPECT_THAT(codes(check(plan_, demand_, router_, options)),
              Not(Contains(ViolationCode::NotExecutable)));
}

TEST_F(CheckerTest, CountsWhatItDoesNotList) {
  for (Edge& it : plan_.stripes[2].edges) it.window = 0;
  CheckOptions options;
  options.most = 1;
  const auto found = check(plan_, demand_, router_, options);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].code, ViolationCode::BadWindow);
  EXPECT_THAT(found[1].message, HasSubstr("3 more violations"));
}

TEST_F(CheckerTest, AcceptsReceiversOfAClassInDifferentStripes) {
  // Workers 2 and 3 get class 0 in one stripe each, worker 4 in two halves.
  Plan plan = fixtures::star_plan(router_, demand_);
  const Stripe whole = plan.stripes[0];
  const auto stripe = [&](BlockSelection selection, std::size_t e) {
    return Stripe{ClassId(0U), selection, {whole.edges[e]}};
  };
  plan.stripes[0] = stripe({0, 1, 4}, 0);
  plan.stripes.push_back(stripe({0, 1, 4}, 1));
  plan.stripes.push_back(stripe({0, 1, 2}, 2));
  plan.stripes.push_back(stripe({2, 1, 4}, 2));
  EXPECT_EQ(listing(check(plan, demand_, router_)), "");
  plan.stripes.pop_back();
  EXPECT_THAT(codes(check(plan, demand_, router_)), Contains(ViolationCode::MissingBlock));
}

// A plan that is wrong on purpose to cost time or memory: each check must stay within the sizes of
// the demand and of what was written. The test's own time limit is the oracle.
TEST_F(CheckerTest, HostilePlansStayCheap) {
  // 20,000 stripes that all carry all blocks to all receivers, in rings, with wild numbers.
  const fixtures::Cluster cluster = fixtures::cluster(1, 4);
  const Router router(cluster.topology);
  const Demand demand = fixtures::broadcast_demand(cluster, 100'000);
  Plan plan = fixtures::chain_plan(router, demand);
  const Stripe good = plan.stripes[0];
  Stripe wild = good;
  wild.blocks = {0, 1, 0xffffffffU};
  wild.edges[0].window = 0xffffffffU;
  wild.edges[1].parent = WorkerId(3U);
  plan.stripes.assign(20'000, good);
  plan.stripes.insert(plan.stripes.end(), 20'000, wild);
  const auto found = check(plan, demand, router);
  EXPECT_EQ(found.size(), 1'001U);
  EXPECT_THAT(found.back().message, HasSubstr("more violations"));

  // One stripe in which one child has 700,000 edges and as many hang below it.
  plan.stripes.assign(1, good);
  Stripe& wide = plan.stripes[0];
  wide.blocks = {0, 1, 1};
  wide.edges.assign(700'000, good.edges[0]);
  wide.edges.insert(wide.edges.end(), 700'000, good.edges[1]);
  CheckOptions options;
  options.execute_below = 10'000'000;
  EXPECT_THAT(codes(check(plan, demand, router, options)), Contains(ViolationCode::DuplicateBlock));
}

TEST(CheckerScale, ChecksAPlanForThousandsOfGpus) {
  // 2,048 hosts of 8 GPUs; GPU i of each host wants shard i of host 0. Two chains a shard.
  const fixtures::Cluster cluster = fixtures::cluster(2'048, 8);
  const Router router(cluster.topology);
  constexpr std::uint32_t kShardBlocks = 1'024;
  DemandBuilder builder("model", {1, 2}, Bytes(1'000),
                        std::vector<Bytes>(8 * kShardBlocks, Bytes(1'000)));
  for (std::uint32_t i = 0; i < cluster.gpus.size(); ++i) {
    const WorkerId w = builder.add_worker(worker_on(cluster.gpus[i], i / 8));
    const BlockSpan shard{BlockId(i % 8 * kShardBlocks), kShardBlocks};
    i < 8 ? builder.holds(w, shard) : builder.wants(w, shard);
  }
  const Demand demand = std::move(builder).build();
  Plan plan = fixtures::chain_plan(router, demand, 2);
  EXPECT_THAT(check(plan, demand, router), IsEmpty());
  plan.stripes[7].edges[1'000].parent = plan.stripes[7].edges[1'001].child;
  EXPECT_THAT(codes(check(plan, demand, router)), Contains(ViolationCode::WaitCycle));
}

}  // namespace
}  // namespace holdfast
