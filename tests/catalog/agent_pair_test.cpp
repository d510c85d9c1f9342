// Two agents' loops over the virtual network with real bytes and a coordinator written by hand: for
// what a sensible coordinator seldom does.
#include <map>
#include <random>

#include "core/catalog/agent_loop.hpp"
#include "core/engine/digest.hpp"
#include "core/engine/virtual_network.hpp"
#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

constexpr Version kOne{1, 1};
constexpr WorkerId kSource(0U);
constexpr WorkerId kTarget(1U);

std::vector<std::byte> random_bytes() {
  std::vector<std::byte> bytes(kBlocks * kBlockBytes.count());
  std::mt19937_64 random(4);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A worker with one slot, and its end of a session with a coordinator that says what it is told to.
struct Side final : ControlChannel, SlotRegions, AgentObserver {
  Side(VirtualNetwork& on, Placements& placements, WorkerId id, std::vector<std::byte> bytes)
      : network(on),
        memory(std::move(bytes)),
        agent(id, 1, gpu_card(), bench_space(), {}),
        slot(on.transport(id).add_region(memory, Bytes(memory.size()))),
        coordinator({1, 1}, {}),
        loop({agent, *bench_space(), SpaceId(0U), on.transport(id), on.memory(id), placements,
              *this, *this, EngineConfig{}, this}) {
    loop.pump();
    loop.receive(Welcome{1, 1, 1});
  }
  void say(CoordinatorMessage message) {
    coordinator.send(std::make_shared<const CoordinatorMessage>(std::move(message)), network.now());
    std::vector<CoordinatorFrame> frames;
    coordinator.due(network.now(), frames);
    for (const CoordinatorFrame& frame : frames) loop.receive(frame);
  }
  template <class T>
  [[nodiscard]] std::vector<T> heard() const {
    std::vector<T> result;
    for (const auto& message : messages) {
      if (const auto* found = std::get_if<T>(message.get())) result.push_back(*found);
    }
    return result;
  }

  void send(ToCoordinator frame) override {
    const auto* session_frame = std::get_if<WorkerFrame>(&frame);
    if (session_frame == nullptr) return;
    (void)coordinator.receive(*session_frame, network.now(), messages);
  }
  RegionId region(SlotNumber) override { return slot; }
  void allocate(SlotNumber, Bytes) override {}
  void release(SlotNumber) override {}
  std::string address(WorkerId) override { return {}; }
  void call_finished(CallId id, const CallResult& result, Time) override {
    ended.emplace(id, result);
  }
  void runs_changed(const std::optional<Version>&, SlotNumber, Time) override {}
  void block_verified(const PlannedTransfer&, BlockId, WorkerId source, Time) override {
    ++sources[source];
  }
  void transfer_failed(const PlannedTransfer&, const EngineFailure& failure, Time) override {
    ADD_FAILURE() << to_string(failure);
  }

  VirtualNetwork& network;
  std::vector<std::byte> memory;
  Agent agent;
  RegionId slot;
  Session<CoordinatorMessage, WorkerMessage> coordinator;
  std::vector<WorkerMessageRef> messages;
  std::map<CallId, CallResult> ended;
  std::map<WorkerId, int> sources;
  AgentLoop loop;
};

struct Pair {
  explicit Pair(const VirtualOptions& options)
      : network(2, options),
        placements({bench_space()}),
        source(network, placements, kSource, random_bytes()),
        target(network, placements, kTarget,
               std::vector<std::byte>(kBlocks * kBlockBytes.count(), std::byte{0xcd})) {}

  bool run_until(const std::function<bool()>& done, Time limit) {
    const Time end = network.now() + limit;
    for (;;) {
      source.loop.pump();
      target.loop.pump();
      if (done()) return true;
      const Time timer = std::min(source.loop.next_deadline(), target.loop.next_deadline());
      if (std::min(timer, network.next_event()) > end) return false;
      if (network.next_event() <= timer) {
        network.step();
      } else {
        network.advance(timer);
      }
    }
  }
  // No edge is in the tables: all of them are told.
  TransferRef transfer() const {
    Demand demand = simple_demand(1, kBlocks, kBlockBytes);
    demand.version = kOne;
    demand.classes[0].holders = {WorkerId(2U)};
    demand.workers.resize(3);
    Plan plan = tree_plan(demand, {0}, 2);
    for (Stripe& stripe : plan.stripes) stripe.edges.clear();
    std::vector<std::uint64_t> digests;
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      digests.push_back(block_digest(
          std::span(source.memory).subspan(b * kBlockBytes.count(), kBlockBytes.count())));
    }
    auto made = std::make_shared<PlannedTransfer>();
    made->id = 1;
    made->space = SpaceId(0U);
    made->version = kOne;
    made->tables = std::make_shared<const UpdateTables>(demand, plan, nullptr, digests);
    made->demand = std::make_shared<const Demand>(std::move(demand));
    made->plan = std::make_shared<const Plan>(std::move(plan));
    made->shards.assign(3, ShardId{});
    return made;
  }
  void publish() {
    source.loop.call(1, PublishCall{kOne}, seconds(5));
    ASSERT_TRUE(run_until([&] { return !source.heard<Publish>().empty(); }, seconds(1)));
    source.say(Answer{1, {}});
  }
  static LiveEdge edge(bool has_all) {
    LiveEdge live;
    live.stripe = StripeId(0U);
    live.child = kTarget;
    live.parent = kSource;
    live.parent_has_all = has_all;
    return live;
  }
  SourceAccess granted() {
    const auto answers = source.heard<Granted>();
    if (answers.empty() || answers.back().access.empty()) {
      ADD_FAILURE() << "not granted";
      return {};
    }
    return {kSource, answers.back().access[0]};
  }
  void begin(std::vector<LiveEdge> edges, std::vector<SourceAccess> sources) {
    target.loop.call(2, FetchCall{}, seconds(60));
    Decision decision;
    decision.n = 1;
    decision.generation = 1;
    decision.result.version = kOne;
    target.say(Decided{decision});
    target.say(Begin{planned, Destination::InPlace, std::move(sources), std::move(edges)});
  }
  bool filled() { return !target.heard<Filled>().empty(); }

  VirtualNetwork network;
  ShardPlacements placements;
  Side source;
  Side target;
  TransferRef planned;
};

