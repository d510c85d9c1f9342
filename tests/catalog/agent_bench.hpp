// One agent with everything around it written by hand: the coordinator's side of its session, and
// what became of its commands. Invariants are checked after each step.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/catalog/agent.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {

inline constexpr std::uint32_t kBlocks = 8;
inline constexpr Bytes kBlockBytes(1000);
inline constexpr WorkerId kSelf(1U);

// Layout 0: one shard; layout 1: two of four blocks each.
inline std::shared_ptr<const ModelSpace> bench_space() {
  static const auto space = [] {
    auto made = std::make_shared<ModelSpace>("job", "model", kBlockBytes,
                                             std::vector<Bytes>(kBlocks, kBlockBytes));
    made->add_layout("tp1", {{{BlockId(0U), kBlocks}}});
    made->add_layout("tp2", {{{BlockId(0U), kBlocks / 2}}, {{BlockId(kBlocks / 2), kBlocks / 2}}});
    return made;
  }();
  return space;
}

inline WorkerCard gpu_card(std::uint32_t slots = 1) {
  WorkerCard card;
  card.node = NodeId(7U);
  card.space = SpaceId(0U);
  card.group = GroupId(0U);
  card.slots = slots;
  return card;
}

inline WorkerCard host_card(std::uint64_t budget) {
  WorkerCard card;
  card.node = NodeId(8U);
  card.space = SpaceId(0U);
  card.host_memory = true;
  card.shard = kWholeModel;
  card.budget = Bytes(budget);
  return card;
}

// Worker 0 holds everything; 1, 2 and 3 read it in a chain. `shard`: of all of them.
inline TransferRef bench_transfer(PlanNumber id, Version version, ShardId shard = {}) {
  Demand demand = simple_demand(3, kBlocks, kBlockBytes);
  demand.version = version;
  const Plan plan = tree_plan(demand, {0, 1, 2}, 2);
  auto transfer = std::make_shared<PlannedTransfer>();
  transfer->id = id;
  transfer->space = SpaceId(0U);
  transfer->version = version;
  transfer->root = {version.lineage, version.number};
  transfer->tables = std::make_shared<const UpdateTables>(
      demand, plan, nullptr, std::vector<std::uint64_t>(kBlocks, version.number));
  transfer->demand = std::make_shared<const Demand>(std::move(demand));
  transfer->plan = std::make_shared<const Plan>(plan);
  transfer->shards.assign(4, shard);
  return transfer;
}

inline std::shared_ptr<const std::vector<std::uint64_t>> bench_digests(std::uint64_t value = 1) {
  return std::make_shared<const std::vector<std::uint64_t>>(kBlocks, value);
}

class AgentBench {
 public:
  explicit AgentBench(const WorkerCard& card = gpu_card(), const AgentConfig& config = {})
      : agent(kSelf, 1, card, bench_space(), config), session_config(config.session) {
    session_config.ack_delay = {};
  }

