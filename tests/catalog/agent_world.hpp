// Agents and a coordinator, all real, over the virtual network: transfers with real bytes, control
// messages that are lost, doubled, delayed and reordered as a test likes. What a fetch delivered is
// compared with what was published; a buffer that an unpublish returned is overwritten at once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/agent_loop.hpp"
#include "core/catalog/coordinator.hpp"
#include "core/catalog/planning.hpp"
#include "core/engine/virtual_network.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast::testing_support {

// One rack of hosts with a GPU, a NIC and memory each, over links of 10 GB/s: GPU of host i is
// worker 2 i, its memory worker 2 i + 1.
inline Topology fast_rack(std::uint32_t hosts) {
  constexpr std::uint64_t kRate = 10'000'000'000;
  Sketch sketch;
  const NodeId hub = sketch.node("hub", NodeKind::Switch);
  const DomainId around = sketch.builder.add_domain("d0", Level::Datacenter);
  const DomainId rack = sketch.builder.add_domain("d0.r0", Level::Rack, around);
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::string name = "h" + std::to_string(h);
    const DomainId host = sketch.host(name, rack);
    const NodeId gpu = sketch.node(name + ".gpu", NodeKind::Gpu, host);
    const NodeId memory = sketch.node(name + ".mem", NodeKind::HostMemory, host);
    const NodeId nic = sketch.node(name + ".nic", NodeKind::Nic, host);
    const NodeId pcie = sketch.node(name + ".pcie", NodeKind::PcieSwitch, host);
    sketch.link(gpu, pcie, LinkKind::Pcie, kRate);
    sketch.link(nic, pcie, LinkKind::Pcie, kRate);
    sketch.link(memory, pcie, LinkKind::Memory, kRate);
    sketch.link(nic, hub, LinkKind::Fabric, kRate);
  }
  return sketch.build();
}

struct WorldOptions {
  std::uint64_t seed = 1;
  std::uint32_t hosts = 4;
  std::uint32_t ranks = 2;
  std::uint32_t blocks = 16;
  std::uint32_t slots = 1;
  Bytes block_bytes = Bytes(3'000);
  std::uint64_t host_budget = 1'000'000;
  VirtualOptions network;
  Time control_latency = microseconds(50);
  Time control_jitter;
  std::uint32_t control_lost = 0;     // per mille
  std::uint32_t control_doubled = 0;  // per mille
  CoordinatorConfig coordinator;
  AgentConfig agent;
  EngineConfig engine;
};

class AgentWorld {
 public:
  explicit AgentWorld(const WorldOptions& options)
      : options_(options),
        random_(options.seed),
        topology_(fast_rack(options.hosts)),
        router_(topology_) {
    auto space =
        std::make_shared<ModelSpace>("job", "model", options.block_bytes,
                                     std::vector<Bytes>(options.blocks, options.block_bytes));
    std::vector<std::vector<BlockSpan>> shards;
    for (std::uint32_t r = 0; r < options.ranks; ++r) {
      const std::uint32_t first = options.blocks * r / options.ranks;
      shards.push_back({{BlockId(first), options.blocks * (r + 1) / options.ranks - first}});
    }
    space->add_layout("tp", std::move(shards));
    space_ = space;
    for (std::size_t n = 0; n < topology_.nodes().size(); ++n) {
      if (is_endpoint(topology_.nodes()[n].kind)) roster_.emplace_back(n);
    }
    network_ = std::make_unique<VirtualNetwork>(roster_.size(), options.network);
    placements_ =
        std::make_unique<ShardPlacements>(std::vector<std::shared_ptr<const ModelSpace>>{space_});
    for (std::uint32_t i = 0; i < roster_.size(); ++i) start(WorkerId(i), 1);
    restart_coordinator();
    run_for(options.coordinator.rebuild_time + milliseconds(100));
  }

