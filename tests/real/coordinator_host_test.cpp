// The coordinator's process of a local run: its planner's thread alone, and all of it beside
// workers, here a thread each, over TCP.
#include "real/local/coordinator_host.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/weights/manifest.hpp"
#include "core/weights/weight_map.hpp"
#include "real/clock.hpp"
#include "real/local/json_lines.hpp"
#include "real/local/local_worker.hpp"
#include "tests/plan/plan_fixtures.hpp"

namespace holdfast::real {
namespace {

using nlohmann::json;

constexpr Time kPatience = seconds(120);

// --- The planner's thread ---------------------------------------------------------------------

std::shared_ptr<const Demand> demand_of(const fixtures::Cluster& cluster) {
  return std::make_shared<const Demand>(fixtures::broadcast_demand(cluster, 64));
}

MakePlan question(PlanNumber id, std::shared_ptr<const Demand> demand) {
  MakePlan ask;
  ask.id = id;
  ask.space = SpaceId(0U);
  ask.digests = std::make_shared<const std::vector<std::uint64_t>>(demand->block_bytes.size(), 7);
  ask.demand = std::move(demand);
  return ask;
}

MakeRepair question(const MakePlan& asked, const PlanMade& made, WorkerId lost) {
  MakeRepair ask;
  ask.id = asked.id;
  ask.request = 3;
  ask.demand = asked.demand;
  ask.plan = made.plan;
  ask.tables = made.tables;
  ask.task.lost = {lost};
  for (std::uint32_t w = 1; w < asked.demand->workers.size(); ++w) {
    if (WorkerId(w) != lost) ask.task.readers.emplace_back(w);
  }
  ask.task.complete = {WorkerId(0U)};
  return ask;
}

std::vector<CoordinatorEvent> answers(PlannerThread& planner, std::size_t count) {
  std::vector<CoordinatorEvent> all;
  for (const Time end = steady_now() + kPatience; all.size() < count && steady_now() < end;) {
    for (CoordinatorEvent& answer : planner.take()) all.push_back(std::move(answer));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return all;
}

// How often it was raised since it was drained.
std::uint64_t raises(const WakeUp& wake) {
  std::uint64_t count = 0;
  return ::read(wake.descriptor(), &count, sizeof count) == sizeof count ? count : 0;
}

TEST(PlannerThread, AnswersInOrderAsThePlannerDoes) {
  const fixtures::Cluster cluster = fixtures::cluster(2, 4);
  const Router router(cluster.topology);
  const auto demand = demand_of(cluster);
  WakeUp wake;
  PlannerThread planner(cluster.topology, Policy::Chain, {}, wake);
  EXPECT_TRUE(planner.take().empty());
  const PlanMade chain = answer_plan(router, question(1, demand), Policy::Chain, {});
  ASSERT_TRUE(chain.plan) << chain.problem;
  const WorkerId middle = chain.plan->stripes.front().edges.front().child;
  const MakeRepair mending = question(question(1, demand), chain, middle);
  planner.ask(question(1, demand));
  planner.ask(mending);
  planner.ask(question(2, demand));
  const auto made = answers(planner, 3);
  ASSERT_EQ(made.size(), 3U);
  for (const std::size_t i : {0U, 2U}) {
    const auto& plan = std::get<PlanMade>(made[i]);
    EXPECT_EQ(plan.id, i == 0 ? 1U : 2U);
    ASSERT_TRUE(plan.plan) << plan.problem;
    EXPECT_EQ(hash_of(*plan.plan), hash_of(*chain.plan));
    EXPECT_TRUE(plan.tables);
  }
  const RepairMade expected = answer_repair(router, mending);
  const auto& repair = std::get<RepairMade>(made[1]);
  EXPECT_FALSE(expected.edges.empty());
  EXPECT_EQ(repair.request, 3U);
  EXPECT_EQ(repair.edges, expected.edges);
  EXPECT_EQ(repair.unmended, expected.unmended);
  EXPECT_TRUE(wake.raised());
  EXPECT_EQ(raises(wake), 3U);
  EXPECT_TRUE(planner.take().empty());
}

TEST(PlannerThread, TellsWhyThereIsNoPlan) {
  const fixtures::Cluster cluster = fixtures::cluster(1, 2);
  WakeUp wake;
  PlannerThread planner(cluster.topology, Policy::Greedy, {}, wake);  // makes no plan beforehand
  planner.ask(question(1, demand_of(cluster)));
  const auto made = answers(planner, 1);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_FALSE(std::get<PlanMade>(made[0]).plan);
  EXPECT_FALSE(std::get<PlanMade>(made[0]).problem.empty());
}

// Whoever waits for the end of the thread waits for one plan at the most.
TEST(PlannerThread, EndsAfterTheQuestionUnderWay) {
  constexpr std::uint64_t kQuestions = 20'000;
  const fixtures::Cluster cluster = fixtures::cluster(2, 8);
  const auto demand = demand_of(cluster);
  WakeUp wake;
  {
    PlannerThread planner(cluster.topology, Policy::Auto, {}, wake);
    for (PlanNumber id = 1; id <= kQuestions; ++id) planner.ask(question(id, demand));
    EXPECT_FALSE(answers(planner, 1).empty());
  }
  EXPECT_LT(raises(wake), kQuestions);
  EXPECT_EQ(demand.use_count(), 1) << "questions outlived the thread";
  const PlannerThread idle(cluster.topology, Policy::Auto, {}, wake);
}

// --- The host beside workers ------------------------------------------------------------------

Manifest model() {
  std::vector<Tensor> tensors{{"model.embed_tokens.weight", DType::BF16, {1024, 64}}};
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    tensors.push_back({prefix + "self_attn.q_proj.weight", DType::BF16, {256, 64}});
    tensors.push_back({prefix + "mlp.down_proj.weight", DType::BF16, {64, 1024}});
  }
  return {"m", tensors};
}

// Two trainers hold a shard each; two rollouts want the whole, in a layout of their own.
class Crew {
 public:
  Crew()
      : cluster_(fixtures::cluster(1, 4)),
        manifest_(model()),
        layouts_{{"trainer", 2}, {"rollout", 1}},
        map_(manifest_, layouts_, Bytes(32 * 1024)),
        space_(std::make_shared<const ModelSpace>(space_of("job", "m", map_))),
        host_(cluster_.topology, cluster_.gpus, {space_}, config(), Policy::Auto, {},
              [this](const Plan&) { ++plans_; }) {
    for (std::uint32_t w = 0; w < 4; ++w) {
      WorkerCard card;
      card.node = cluster_.gpus[w];
      card.space = SpaceId(0U);
      card.group = GroupId(w < 2 ? 0 : w - 1);
      card.shard = w < 2 ? ShardId{0, w} : ShardId{1, 0};
      std::array<int, 2> ends{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      workers_.push_back({Descriptor(ends[0]), Descriptor(ends[1]), JsonLines(ends[0]), {}});
      threads_.emplace_back([this, w, card, parent = ends[1]] {
        const Router router(cluster_.topology);
        const LocalWorkerSetup setup{WorkerId(w), card, space_,          manifest_, map_,
                                     router,      {},   host_.address(), parent,    true};
        if (run_local_worker(setup) != 0) ++failed_;
      });
    }
  }
  ~Crew() {
    for (Worker& worker : workers_) worker.mine.reset();  // a worker ends with its parent
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(failed_, 0);
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void order(std::uint32_t worker, const json& what) {
    EXPECT_TRUE(workers_[worker].lines.send(what));
  }
  // The next line of that kind from a worker; null if none comes.
  json line(std::uint32_t worker, const std::string& kind) {
    auto& heard = workers_[worker].heard;
    for (const Time end = steady_now() + kPatience; steady_now() < end;) {
      while (!heard.empty()) {
        json first = std::move(heard.front());
        heard.pop_front();
        if (first.value("is", "") == kind) return first;
      }
      host_.run_once(steady_now() + milliseconds(2));
      if (!workers_[worker].lines.receive(heard)) break;
    }
    ADD_FAILURE() << "worker " << worker << " does not say '" << kind << "'";
    return {};
  }
  [[nodiscard]] CoordinatorHost& host() { return host_; }
  [[nodiscard]] int plans() const { return plans_; }

 private:
  struct Worker {
    Descriptor mine;
    Descriptor its;
    JsonLines lines;
    std::deque<json> heard;
  };
  static CoordinatorConfig config() {
    CoordinatorConfig config;
    config.rebuild_time = milliseconds(100);
    config.detection = seconds(60);  // of a busy machine
    config.gather = milliseconds(100);
    return config;
  }

  fixtures::Cluster cluster_;
  Manifest manifest_;
  std::vector<Layout> layouts_;
  WeightMap map_;
  std::shared_ptr<const ModelSpace> space_;
  int plans_ = 0;
  CoordinatorHost host_;
  std::atomic<int> failed_{0};
  std::vector<Worker> workers_;
  std::vector<std::thread> threads_;
};

TEST(CoordinatorHost, BringsTwoVersionsFromTrainersToRollouts) {
  Crew crew;
  for (std::uint32_t w = 0; w < 4; ++w) crew.line(w, "ready");
  std::uint64_t call = 0;
  const auto all = [&](std::uint32_t first, const char* what, std::uint64_t number) {
    ++call;
    for (std::uint32_t w = first; w < first + 2; ++w) {
      crew.order(w, {{"do", what}, {"call", call}, {"within", 120}, {"number", number}});
    }
    for (std::uint32_t w = first; w < first + 2; ++w) {
      const json ended = crew.line(w, "ended");
      EXPECT_EQ(ended.value("call", 0U), call);
      EXPECT_EQ(ended.value("status", ""), "Ok") << what << " of " << w << ": " << ended;
    }
  };
  for (std::uint64_t number = 1; number <= 2; ++number) {
    all(0, "publish", number);
    all(2, "fetch", 0);
    for (std::uint32_t w = 2; w < 4; ++w) {
      crew.order(w, {{"do", "verify"}, {"number", number}});
      const json verified = crew.line(w, "verified");
      EXPECT_FALSE(verified.is_null() || verified.contains("wrong")) << verified;
    }
    all(0, "unpublish", number);
  }
  EXPECT_GE(crew.plans(), 2);
  EXPECT_TRUE(broken_invariants(crew.host().coordinator(), steady_now()).empty());
  for (std::uint32_t w = 0; w < 4; ++w) crew.order(w, {{"do", "stop"}});
}

// Whoever says what makes no sense loses the connection; the others do not notice.
TEST(CoordinatorHost, DropsWhoMakesNoSense) {
  const fixtures::Cluster cluster = fixtures::cluster(1, 2);
  const Manifest manifest = model();
  const std::vector<Layout> layouts{{"whole", 1}};
  const WeightMap map(manifest, layouts, Bytes(32 * 1024));
  const auto space = std::make_shared<const ModelSpace>(space_of("job", "m", map));
  CoordinatorHost host(cluster.topology, cluster.gpus, {space}, {}, Policy::Auto, {}, {});
  ControlClient quiet(WorkerId(0U), 1, host.address(), {});
  ControlClient babbler(WorkerId(1U), 1, host.address(), {});
  int lost = 0;
  int lost_by_quiet = 0;
  const auto count_lost = [](ControlClient& client) {
    std::array<ControlEvent, 8> events;
    int count = 0;
    for (std::size_t n = client.poll(events); n != 0; n = client.poll(events)) {
      for (std::size_t i = 0; i < n; ++i) {
        if (events[i].kind == ControlEvent::Kind::Disconnected) ++count;
      }
    }
    return count;
  };
  constexpr std::array<std::byte, 5> kNonsense{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                               std::byte{0xff}, std::byte{0xff}};
  bool sent = false;
  for (const Time end = steady_now() + kPatience; lost == 0 && steady_now() < end;) {
    host.run_once(steady_now() + milliseconds(1));
    lost += count_lost(babbler);
    lost_by_quiet += count_lost(quiet);
    if (!sent && quiet.connected() && babbler.connected()) sent = babbler.send(kNonsense);
  }
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(lost_by_quiet, 0);
  EXPECT_TRUE(quiet.connected());
}

}  // namespace
}  // namespace holdfast::real