  // --- Towards the agent ---
  void step(const AgentEvent& event) {
    std::vector<AgentCommand> out;
    next = agent.step(event, now, out);
    take(out);
    check();
  }
  void shutdown() {
    std::vector<AgentCommand> out;
    next = agent.shutdown(now, out);
    take(out);
  }
  // Lets time pass, stepping the agent when it asks for it. What it sends is acknowledged.
  void pass(Time span) {
    const Time end = now + span;
    while (next <= end) {
      now = std::max(now, next);
      step(AgentTimePassed{});
      acknowledge();
    }
    now = end;
    step(AgentTimePassed{});
    acknowledge();
  }
  void welcome(Epoch epoch = 1, Generation generation = 1) {
    coordinator.emplace(SessionKey{epoch, agent.incarnation()}, session_config);
    step(FromCoordinator{Welcome{epoch, agent.incarnation(), generation}});
  }
  void start(Epoch epoch = 1, Generation generation = 1) {
    step(AgentTimePassed{});
    welcome(epoch, generation);
  }
  void say(CoordinatorMessage message) {
    coordinator->send(std::make_shared<const CoordinatorMessage>(std::move(message)), now);
    acknowledge();
  }
  // Carries what the coordinator's end of the session has to send.
  void acknowledge() {
    if (!coordinator) return;
    std::vector<CoordinatorFrame> due;
    coordinator->due(now, due);
    for (const CoordinatorFrame& frame : due) step(FromCoordinator{frame});
  }
  CallId call(Call what, Time span = seconds(10)) {
    const CallId id = ++calls;
    step(CallMade{id, std::move(what), now + span});
    return id;
  }
  void blocks(PlanNumber plan, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t b = from; b < to; ++b) step(BlockHere{plan, BlockId(b)});
  }
  void allowed(WorkerId reader, Incarnation incarnation, Version version, PlanNumber plan) {
    Access access;
    access.size = 16;
    step(ReaderAllowed{{reader, incarnation, version, plan}, access});
  }
  void grant(const TransferRef& transfer, WorkerId reader, Incarnation incarnation = 1) {
    say(GrantReads{transfer, {{reader, incarnation, {}}}});
    allowed(reader, incarnation, transfer->version, transfer->id);
  }
  // A version that the worker publishes, all the way to Ok.
  void publish(Version version) {
    const CallId id = call(PublishCall{version});
    step(SlotDigested{last<DigestSlot>().slot, bench_digests(version.number)});
    CallResult ok;
    ok.version = version;
    ok.root = {version.lineage, version.number};
    say(Answer{id, ok});
    ASSERT_EQ(status(id), CallStatus::Ok);
  }
  Decision decide(std::uint64_t n, Version version, FetchCall what = {}) {
    Decision decision;
    decision.n = n;
    decision.generation = 1;
    decision.call = what;
    decision.result.version = version;
    return decision;
  }
  // A fetch that is decided and begun.
  CallId fetching(const TransferRef& transfer, std::uint64_t n = 1, FetchCall what = {}) {
    const CallId id = call(what);
    say(Decided{decide(n, transfer->version, what)});
    say(Begin{transfer, what.destination, {}, {}});
    return id;
  }
  // A version that the worker's group runs.
  void run(Version version, PlanNumber plan, std::uint64_t n = 1, FetchCall what = {}) {
    const CallId id = fetching(bench_transfer(plan, version), n, what);
    blocks(plan, 0, kBlocks);
    step(TransferFilled{plan});
    step(TransferIdle{plan});
    CallResult ok;
    ok.version = version;
    say(FetchDone{n, 1, ok});
    ASSERT_EQ(status(id), CallStatus::Ok);
    ASSERT_EQ(agent.runs(), version);
  }

  // --- What came of it ---
  [[nodiscard]] std::optional<CallStatus> status(CallId id) const {
    for (const FinishCall& call : ended) {
      if (call.id == id) return call.result.status;
    }
    return std::nullopt;
  }
  [[nodiscard]] CallResult result(CallId id) const {
    for (const FinishCall& call : ended) {
      if (call.id == id) return call.result;
    }
    ADD_FAILURE() << "call " << id << " has not ended";
    return {};
  }
  template <class T>
  [[nodiscard]] std::size_t commanded() const {
    std::size_t count = 0;
    for (const AgentCommand& command : commands) count += std::holds_alternative<T>(command);
    return count;
  }
  template <class T>
  [[nodiscard]] T last() const {
    for (std::size_t i = commands.size(); i-- > 0;) {
      if (const auto* found = std::get_if<T>(&commands[i])) return *found;
    }
    ADD_FAILURE() << "no such command";
    return {};
  }
  template <class T>
  [[nodiscard]] std::vector<T> heard() const {
    std::vector<T> result;
    for (const auto& message : messages) {
      if (const auto* found = std::get_if<T>(message.get())) result.push_back(*found);
    }
    return result;
  }
  [[nodiscard]] HoldingState state(SlotNumber slot = 0) const {
    return agent.holdings()[slot]->state;
  }
  [[nodiscard]] bool empty(SlotNumber slot = 0) const { return !agent.holdings()[slot]; }

  Agent agent;
  SessionConfig session_config;
  Time now = seconds(1);
  Time next = Time::never();
  CallId calls = 0;
  std::optional<Session<CoordinatorMessage, WorkerMessage>> coordinator;
  std::vector<AgentCommand> commands;  // all but FinishCall and SendToCoordinator
  std::vector<FinishCall> ended;
  std::vector<Hello> hellos;
  std::vector<WorkerFrame> frames;
  std::vector<WorkerMessageRef> messages;
  bool deaf = false;  // the coordinator hears nothing

 private:
  void take(const std::vector<AgentCommand>& out) {
    for (const AgentCommand& command : out) {
      if (const auto* end = std::get_if<FinishCall>(&command)) {
        EXPECT_FALSE(status(end->id)) << "call " << end->id << " ended twice";
        ended.push_back(*end);
      } else if (const auto* sent = std::get_if<SendToCoordinator>(&command)) {
        if (const auto* hello = std::get_if<Hello>(&sent->frame)) hellos.push_back(*hello);
        if (const auto* frame = std::get_if<WorkerFrame>(&sent->frame)) {
          frames.push_back(*frame);
          if (coordinator && !deaf) (void)coordinator->receive(*frame, now, messages);
        }
      } else {
        commands.push_back(command);
      }
    }
  }
  void check() {
    for (const std::string& wrong : broken_invariants(agent, now)) ADD_FAILURE() << wrong;
    EXPECT_GT(next, now);
  }
};

}  // namespace holdfast::testing
