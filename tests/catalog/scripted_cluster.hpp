// A coordinator and workers that do what they are told by the book, over a network that loses
// nothing: for tests of the coordinator alone. What a worker is to do otherwise a test says by
// switching an answer off and sending its own message.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/coordinator.hpp"
#include "core/catalog/planning.hpp"
#include "core/engine/digest.hpp"
#include "tests/catalog/retention_world.hpp"

namespace holdfast::testing_support {

struct ScriptedWorker {
  WorkerCard card;
  Incarnation incarnation = 1;
  Epoch epoch = 0;
  std::uint64_t greeting = 1;
  bool up = true;
  Generation generation = 0;
  std::uint64_t over = 0;
  std::unique_ptr<Session<WorkerMessage, CoordinatorMessage>> session;
  std::map<Version, Holding> holdings;
  std::vector<ReadGrant> grants;
  std::map<PlanNumber, Begin> transfers;
  Decision decision;
  std::vector<CoordinatorMessage> heard;
  // Answers that it gives by itself.
  bool clears = true;
  bool fills = true;
  bool stops = true;
  bool lets_in = true;
};

class ScriptedCluster {
 public:
  static constexpr Time kLatency = microseconds(50);

  // GPU workers 2 h of hosts h, memory workers 2 h + 1; groups of `ranks` consecutive hosts.
  ScriptedCluster(std::uint32_t racks, std::uint32_t hosts, std::uint32_t ranks,
                  std::uint32_t blocks, const CoordinatorConfig& config = {})
      : topology_(make_racks(1, racks, hosts)), router_(topology_), config_(config) {
    std::vector<Bytes> bytes(blocks, Bytes(10));
    auto space = std::make_shared<ModelSpace>("job", "model", Bytes(10), bytes);
    std::vector<std::vector<BlockSpan>> shards;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t first = blocks * r / ranks;
      shards.push_back({{BlockId(first), blocks * (r + 1) / ranks - first}});
    }
    space->add_layout("tp", std::move(shards));
    space_ = space;
    other_job_ = std::make_shared<ModelSpace>(*space);
    for (std::size_t n = 0; n < topology_.nodes().size(); ++n) {
      if (!is_endpoint(topology_.nodes()[n].kind)) continue;
      const auto i = static_cast<std::uint32_t>(roster_.size());
      roster_.push_back(NodeId(n));
      ScriptedWorker worker;
      worker.card.node = NodeId(n);
      worker.card.space = SpaceId(0U);
      worker.card.host_memory = topology_.nodes()[n].kind == NodeKind::HostMemory;
      worker.card.shard = worker.card.host_memory ? kWholeModel : ShardId{0, (i / 2) % ranks};
      if (!worker.card.host_memory) worker.card.group = GroupId(i / 2 / ranks);
      worker.card.budget = Bytes(worker.card.host_memory ? 10'000 : 0);
      workers.push_back(std::move(worker));
    }
    restart_coordinator();
  }

  void restart_coordinator() {
    coordinator = std::make_unique<Coordinator>(
        topology_, roster_, std::vector<std::shared_ptr<const ModelSpace>>{space_, other_job_},
        config_);
    ++coordinator_life_;
    step(CoordinatorTimePassed{});
  }

  // --- What workers do ------------------------------------------------------------------------
  void hello(WorkerId id) {
    ScriptedWorker& w = workers[id.index()];
    auto report = std::make_shared<WorkerReport>();
    report->card = w.card;
    report->epoch = w.epoch;
    report->generation = w.generation;
    report->over = w.over;
    report->decision = w.decision;
    for (const auto& [version, holding] : w.holdings) report->holdings.push_back(holding);
    report->grants = w.grants;
    for (const auto& [plan, begin] : w.transfers) {
      report->transfers.push_back({begin.transfer, begin.edges, false});
    }
    to_coordinator(id, Hello{w.incarnation, report, w.greeting});
  }
  void hello_all() {
    for (std::uint32_t i = 0; i < workers.size(); ++i) hello(WorkerId(i));
    run_for(config_.rebuild_time + milliseconds(1));
  }
  void say(WorkerId id, WorkerMessage message) {
    ScriptedWorker& w = workers[id.index()];
    ASSERT_NE(w.session, nullptr);
    w.session->send(std::make_shared<const WorkerMessage>(std::move(message)), now);
    flush(id);
  }
  void kill(WorkerId id) {
    workers[id.index()].up = false;
    workers[id.index()].session.reset();
  }
  // A new process: empty, or with what it held.
  void restart(WorkerId id, bool keep) {
    ScriptedWorker& w = workers[id.index()];
    w.up = true;
    ++w.incarnation;
    w.session.reset();
    w.grants.clear();
    w.transfers.clear();
    w.decision = {};
    if (!keep) w.holdings.clear();
    hello(id);
  }
  void publish(WorkerId id, Version version, std::uint64_t content = 7) {
    ScriptedWorker& w = workers[id.index()];
    Holding holding;
    holding.version = version;
    holding.shard = w.card.shard;
    holding.verified = BlockSet::full(space_->blocks(w.card.shard));
    w.holdings[version] = holding;
    Publish message;
    message.call = ++calls_;
    message.version = version;
    std::vector<std::uint64_t> digests;
    for (std::uint32_t n = 0; n < space_->blocks(w.card.shard); ++n) {
      digests.push_back(content * 1000 + space_->block(w.card.shard, n).value());
    }
    message.digests = std::make_shared<const std::vector<std::uint64_t>>(std::move(digests));
    w.holdings[version].digests = message.digests;
    message.deadline = now + seconds(10);
    say(id, message);
  }
  void fetch(GroupId group, std::uint64_t n, const FetchCall& call, Time deadline) {
    for (const WorkerId member : members(group)) {
      say(member, AskFetch{n, workers[member.index()].generation, call, deadline});
    }
  }