  // --- Faults ---
  void restart_coordinator() {
    coordinator = std::make_unique<Coordinator>(
        topology_, roster_, std::vector<std::shared_ptr<const ModelSpace>>{space_},
        options_.coordinator);
    ++coordinator_life_;
    step_coordinator(CoordinatorTimePassed{});
  }
  void stop_coordinator() {
    coordinator.reset();
    ++coordinator_life_;
    coordinator_next_ = Time::never();
  }
  void crash(WorkerId worker) {
    members_[worker.index()]->up = false;
    network_->crash(worker);
  }
  void restart(WorkerId worker) {
    const Incarnation next = members_[worker.index()]->agent.incarnation() + 1;
    graves_.push_back(std::move(members_[worker.index()]));
    network_->restart(worker);
    start(worker, next);
  }
  void set_control(std::uint32_t lost, std::uint32_t doubled, Time jitter) {
    options_.control_lost = lost;
    options_.control_doubled = doubled;
    options_.control_jitter = jitter;
  }
  void cut_control(WorkerId worker, bool cut) {
    if (cut) {
      cut_.insert(worker);
    } else {
      cut_.erase(worker);
    }
  }

  // --- What users do ---
  [[nodiscard]] std::vector<WorkerId> members(std::uint32_t group) const {
    std::vector<WorkerId> result;
    for (std::uint32_t r = 0; r < options_.ranks; ++r) {
      result.emplace_back(2 * (group * options_.ranks + r));
    }
    return result;
  }
  CallId call(WorkerId worker, const Call& what, Time span = seconds(30)) {
    const CallId id = ++calls_;
    members_[worker.index()]->loop->call(id, what, now() + span);
    return id;
  }
  // Writes the version's bytes and publishes; runs until all have their answer.
  void publish(std::uint32_t group, Version version) {
    std::vector<CallId> ids;
    for (const WorkerId worker : members(group)) {
      Member& m = *members_[worker.index()];
      SlotNumber slot = 0;
      const auto holdings = m.agent.holdings();
      while (slot < holdings.size() && holdings[slot]) ++slot;
      ASSERT_LT(slot, holdings.size());
      const std::vector<std::byte> bytes = truth(version, m.card.shard);
      std::copy(bytes.begin(), bytes.end(), m.memory[slot].begin());
      ids.push_back(call(worker, PublishCall{version}));
    }
    ASSERT_TRUE(run_until_ended(ids));
    for (const CallId id : ids) ASSERT_EQ(result(id).status, CallStatus::Ok);
  }
  std::vector<CallId> fetch(std::uint32_t group, const FetchCall& what = {},
                            Time span = seconds(30)) {
    std::vector<CallId> ids;
    for (const WorkerId worker : members(group)) ids.push_back(call(worker, what, span));
    return ids;
  }

  // --- Time ---
  bool run_until(const std::function<bool()>& done, Time limit) {
    for (;;) {
      for (const WorkerId worker : network_->take_ready()) pump(worker);
      for (std::uint32_t i = 0; i < members_.size(); ++i) {
        if (due(i) <= now()) pump(WorkerId(i));
      }
      if (done()) return true;
      Time next = std::min(network_->next_event(), coordinator_next_);
      if (!events_.empty()) next = std::min(next, events_.begin()->first);
      for (std::uint32_t i = 0; i < members_.size(); ++i) next = std::min(next, due(i));
      if (next > limit) {
        network_->advance(limit);
        return false;
      }
      if (network_->next_event() <= next) {
        network_->step();
        continue;
      }
      network_->advance(next);
      while (!events_.empty() && events_.begin()->first <= now()) {
        const auto action = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        action();
      }
      if (coordinator_next_ <= now()) step_coordinator(CoordinatorTimePassed{});
      if (::testing::Test::HasFailure()) return false;
    }
  }
  void run_for(Time span) {
    (void)run_until([] { return false; }, now() + span);
  }
  bool run_until_ended(const std::vector<CallId>& ids, Time span = seconds(60)) {
    return run_until(
        [&] {
          return std::all_of(ids.begin(), ids.end(),
                             [this](CallId id) { return results_.contains(id); });
        },
        now() + span);
  }