TEST(AgentPair, PublishesTheDigestsOfItsBytes) {
  Pair pair({});
  pair.publish();
  pair.planned = pair.transfer();
  const auto digests = *pair.source.heard<Publish>()[0].digests;
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    EXPECT_EQ(digests[b], pair.planned->tables->digest(BlockId(b)));
  }
}

// The source is in no engine of this plan: it tells its child what it holds, and again when asked.
TEST(AgentPair, AHolderTellsChildrenThatNoTableNames) {
  for (const std::uint32_t lost : {0U, 700U}) {
    VirtualOptions options;
    options.lost_per_mille = lost;
    Pair pair(options);
    pair.publish();
    pair.planned = pair.transfer();
    pair.source.say(GrantReads{pair.planned, {{kTarget, 1, {Pair::edge(false)}}}});
    pair.begin({Pair::edge(false)}, {pair.granted()});
    ASSERT_TRUE(pair.run_until([&] { return pair.filled(); }, seconds(50)));
    EXPECT_EQ(pair.target.memory, pair.source.memory);
    EXPECT_EQ(pair.target.sources[kSource], static_cast<int>(kBlocks));
  }
}

TEST(AgentPair, AChangeGivesAnOrphanItsParent) {
  Pair pair({});
  pair.publish();
  pair.planned = pair.transfer();
  LiveEdge nobody = Pair::edge(true);
  nobody.parent = WorkerId(2U);  // there is no such worker
  pair.begin({nobody}, {});
  ASSERT_TRUE(
      pair.run_until([&] { return !pair.target.heard<ParentWanted>().empty(); }, seconds(50)));
  EXPECT_EQ(pair.target.heard<ParentWanted>()[0].first_missing, 0U);
  pair.source.say(GrantReads{pair.planned, {{kTarget, 1, {}}}});
  pair.target.say(Change{1, {StripeId(0U)}, {Pair::edge(true)}, {pair.granted()}});
  ASSERT_TRUE(pair.run_until([&] { return pair.filled(); }, seconds(5)));
  EXPECT_EQ(pair.target.memory, pair.source.memory);
}