  // --- What is asked of them ----------------------------------------------------------------
  [[nodiscard]] std::vector<WorkerId> members(GroupId group) const {
    std::vector<WorkerId> result;
    for (std::uint32_t i = 0; i < workers.size(); ++i) {
      if (workers[i].card.group == group) result.push_back(WorkerId(i));
    }
    return result;
  }
  template <class Message>
  [[nodiscard]] std::vector<Message> heard(WorkerId id) const {
    std::vector<Message> result;
    for (const CoordinatorMessage& message : workers[id.index()].heard) {
      if (const auto* m = std::get_if<Message>(&message)) result.push_back(*m);
    }
    return result;
  }
  // The end of the last fetch that the worker heard of.
  [[nodiscard]] std::optional<CallResult> fetch_end(WorkerId id) const {
    const auto done = heard<FetchDone>(id);
    if (done.empty()) return std::nullopt;
    return done.back().result;
  }
  [[nodiscard]] CallResult last_answer(WorkerId id) const {
    const auto answers = heard<Answer>(id);
    return answers.empty()
               ? CallResult{CallStatus::CoordinatorUnreachable, {}, {}, {}, {}, {}, 0, 0, {}}
               : answers.back().result;
  }

  void run_for(Time time) {
    const Time until = now + time;
    while (!events_.empty() && events_.begin()->first <= until) {
      const auto event = events_.begin();
      now = std::max(now, event->first);
      const auto action = std::move(event->second);
      events_.erase(event);
      action();
    }
    now = until;
    step(CoordinatorTimePassed{});
  }
  // Everyone who is up sends a frame four times a second for that long.
  void beat_for(Time time) {
    const Time until = now + time;
    while (now < until) {
      for (std::uint32_t i = 0; i < workers.size(); ++i) {
        if (!workers[i].up || !workers[i].session) continue;
        to_coordinator(WorkerId(i), WorkerFrame{workers[i].session->key(), 0,
                                                workers[i].session->received(), nullptr});
      }
      run_for(std::min(milliseconds(250), until - now));
    }
  }