  // --- What came of it ---
  [[nodiscard]] Time now() const { return network_->now(); }
  [[nodiscard]] bool ended(CallId id) const { return results_.contains(id); }
  [[nodiscard]] const CallResult& result(CallId id) const { return results_.at(id); }
  [[nodiscard]] Agent& agent(WorkerId worker) { return members_[worker.index()]->agent; }
  [[nodiscard]] AgentLoop& loop(WorkerId worker) { return *members_[worker.index()]->loop; }
  [[nodiscard]] VirtualNetwork& network() { return *network_; }
  [[nodiscard]] std::size_t blocks_moved() const { return blocks_moved_; }
  [[nodiscard]] std::vector<std::byte> truth(Version version, ShardId shard) const {
    std::vector<std::byte> bytes(space_->bytes(shard).count());
    std::size_t at = 0;
    for (const BlockSpan& span : space_->spans(shard)) {
      for (std::uint32_t b = 0; b < span.count; ++b) {
        std::mt19937_64 stream((version.number << 32U) + span.first.value() + b);
        const std::uint64_t size = space_->block_bytes()[span.first.index() + b].count();
        for (std::uint64_t i = 0; i < size; ++i) {
          bytes[at++] = static_cast<std::byte>(stream());
        }
      }
    }
    return bytes;
  }
  // What nobody waits for any more leaves nothing behind.
  void expect_quiet() {
    EXPECT_EQ(coordinator->grants(), 0U);
    EXPECT_EQ(coordinator->open_transfers(), 0U);
    for (const auto& member : members_) {
      if (!member->up) continue;
      EXPECT_TRUE(member->agent.grants().empty()) << member->id.value();
      EXPECT_EQ(member->agent.open_calls(), 0U) << member->id.value();
      EXPECT_EQ(member->agent.open_transfers(), 0U) << member->id.value();
      EXPECT_EQ(member->loop->transfers(), 0U) << member->id.value();
    }
  }

  std::unique_ptr<Coordinator> coordinator;
  bool once = true;  // no worker fetches a block twice: nothing is cleared and fetched again

 private:
  struct Member final : ControlChannel, SlotRegions, AgentObserver {
    Member(AgentWorld& of, WorkerId worker, const WorkerCard& worker_card, Incarnation incarnation)
        : world(of),
          id(worker),
          card(worker_card),
          agent(worker, incarnation, worker_card, of.space_, of.options_.agent) {
      for (SlotNumber s = 0; s < card.slots && !card.host_memory; ++s) {
        allocate(s, of.space_->bytes(card.shard));
      }
      loop = std::make_unique<AgentLoop>(AgentSetup{
          agent, *of.space_, SpaceId(0U), of.network_->transport(id), of.network_->memory(id),
          *of.placements_, *this, *this, of.options_.engine, this});
    }
    void send(ToCoordinator frame) override { world.carry_up(id, std::move(frame)); }
    RegionId region(SlotNumber slot) override { return regions[slot]; }
    void allocate(SlotNumber slot, Bytes bytes) override {
      memory[slot].assign(bytes.count(), std::byte{0xcd});
      regions[slot] = world.network_->transport(id).add_region(memory[slot], bytes);
    }
    void release(SlotNumber) override {}  // the region stays; it is not read any more
    std::string address(WorkerId) override { return {}; }
    void call_finished(CallId call, const CallResult& result, Time now) override {
      EXPECT_TRUE(world.results_.emplace(call, result).second) << "ended twice";
      (void)now;
    }
    void runs_changed(const std::optional<Version>& version, SlotNumber slot, Time) override {
      if (!version) return;
      EXPECT_TRUE(memory[slot] == world.truth(*version, card.shard))
          << "worker " << id.value() << " runs wrong bytes as version " << to_string(*version);
    }
    void block_verified(const PlannedTransfer& transfer, BlockId block, WorkerId source,
                        Time) override {
      ++world.blocks_moved_;
      EXPECT_NE(source, id);
      EXPECT_TRUE(seen.emplace(transfer.version, block).second || !world.once)
          << "worker " << id.value() << " fetched block " << block.value() << " twice";
    }
    void transfer_failed(const PlannedTransfer&, const EngineFailure& failure, Time) override {
      ADD_FAILURE() << to_string(failure);
    }

    AgentWorld& world;
    WorkerId id;
    WorkerCard card;
    Agent agent;
    std::map<SlotNumber, std::vector<std::byte>> memory;
    std::map<SlotNumber, RegionId> regions;
    std::set<std::pair<Version, BlockId>> seen;
    std::unique_ptr<AgentLoop> loop;
    bool up = true;
  };