// The parent's word is there before the coordinator's: nobody has to ask for it again.
TEST(AgentPair, WordThatComesBeforeTheTransferCounts) {
  Pair pair({});
  pair.publish();
  pair.planned = pair.transfer();
  pair.source.say(GrantReads{pair.planned, {{kTarget, 1, {Pair::edge(false)}}}});
  (void)pair.run_until([] { return false; }, milliseconds(10));
  const Time begun = pair.network.now();
  pair.begin({Pair::edge(false)}, {pair.granted()});
  ASSERT_TRUE(pair.run_until([&] { return pair.filled(); }, seconds(50)));
  EXPECT_LT(pair.network.now() - begun, milliseconds(10));  // the first question: after 100 ms
}

// Without a permission nothing is read, and the reader asks for somebody else.
TEST(AgentPair, WithoutAGrantNothingIsRead) {
  Pair pair({});
  pair.publish();
  pair.planned = pair.transfer();
  pair.begin({Pair::edge(true)}, {});
  ASSERT_TRUE(
      pair.run_until([&] { return !pair.target.heard<ParentWanted>().empty(); }, seconds(50)));
  EXPECT_EQ(pair.network.traffic(kSource).out, Bytes());
}

TEST(AgentPair, StopsAndAnswersWithWhatIsVerified) {
  VirtualOptions options;
  options.rate = Rate(10'000);  // 100 ms a block
  Pair pair(options);
  pair.publish();
  pair.planned = pair.transfer();
  pair.source.say(GrantReads{pair.planned, {{kTarget, 1, {}}}});
  pair.begin({Pair::edge(true)}, {pair.granted()});
  (void)pair.run_until([] { return false; }, milliseconds(350));
  pair.target.say(Stop{1});
  // The cancelled read has not been polled: its memory is not free yet.
  EXPECT_TRUE(pair.target.heard<TransferStopped>().empty());
  EXPECT_EQ(pair.target.loop.transfers(), 1U);
  ASSERT_TRUE(
      pair.run_until([&] { return !pair.target.heard<TransferStopped>().empty(); }, seconds(1)));
  EXPECT_EQ(pair.target.heard<TransferStopped>()[0].verified.count(), 3U);
  EXPECT_EQ(pair.target.loop.transfers(), 0U);
  // Nothing is written any more.
  const std::vector<std::byte> before = pair.target.memory;
  (void)pair.run_until([] { return false; }, seconds(2));
  EXPECT_EQ(pair.target.memory, before);
}

TEST(AgentPair, ShutsDown) {
  VirtualOptions options;
  options.rate = Rate(10'000);
  Pair pair(options);
  pair.publish();
  pair.planned = pair.transfer();
  pair.source.say(GrantReads{pair.planned, {{kTarget, 1, {}}}});
  pair.begin({Pair::edge(true)}, {pair.granted()});
  (void)pair.run_until([] { return false; }, milliseconds(150));
  pair.target.loop.shutdown();
  pair.source.loop.shutdown();
  ASSERT_TRUE(pair.run_until([&] { return pair.target.loop.idle() && pair.source.loop.idle(); },
                             seconds(1)));
  EXPECT_EQ(pair.target.ended.at(2).status, CallStatus::Stopped);
}

}  // namespace
}  // namespace holdfast::testing