  std::vector<ScriptedWorker> workers;
  std::unique_ptr<Coordinator> coordinator;
  Time now = seconds(1);
  Policy policy = Policy::Chain;
  std::function<bool(WorkerId, const CoordinatorMessage&)> intercept;  // true: not to be answered
  bool plans = true;  // false: the planner answers nothing
  [[nodiscard]] const ModelSpace& space() const { return *space_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  std::uint64_t next_call() { return ++calls_; }

 private:
  void at(Time when, std::function<void()> action) { events_.emplace(when, std::move(action)); }

  void to_coordinator(WorkerId id, ToCoordinator frame) {
    const std::uint64_t life = coordinator_life_;
    at(now + kLatency, [this, id, life, frame = std::move(frame)] {
      if (life == coordinator_life_) step(FromWorker{id, frame});
    });
  }

  void step(const CoordinatorEvent& event) {
    std::vector<CoordinatorCommand> commands;
    const Time next = coordinator->step(event, now, commands);
    const auto broken = broken_invariants(*coordinator, now);
    EXPECT_TRUE(broken.empty()) << broken.front();
    const std::uint64_t life = coordinator_life_;
    for (CoordinatorCommand& command : commands) {
      if (auto* send = std::get_if<SendToWorker>(&command)) {
        at(now + kLatency,
           [this, id = send->worker, frame = std::move(send->frame)] { receive(id, frame); });
      } else if (plans) {
        at(now + milliseconds(1), [this, life, question = command] {
          if (life != coordinator_life_) return;
          step(*answer_question(router_, question, policy, {}));
        });
      }
    }
    if (next == Time::never() || next == armed_) return;
    armed_ = next;
    at(std::max(next, now), [this, life] {
      armed_ = Time::never();
      if (life == coordinator_life_) step(CoordinatorTimePassed{});
    });
  }

  void flush(WorkerId id) {
    ScriptedWorker& w = workers[id.index()];
    std::vector<WorkerFrame> frames;
    w.session->due(now, frames);
    for (WorkerFrame& frame : frames) to_coordinator(id, std::move(frame));
    const Time next = w.session->next_deadline();
    if (next == Time::never()) return;
    at(next, [this, id] {
      if (workers[id.index()].session) flush(id);
    });
  }

  void receive(WorkerId id, const ToWorker& frame) {
    ScriptedWorker& w = workers[id.index()];
    if (!w.up) return;
    if (const auto* welcome = std::get_if<Welcome>(&frame)) {
      if (welcome->incarnation != w.incarnation || welcome->epoch < w.epoch) return;
      if (w.session && w.session->key().epoch == welcome->epoch) return;
      w.epoch = welcome->epoch;
      w.generation = welcome->generation;
      w.session = std::make_unique<Session<WorkerMessage, CoordinatorMessage>>(
          SessionKey{w.epoch, w.incarnation}, config_.session);
    } else if (std::holds_alternative<UnknownSession>(frame)) {
      hello(id);
    } else if (const auto* fenced = std::get_if<FencedOff>(&frame)) {
      if (fenced->incarnation != w.incarnation) return;
      w.incarnation = fenced->largest;
      restart(id, true);
    } else if (w.session) {
      std::vector<std::shared_ptr<const CoordinatorMessage>> messages;
      w.session->receive(std::get<CoordinatorFrame>(frame), now, messages);
      for (const auto& message : messages) {
        w.heard.push_back(*message);
        if (!intercept || !intercept(id, *message)) obey(id, *message);
      }
      if (w.session) flush(id);
    }
  }

  void obey(WorkerId id, const CoordinatorMessage& message) {
    ScriptedWorker& w = workers[id.index()];
    if (const auto* decided = std::get_if<Decided>(&message)) {
      w.decision = decided->decision;
    } else if (const auto* generation = std::get_if<GenerationIs>(&message)) {
      w.generation = generation->generation;
    } else if (const auto* clear = std::get_if<Clear>(&message)) {
      if (!w.clears) return;
      w.holdings.erase(clear->version);
      say(id, Cleared{clear->version, 0});
    } else if (const auto* granting = std::get_if<GrantReads>(&message)) {
      Granted granted;
      granted.plan = granting->transfer->id;
      for (const GrantedReader& reader : granting->readers) {
        if (!w.lets_in) {
          granted.refused.push_back(reader.reader);
          continue;
        }
        granted.readers.push_back(reader.reader);
        granted.access.emplace_back();
        w.grants.push_back({reader.reader, reader.incarnation, granting->transfer->version,
                            granting->transfer->id});
      }
      say(id, granted);
    } else if (const auto* ending = std::get_if<EndReads>(&message)) {
      for (const ReadGrant& grant : ending->grants) std::erase(w.grants, grant);
      say(id, GrantsGone{ending->grants});
    } else if (const auto* begin = std::get_if<Begin>(&message)) {
      w.transfers[begin->transfer->id] = *begin;
      Holding& holding = w.holdings[begin->transfer->version];
      holding.version = begin->transfer->version;
      holding.root = begin->transfer->root;
      holding.shard = w.card.shard;
      holding.state = HoldingState::Filling;
      if (holding.verified.size() == 0) holding.verified = BlockSet(space_->blocks(w.card.shard));
      if (w.fills) fill(id, begin->transfer->id);
    } else if (const auto* stop = std::get_if<Stop>(&message)) {
      if (w.stops) stopped(id, stop->plan);
    } else if (const auto* tell = std::get_if<Tell>(&message)) {
      say(id, Progress{0, tell->version, w.holdings[tell->version].verified, true, tell->n});
    }
  }

 public:
  void fill(WorkerId id, PlanNumber plan) {
    ScriptedWorker& w = workers[id.index()];
    const Version version = w.transfers[plan].transfer->version;
    Holding& holding = w.holdings[version];
    holding.verified = BlockSet::full(holding.verified.size());
    holding.state = HoldingState::Complete;
    w.transfers.erase(plan);
    say(id, Filled{plan, version});
  }
  void stopped(WorkerId id, PlanNumber plan) {
    ScriptedWorker& w = workers[id.index()];
    if (!w.transfers.contains(plan)) return;
    const Version version = w.transfers[plan].transfer->version;
    w.transfers.erase(plan);
    say(id, TransferStopped{plan, version, w.holdings[version].verified});
  }

 private:
  Topology topology_;
  Router router_;
  CoordinatorConfig config_;
  std::vector<NodeId> roster_;
  std::shared_ptr<const ModelSpace> space_;
  std::shared_ptr<const ModelSpace> other_job_;  // the same model, for nobody unless a test says so
  std::multimap<Time, std::function<void()>> events_;
  std::uint64_t coordinator_life_ = 0;
  std::uint64_t calls_ = 0;
  Time armed_ = Time::never();
};

}  // namespace holdfast::testing_support