  void start(WorkerId worker, Incarnation incarnation) {
    WorkerCard card;
    const std::uint32_t i = worker.value();
    card.node = roster_[i];
    card.space = SpaceId(0U);
    card.slots = options_.slots;
    card.host_memory = topology_.nodes()[roster_[i].index()].kind == NodeKind::HostMemory;
    card.shard = card.host_memory ? kWholeModel : ShardId{0, (i / 2) % options_.ranks};
    if (!card.host_memory) card.group = GroupId(i / 2 / options_.ranks);
    card.budget = Bytes(card.host_memory ? options_.host_budget : 0);
    auto member = std::make_unique<Member>(*this, worker, card, incarnation);
    if (members_.size() <= i) members_.resize(i + 1);
    members_[i] = std::move(member);
    pump(worker);
  }

  [[nodiscard]] Time due(std::uint32_t i) const {
    const Member& m = *members_[i];
    return m.up ? m.loop->next_deadline() : Time::never();
  }

  void pump(WorkerId worker) {
    Member& m = *members_[worker.index()];
    if (!m.up) return;
    m.loop->pump();
    for (const std::string& wrong : broken_invariants(m.agent, now())) {
      ADD_FAILURE() << "worker " << worker.value() << ": " << wrong;
    }
    EXPECT_GT(m.loop->next_deadline(), now()) << "worker " << worker.value();
  }

  // Calls `deliver` later: never, once or twice.
  void carry(WorkerId worker, const std::function<void()>& deliver) {
    if (cut_.contains(worker) || random_() % 1000 < options_.control_lost) return;
    const std::size_t copies = random_() % 1000 < options_.control_doubled ? 2 : 1;
    for (std::size_t c = 0; c < copies; ++c) {
      Time at = now() + options_.control_latency;
      if (options_.control_jitter > Time{}) {
        at += Time(static_cast<std::int64_t>(
            random_() % static_cast<std::uint64_t>(options_.control_jitter.picoseconds())));
      }
      events_.emplace(at, deliver);
    }
  }
  void carry_up(WorkerId worker, ToCoordinator frame) {
    carry(worker, [this, worker, frame = std::move(frame)] {
      if (coordinator) step_coordinator(FromWorker{worker, frame});
    });
  }
  void carry_down(WorkerId worker, ToWorker frame) {
    carry(worker, [this, worker, frame = std::move(frame)] {
      Member& m = *members_[worker.index()];
      if (m.up) m.loop->receive(frame);
      pump(worker);
    });
  }

  void step_coordinator(const CoordinatorEvent& event) {
    std::vector<CoordinatorCommand> commands;
    coordinator_next_ = coordinator->step(event, now(), commands);
    for (const std::string& wrong : broken_invariants(*coordinator, now())) {
      ADD_FAILURE() << "coordinator: " << wrong;
    }
    const std::uint64_t life = coordinator_life_;
    const auto later = [&](auto answer) {
      events_.emplace(now() + milliseconds(1), [this, life, answer] {
        if (life == coordinator_life_) step_coordinator(answer());
      });
    };
    for (CoordinatorCommand& command : commands) {
      if (auto* send = std::get_if<SendToWorker>(&command)) {
        carry_down(send->worker, std::move(send->frame));
      } else {
        later([this, question = command]() -> CoordinatorEvent {
          return *answer_question(router_, question, Policy::Chain, {});
        });
      }
    }
  }

  WorldOptions options_;
  std::mt19937_64 random_;
  Topology topology_;
  Router router_;
  std::shared_ptr<const ModelSpace> space_;
  std::vector<NodeId> roster_;
  std::unique_ptr<VirtualNetwork> network_;
  std::unique_ptr<ShardPlacements> placements_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::unique_ptr<Member>> graves_;
  std::multimap<Time, std::function<void()>> events_;
  std::map<CallId, CallResult> results_;
  std::set<WorkerId> cut_;
  std::uint64_t coordinator_life_ = 0;
  Time coordinator_next_ = Time::never();
  CallId calls_ = 0;
  std::size_t blocks_moved_ = 0;
};

}  // namespace holdfast::testing_support
