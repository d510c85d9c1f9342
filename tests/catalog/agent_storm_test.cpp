// Random events in any order: an agent never breaks its invariants, whatever it is told. In half of
// the storms transport and transfers keep their contracts (the coordinator never does); then, in
// addition, nobody can read from a buffer that was given back or is being filled, every call ends
// once and by its deadline, and nothing runs that was not fetched in full and confirmed.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

class Storm {
 public:
  Storm(std::uint64_t seed, bool lawful)
      : random_(seed),
        lawful_(lawful),
        host_(pick(5) == 0),
        agent_(kSelf, 1, host_ ? host_card(14'000) : gpu_card(1 + pick(2)), bench_space(), {}) {
    for (std::uint32_t v = 0; v < kVersions; ++v) {
      for (std::uint32_t p = 0; p < kPlans / kVersions; ++p) {
        const PlanNumber id = p * kVersions + v + 1;
        transfers_.push_back(bench_transfer(id, version(v), host_ ? kWholeModel : ShardId{}));
      }
    }
  }

  void run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFailure(); ++i) one();
    if (::testing::Test::HasFailure()) return;
    end();
  }
  [[nodiscard]] const std::map<std::string, int>& reached() const { return reached_; }

 private:
  static constexpr std::uint32_t kVersions = 3;
  static constexpr std::uint32_t kPlans = 6;

  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  static Version version(std::uint32_t v) { return {1, v + 1}; }
  Version version() { return version(pick(kVersions)); }
  const TransferRef& transfer() {
    std::sort(transfers_.begin(), transfers_.end(),
              [](const auto& a, const auto& b) { return a->id < b->id; });
    return transfers_[pick(static_cast<std::uint32_t>(transfers_.size()))];
  }
  WorkerId reader() { return WorkerId(2U + pick(2)); }
  ReadGrant grant() {
    if (!agent_.grants().empty() && pick(4) != 0) {
      return agent_.grants()[pick(static_cast<std::uint32_t>(agent_.grants().size()))];
    }
    return {reader(), 1U + pick(3), version(), 1U + pick(kPlans)};
  }

  void one() {
    if (pick(4) == 0) now_ += Time(static_cast<std::int64_t>(random_() % 300'000'000'000U));
    // The driver steps in time, as it was asked to.
    while (next_ <= now_ && next_ != Time::never()) {
      const Time end = now_;
      now_ = std::max(last_, next_);
      step(AgentTimePassed{});
      now_ = std::max(now_, end);
      if (::testing::Test::HasFailure()) return;
    }
    switch (pick(12)) {
      case 0:
      case 1:
        return call();
      case 2:
      case 3:
      case 4:
      case 5:
        return command();
      case 6:
        return session();
      case 7:
      case 8:
        return transport();
      default:
        return progress();
    }
  }

  void call() {
    const CallId id = ++calls_;
    const Time deadline = now_ + Time(static_cast<std::int64_t>(random_() % 3'000'000'000'000U));
    Call what;
    switch (pick(14)) {
      case 0:
      case 1:
      case 2:
        what = PublishCall{version()};
        break;
      case 3:
      case 4:
        what = UnpublishCall{version(), pick(2) == 0 ? OnDeadline::Fail : OnDeadline::Revoke};
        break;
      case 5:
        what = CancelCall{pick(2) == 0 ? id - 1 : fetch_};
        break;
      case 6:
        what = RetainCall{version(), 1, Level::Host};
        break;
      case 7:
        what = LineageCall{};
        break;
      case 8:
        what = pick(6) == 0 ? Call(LeaveCall{}) : Call(ReleaseCall{version()});
        break;
      default:
        fetch_ = id;
        what = FetchCall{pick(2) == 0 ? std::optional(version()) : std::nullopt,
                         pick(2) == 0 ? Destination::InPlace : Destination::Shadow,
                         pick(2) == 0 ? OnNewer::Finish : OnNewer::Restart};
    }
    open_[id] = {what, deadline};
    making_ = id;
    step(CallMade{id, what, deadline});
    making_ = 0;
  }

  CallResult any_result() {
    static constexpr CallStatus kStatus[] = {CallStatus::Ok,          CallStatus::Ok,
                                             CallStatus::Ok,          CallStatus::Cancelled,
                                             CallStatus::GroupBroken, CallStatus::Superseded,
                                             CallStatus::Withdrawn,   CallStatus::VersionConflict};
    CallResult result;
    result.status = kStatus[pick(8)];
    result.version = version();
    result.root = {result.version.lineage, result.version.number};
    return result;
  }

  // Whatever a coordinator could say, at any time.
  void command() {
    if (!coordinator_) return session();
    const Time deadline = now_ + Time(static_cast<std::int64_t>(random_() % 1'000'000'000'000U));
    const WorkerReport report = agent_.report();
    const std::uint64_t n = report.fetch && pick(5) != 0 ? report.fetch->n : 1U + pick(4);
    CoordinatorMessage message;
    switch (pick(15)) {
      case 0: {
        CallId id = 1U + pick(static_cast<std::uint32_t>(calls_ + 1));
        if (!open_.empty() && pick(4) != 0) id = std::prev(open_.end())->first;
        message = Answer{id, any_result()};
        break;
      }
      case 1:
      case 2: {
        Decision decision;
        decision.n = n;
        decision.generation = report.generation;
        decision.result = any_result();
        message = Decided{decision};
        break;
      }
      case 3: {
        FetchDone done{n, report.generation, any_result()};
        if (done.result.status == CallStatus::Ok) confirmed_.insert(done.result.version);
        message = done;
        break;
      }
      case 4:
        message = GenerationIs{report.generation + pick(2)};
        break;
      case 5:
        message = Clear{version(), static_cast<ClearReason>(pick(4)),
                        pick(2) == 0 ? OnDeadline::Fail : OnDeadline::Revoke, deadline};
        break;
      case 6:
        message = Unhide{version()};
        break;
      case 7:
      case 8:
        message = GrantReads{transfer(), {{reader(), 1U + pick(3), edges()}}};
        break;
      case 9:
        message = EndReads{{grant(), grant()}};
        break;
      case 10:
      case 11:
        message = Begin{transfer(), Destination::InPlace, {}, edges()};
        break;
      case 12:
        message = pick(3) == 0 ? CoordinatorMessage(Change{1U + pick(kPlans), {}, edges(), {}})
                               : CoordinatorMessage(Stop{1U + pick(kPlans)});
        break;
      case 13:
        message = pick(2) == 0 ? CoordinatorMessage(Tell{version()})
                               : CoordinatorMessage(Note{version(), pick(2) == 0, {}});
        break;
      default:
        if (pick(300) != 0) return;
        message = LeaveNow{};
    }
    ++reached_[name_of(message)];
    coordinator_->send(std::make_shared<const CoordinatorMessage>(std::move(message)), now_);
    deliver();
  }
  std::vector<LiveEdge> edges() {
    if (pick(3) != 0) return {};
    LiveEdge edge;
    edge.stripe = StripeId(0U);
    edge.child = reader();
    edge.parent = kSelf;
    return {edge};
  }
  void deliver() {
    std::vector<CoordinatorFrame> frames;
    coordinator_->due(now_, frames);
    for (const CoordinatorFrame& frame : frames) {
      if (pick(10) != 0) step(FromCoordinator{frame});
      if (pick(10) == 0) step(FromCoordinator{frame});
    }
  }

  void session() {
    const Incarnation incarnation = agent_.incarnation() - (pick(8) == 0 ? 1 : 0);
    switch (pick(12)) {
      case 0:
        return step(
            FromCoordinator{UnknownSession{pick(3) == 0 ? agent_.epoch() : 0, incarnation}});
      case 1:
        if (pick(5) != 0) return;
        return step(FromCoordinator{
            FencedOff{agent_.epoch() + pick(2), incarnation, incarnation + pick(3)}});
      default: {
        if (agent_.connected() && pick(4) != 0) return;
        const Epoch epoch = agent_.epoch() + pick(3);
        if (epoch == 0) return;
        const SessionKey key{epoch, agent_.incarnation()};
        if (!coordinator_ || coordinator_->key() != key) coordinator_.emplace(key, SessionConfig{});
        step(FromCoordinator{
            Welcome{epoch, agent_.incarnation(), agent_.report().generation + (pick(4) == 0)}});
        return;
      }
    }
  }

  void transport() {
    if (!lawful_ && pick(3) == 0) return step(ReaderRevoked{reader(), version()});
    if (!lawful_ && pick(3) == 0) return step(ReaderAllowed{grant(), {}});
    if (!to_allow_.empty() && pick(2) == 0) {
      const ReadGrant allowed = to_allow_.front();
      to_allow_.erase(to_allow_.begin());
      Access access;
      access.size = pick(8) == 0 ? 0 : 16;
      return step(ReaderAllowed{allowed, access});
    }
    if (to_revoke_.empty()) return;
    const auto pair = to_revoke_.front();
    to_revoke_.erase(to_revoke_.begin());
    std::erase_if(access_, [&](const auto& a) {
      return std::get<0>(a) == pair.first && std::get<1>(a) == pair.second;
    });
    step(ReaderRevoked{pair.first, pair.second});
  }

  void progress() {
    if (!to_digest_.empty() && pick(3) == 0) {
      const SlotNumber slot = to_digest_.front();
      to_digest_.erase(to_digest_.begin());
      return step(SlotDigested{slot, bench_digests()});
    }
    PlanNumber plan = 1U + pick(kPlans);
    if (!reading_.empty() && (lawful_ || pick(3) != 0)) {
      plan = std::next(reading_.begin(), pick(static_cast<std::uint32_t>(reading_.size())))->first;
    } else if (lawful_) {
      return;
    }
    switch (pick(8)) {
      case 0:
        if (stopping_.erase(plan) == 0) {
          if (lawful_) return;
        } else {
          reading_.erase(plan);
        }
        return step(TransferIdle{plan});
      case 1:
        if (lawful_ && reading_[plan].size() != kBlocks) return;
        return step(TransferFilled{plan});
      case 2:
        return step(
            TransferWantsParent{plan, StripeId(0U), pick(8), reader(), FailureKind::ReadFailed});
      case 3:
        return step(TransferSwitched{plan, StripeId(0U), reader(), reader()});
      default:
        for (int i = 0; i < 4; ++i) {
          const BlockId block(pick(kBlocks + (lawful_ ? 0 : 3)));
          if (reading_.contains(plan)) reading_[plan].insert(block.value());
          step(BlockHere{plan, block});
        }
    }
  }

  // --- The agent's commands, and the oracle ---
  void step(const AgentEvent& event) {
    const Epoch epoch = agent_.epoch();
    const Incarnation incarnation = agent_.incarnation();
    const auto before = agent_.holdings();
    std::vector<AgentCommand> out;
    last_ = now_;
    next_ = agent_.step(event, now_, out);
    for (const AgentCommand& command : out) {
      std::visit([this](const auto& c) { on(c); }, command);
    }
    for (const std::string& wrong : broken_invariants(agent_, now_)) ADD_FAILURE() << wrong;
    EXPECT_GT(next_, now_);
    EXPECT_GE(agent_.epoch(), epoch);
    EXPECT_GE(agent_.incarnation(), incarnation);
    const auto after = agent_.holdings();
    for (std::size_t s = 0; s < before.size() && s < after.size(); ++s) {
      if (!before[s] || !after[s] || before[s]->version != after[s]->version) continue;
      // One frame may bring several messages: a Clear, and a Begin of the same version.
      if (!std::holds_alternative<FromCoordinator>(event)) {
        EXPECT_TRUE(after[s]->verified.includes(before[s]->verified)) << "12: blocks were lost";
      }
    }
    if (!lawful_) return;
    for (const auto& [id, call] : open_) {
      const bool late = call.second <= now_ && !std::holds_alternative<UnpublishCall>(call.first) &&
                        !std::holds_alternative<FetchCall>(call.first);
      EXPECT_FALSE(late) << "call " << id << " is overdue";
    }
  }

  void expect_unread(SlotNumber slot, const std::optional<Version>& but, const char* what) {
    if (!lawful_) return;
    for (const auto& [reader, version, in] : access_) {
      if (in == slot && version != but) {
        ADD_FAILURE() << what << " slot " << slot << " while worker " << reader.value()
                      << " may read version " << to_string(version);
      }
    }
  }

  void on(const SendToCoordinator& command) {
    if (const auto* frame = std::get_if<WorkerFrame>(&command.frame)) {
      std::vector<WorkerMessageRef> messages;
      if (coordinator_ && pick(10) != 0) (void)coordinator_->receive(*frame, now_, messages);
      for (const auto& message : messages) {
        ++reached_[name_of(*message)];
      }
    }
  }
  void on(const FinishCall& command) {
    const auto call = open_.find(command.id);
    ASSERT_TRUE(call != open_.end()) << "call " << command.id << " ended twice";
    const auto* unpublish = std::get_if<UnpublishCall>(&call->second.first);
    if (unpublish != nullptr && command.result.status == CallStatus::Ok) {
      ++reached_["unpublished"];
      for (const auto& [reader, version, slot] : access_) {
        EXPECT_TRUE(!lawful_ || version != unpublish->version)
            << "unpublished while worker " << reader.value() << " may read";
      }
    }
    if (std::holds_alternative<FetchCall>(call->second.first)) {
      const bool was_open = command.id != making_;
      const auto holdings = agent_.holdings();
      for (const auto& [plan, blocks] : reading_) {
        const auto& holding = holdings[slots_[plan]];
        EXPECT_TRUE(!lawful_ || !was_open || (holding && holding->verified.all()))
            << "a fetch returned while plan " << plan << " reads";
      }
      if (command.result.status == CallStatus::Ok) ++reached_["fetched"];
    }
    open_.erase(call);
  }
  void on(const DigestSlot& command) {
    expect_unread(command.slot, slot_version(command.slot), "digests");
    to_digest_.push_back(command.slot);
  }
  void on(const AllowReader& command) {
    access_.insert({command.grant.reader, command.grant.version, command.slot});
    to_allow_.push_back(command.grant);
    for (const auto& pair : to_revoke_) {
      EXPECT_FALSE(lawful_ && pair.first == command.grant.reader &&
                   pair.second == command.grant.version)
          << "let in while it is being revoked";
    }
  }
  void on(const RevokeReader& command) { to_revoke_.emplace_back(command.reader, command.version); }
  void on(const StartTransfer& command) {
    expect_unread(command.slot, command.transfer->version, "fills");
    EXPECT_FALSE(lawful_ && reading_.contains(command.transfer->id)) << "begun twice";
    reading_[command.transfer->id] = {};
    slots_[command.transfer->id] = command.slot;
    ++reached_["started"];
  }
  void on(const StopTransfer& command) {
    if (reading_.contains(command.plan)) stopping_.insert(command.plan);
  }
  void on(const Runs& command) {
    if (!command.version) return;
    ++reached_["runs"];
    EXPECT_TRUE(confirmed_.contains(*command.version));
    const auto holding = agent_.holdings()[command.slot];
    // Unless the same frame brought its Clear.
    if (holding && holding->version == *command.version) {
      EXPECT_TRUE(holding->verified.all());
    }
  }
  void on(const FreeSlot& command) { expect_unread(command.slot, std::nullopt, "frees"); }
  void on(const AllocateSlot&) {}
  void on(const ChangeTransfer&) {}
  void on(const AddChildren&) {}

  std::optional<Version> slot_version(SlotNumber slot) {
    const auto holdings = agent_.holdings();
    return slot < holdings.size() && holdings[slot] ? std::optional(holdings[slot]->version)
                                                    : std::nullopt;
  }

  // Shutdown, with a transport that answers: nothing is left.
  void end() {
    std::vector<AgentCommand> out;
    next_ = agent_.shutdown(now_, out);
    for (const AgentCommand& command : out) {
      std::visit([this](const auto& c) { on(c); }, command);
    }
    while (!to_revoke_.empty()) {
      const auto pair = to_revoke_.front();
      to_revoke_.erase(to_revoke_.begin());
      std::erase_if(access_, [&](const auto& a) {
        return std::get<0>(a) == pair.first && std::get<1>(a) == pair.second;
      });
      step(ReaderRevoked{pair.first, pair.second});
    }
    while (!to_digest_.empty()) {
      step(SlotDigested{to_digest_.back(), bench_digests()});
      to_digest_.pop_back();
    }
    const auto stopping = stopping_;
    for (const PlanNumber plan : stopping) {
      reading_.erase(plan);
      step(TransferIdle{plan});
    }
    if (!lawful_) return;
    EXPECT_TRUE(agent_.idle());
    EXPECT_TRUE(open_.empty());
    EXPECT_TRUE(access_.empty());
  }

  std::mt19937_64 random_;
  bool lawful_;
  bool host_;
  Agent agent_;
  std::optional<Session<CoordinatorMessage, WorkerMessage>> coordinator_;
  std::vector<TransferRef> transfers_;
  Time now_ = seconds(1);
  Time last_ = seconds(1);
  Time next_ = Time::never();
  CallId calls_ = 0;
  CallId fetch_ = 0;
  CallId making_ = 0;  // during its step
  std::map<CallId, std::pair<Call, Time>> open_;
  std::vector<ReadGrant> to_allow_;
  std::vector<std::pair<WorkerId, Version>> to_revoke_;
  std::vector<SlotNumber> to_digest_;
  std::set<std::tuple<WorkerId, Version, SlotNumber>> access_;  // not known to be revoked
  std::map<PlanNumber, std::set<std::uint32_t>> reading_;       // blocks that came, by plan
  std::map<PlanNumber, SlotNumber> slots_;                      // that they fill
  std::set<PlanNumber> stopping_;
  std::set<Version> confirmed_;  // by FetchDone
  std::map<std::string, int> reached_;
};

void storms(bool lawful, std::uint64_t seeds) {
  std::map<std::string, int> reached;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + (lawful ? ", lawful" : ", wild"));
    Storm storm(seed, lawful);
    storm.run(1'500);
    for (const auto& [what, count] : storm.reached()) reached[what] += count;
    if (::testing::Test::HasFailure()) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
      return;
    }
  }
  for (const auto& [what, count] : reached) std::printf("%s %d  ", what.c_str(), count);
  std::printf("\n");
  // The storms get somewhere.
  for (const char* what : {"started", "fetched", "runs", "unpublished", "Cleared", "ClearFailed",
                           "Granted", "GrantsGone", "Filled", "TransferStopped", "Progress"}) {
    EXPECT_GT(reached[what], 0) << what;
  }
}

TEST(AgentStorm, OfLawfulSurroundings) {
  storms(true, 300);
}
TEST(AgentStorm, OfAnythingAtAll) {
  storms(false, 300);
}

}  // namespace
}  // namespace holdfast::testing
