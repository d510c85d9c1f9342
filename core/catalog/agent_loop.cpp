#include "core/catalog/agent_loop.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace holdfast {
namespace {

constexpr std::size_t kBatch = 16;

}  // namespace

// One plan that is carried out: the engine, its loop, and who lets this worker read.
class AgentLoop::Transfer final : public Grants, public LoopObserver, public SourceObserver {
 public:
  Transfer(AgentLoop& owner, const StartTransfer& command, std::uint16_t slot)
      : owner_(owner),
        ref_(command.transfer),
        latest_(command.transfer),
        placement_(owner.setup_.placements.of(*command.transfer)),
        sources_(command.sources),
        engine_(ref_->tables, owner.setup_.agent.worker(), owner.engine_config()),
        loop_({engine_, owner.setup_.transport, owner.setup_.memory, *placement_,
               owner.setup_.slots.region(command.slot), *this, owner.setup_.agent.incarnation(),
               this, this},
              slot) {
    for (const LiveEdge& edge : command.edges) engine_.drop(edge.stripe);
    for (const LiveEdge& edge : command.edges) read_along(edge);
  }

  void change(const ChangeTransfer& command) {
    for (const SourceAccess& source : command.sources) {
      std::erase_if(sources_, [&](const SourceAccess& s) { return s.source == source.source; });
      sources_.push_back(source);
    }
    for (const StripeId stripe : command.drops) engine_.drop(stripe);
    for (const LiveEdge& edge : command.edges) read_along(edge);
  }

  void add_child(const LiveEdge& edge) {
    if (edge.parent != engine_.worker()) {
      engine_.expect_child({edge.stripe, edge.child, edge.alternate_path, edge.have_interval});
    } else if (!edge.parent_has_all) {  // else it needs no word
      engine_.add_child({edge.stripe, edge.child, edge.path, edge.have_interval});
    }
  }

  void know(const TransferRef& newer) {
    if (newer->revision > latest_->revision) latest_ = newer;
  }

  [[nodiscard]] const PlannedTransfer& planned() const { return *ref_; }
  [[nodiscard]] TransferLoop& loop() { return loop_; }

  bool told_quiet = false;

  // Grants
  Access access(WorkerId /*reader*/, WorkerId source) override {
    for (const SourceAccess& known : sources_) {
      if (known.source == source) return known.access;
    }
    return {};  // the read is denied, and the engine turns elsewhere
  }
  std::string address(WorkerId worker) override {
    if (worker.index() < latest_->addresses.size()) return latest_->addresses[worker.index()];
    return owner_.setup_.slots.address(worker);
  }

  // Observers: what the agent is told is taken in when the loop has returned.
  void block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block, Time now) override {
    owner_.post(BlockHere{ref_->id, block});
    if (owner_.setup_.observer == nullptr) return;
    owner_.setup_.observer->block_verified(*ref_, block, engine.source(at.edge), now);
  }
  void completed(const WorkerEngine& /*engine*/, Time /*now*/) override {
    owner_.read_deadline_.reset();
    owner_.post(TransferFilled{ref_->id});
  }
  void failed(const EngineFailure& failure, Time now) override {
    if (owner_.setup_.observer == nullptr) return;
    owner_.setup_.observer->transfer_failed(*ref_, failure, now);
  }
  void reparented(const WorkerEngine& /*engine*/, const Reparented& what, Time /*now*/) override {
    owner_.read_deadline_ = engine_.read_deadline();
    owner_.post(TransferSwitched{ref_->id, what.stripe, what.from, what.to, what.cause});
  }
  void parent_needed(const WorkerEngine& /*engine*/, const NeedParent& what,
                     Time /*now*/) override {
    owner_.read_deadline_ = engine_.read_deadline();
    owner_.post(TransferWantsParent{ref_->id, what.stripe, what.first, what.lost, what.cause});
  }
  void slow_source(const WorkerEngine& /*engine*/, const SlowSource& what, Time /*now*/) override {
    owner_.post(TransferSlow{ref_->id, what.stripe, what.parent});
  }
  // The engine reads it elsewhere and says so itself.
  void bad_digest(const WorkerEngine&, const BadDigest&, Time) override {}

 private:
  void read_along(const LiveEdge& edge) {
    // A parent that is not in the transfer has no place for its blocks.
    const std::size_t workers = ref_->shards.size();
    if (edge.stripe.index() >= ref_->tables->stripes() || edge.child != engine_.worker() ||
        edge.parent.index() >= workers) {
      return;
    }
    const auto blocks = static_cast<std::uint32_t>(ref_->tables->blocks(edge.stripe).size());
    Assignment assignment;
    assignment.stripe = edge.stripe;
    assignment.parent = edge.parent;
    assignment.from = std::min(edge.from_block, blocks);
    assignment.to = blocks;
    assignment.window = edge.window;
    assignment.parent_has_all = edge.parent_has_all;
    assignment.path = edge.path;
    assignment.have_interval = edge.have_interval;
    if (const TableEdge* planned = ref_->tables->edge(edge.stripe, edge.child)) {
      assignment.block_time = planned->block_time;
    }
    engine_.assign(assignment);
    if (edge.alternate.index() >= workers) return;  // none
    engine_.add_alternate(edge.stripe, edge.alternate, edge.alternate_path, edge.alternate_has_all);
  }

  AgentLoop& owner_;
  TransferRef ref_;
  TransferRef latest_;  // knows also of those who joined meanwhile
  std::shared_ptr<const Placement> placement_;
  std::vector<SourceAccess> sources_;
  WorkerEngine engine_;
  TransferLoop loop_;
};

AgentLoop::AgentLoop(const AgentSetup& setup)
    : setup_(setup),
      next_(std::numeric_limits<std::int64_t>::min()),
      teller_(setup.space, setup.transport,
              [this](WorkerId worker) { return setup_.slots.address(worker); }) {}
AgentLoop::~AgentLoop() = default;

EngineConfig AgentLoop::engine_config() const {
  EngineConfig config = setup_.engine;
  if (read_deadline_) config.read_deadline = *read_deadline_;
  return config;
}

void AgentLoop::pump() {
  std::array<TransportEvent, kBatch> events;
  std::array<JobDone, kBatch> jobs;
  if (next_ <= setup_.transport.now()) post(AgentTimePassed{});
  settle();
  for (bool more = true; more;) {
    const std::size_t polled = setup_.transport.poll(events);
    for (std::size_t i = 0; i < polled; ++i) take(events[i]);
    const std::size_t done = setup_.memory.poll(jobs);
    for (std::size_t i = 0; i < done; ++i) take(jobs[i]);
    more = polled != 0 || done != 0;
    settle();
  }
}

Time AgentLoop::next_deadline() const {
  Time next = next_;
  for (const auto& transfer : transfers_) next = std::min(next, transfer->loop().next_deadline());
  return next;
}

void AgentLoop::call(CallId id, const Call& call, Time deadline) {
  post(CallMade{id, call, deadline});
  settle();
}

void AgentLoop::receive(const ToWorker& frame) {
  post(FromCoordinator{frame});
  settle();
}

void AgentLoop::shutdown() {
  settle();
  commands_.clear();
  next_ = setup_.agent.shutdown(setup_.transport.now(), commands_);
  const std::vector<AgentCommand> commands = std::move(commands_);
  commands_.clear();
  for (const AgentCommand& command : commands) carry_out(command);
  settle();
}

bool AgentLoop::idle() const {
  return setup_.agent.idle() && transfers_.empty() && digesting_.empty() && events_.empty();
}

// Until the agent has taken in everything and no transfer has anything to do.
void AgentLoop::settle() {
  do {
    while (!events_.empty()) {
      const AgentEvent event = std::move(events_.front());
      events_.pop_front();
      commands_.clear();
      next_ = setup_.agent.step(event, setup_.transport.now(), commands_);
      for (const AgentCommand& command : commands_) carry_out(command);
    }
    pump_transfers();
  } while (!events_.empty());
}

void AgentLoop::pump_transfers() {
  for (const auto& transfer : transfers_) {
    if (!transfer->loop().stopped()) (void)transfer->loop().pump();
  }
  std::erase_if(transfers_, [this](const std::unique_ptr<Transfer>& transfer) {
    if (!transfer->loop().stopped()) return false;
    if (!transfer->loop().idle()) {
      if (transfer->loop().quiet() && !std::exchange(transfer->told_quiet, true)) {
        post(TransferQuiet{transfer->planned().id});
      }
      return false;
    }
    const LoopStats& stats = transfer->loop().stats();
    stats_.reads += stats.reads;
    stats_.refused += stats.refused;
    stats_.messages_sent += stats.messages_sent;
    stats_.bytes_read += stats.bytes_read;
    post(TransferIdle{transfer->planned().id});
    return true;
  });
}

// --- What transport and memory tell --------------------------------------------------------------

void AgentLoop::take(const TransportEvent& event) {
  if (const auto* revoked = std::get_if<Revoked>(&event)) {
    return post(ReaderRevoked{revoked->reader, revoked->version});
  }
  if (const auto* lost = std::get_if<PeerLost>(&event)) {
    teller_.lose(lost->peer);
    // One connection is gone: the worker is, for whoever reads from it.
    for (const auto& transfer : transfers_) {
      if (!transfer->loop().take(event)) transfer->loop().lose(lost->worker);
    }
    return;
  }
  for (const auto& transfer : transfers_) {
    if (transfer->loop().take(event)) return;
  }
  if (const auto* message = std::get_if<MessageReceived>(&event)) take_message(*message);
}

// Of no transfer that is here: a question to a holder, or word that came before the transfer.
void AgentLoop::take_message(const MessageReceived& message) {
  if (teller_.children() != 0 && teller_.take(message, setup_.agent.holdings())) return;
  const Time now = setup_.transport.now();
  while (!early_.empty() && (early_.size() >= kMostEarly || early_.front().at + kEarly < now)) {
    early_.pop_front();
  }
  early_.push_back({now, message});
}

void AgentLoop::take(const JobDone& job) {
  if (TransferLoop::slot_of(job.id) == kOwnJobs) return take_digest(job);
  for (const auto& transfer : transfers_) {
    if (transfer->loop().take(job)) return;
  }
}

void AgentLoop::take_digest(const JobDone& job) {
  const auto slot = static_cast<SlotNumber>((job.id >> 32) & 0xffff);
  const auto found = std::find_if(digesting_.begin(), digesting_.end(),
                                  [slot](const Digesting& d) { return d.slot == slot; });
  if (found == digesting_.end()) return;
  (*found->digests)[static_cast<std::uint32_t>(job.id)] = job.digest;
  ++found->done;
  post_digests(*found);
  if (found->done < found->digests->size()) return;
  post(SlotDigested{slot, found->digests});
  digesting_.erase(found);
}

void AgentLoop::post_digests(Digesting& digesting) {
  const auto blocks = static_cast<std::uint32_t>(digesting.digests->size());
  while (digesting.posted < blocks && digesting.posted - digesting.done < kOpenDigests) {
    const std::uint32_t number = digesting.posted++;
    extents_.clear();
    setup_.placements.append_extents(setup_.space_id, digesting.shard,
                                     setup_.space.block(digesting.shard, number), extents_);
    const JobId id = (JobId{kOwnJobs} << 48) | (JobId{digesting.slot} << 32) | number;
    setup_.memory.digest(id, setup_.slots.region(digesting.slot), extents_);
  }
}

// --- What the agent wants ------------------------------------------------------------------------

void AgentLoop::carry_out(const AgentCommand& command) {
  std::visit([this](const auto& c) { on(c); }, command);
}

void AgentLoop::on(const SendToCoordinator& command) {
  setup_.control.send(command.frame);
}

void AgentLoop::on(const FinishCall& command) {
  if (setup_.observer == nullptr) return;
  setup_.observer->call_finished(command.id, command.result, setup_.transport.now());
}

void AgentLoop::on(const DigestSlot& command) {
  Digesting digesting;
  digesting.slot = command.slot;
  digesting.shard = command.shard;
  digesting.digests =
      std::make_shared<std::vector<std::uint64_t>>(setup_.space.blocks(command.shard));
  if (!setup_.verify || digesting.digests->empty()) {
    return post(SlotDigested{command.slot, digesting.digests});
  }
  post_digests(digesting);
  digesting_.push_back(std::move(digesting));
}

void AgentLoop::on(const AllowReader& command) {
  post(ReaderAllowed{command.grant,
                     setup_.transport.allow(command.grant.reader, command.grant.version,
                                            setup_.slots.region(command.slot))});
}

void AgentLoop::on(const RevokeReader& command) {
  setup_.transport.revoke(command.reader, command.version);
}

void AgentLoop::on(const StartTransfer& command) {
  transfers_.push_back(std::make_unique<Transfer>(*this, command, free_slot()));
  for (const LiveEdge& edge : teller_.remove(command.transfer->id)) {
    transfers_.back()->add_child(edge);
  }
  // What nobody said lately may be of an earlier transfer with that number.
  const Time oldest = setup_.transport.now() - kEarly;
  std::erase_if(early_, [&](const EarlyMessage& early) {
    return early.at < oldest || transfers_.back()->loop().take(TransportEvent(early.message));
  });
}

void AgentLoop::on(const ChangeTransfer& command) {
  Transfer* transfer = find(command.plan);
  if (transfer != nullptr) transfer->change(command);
}

void AgentLoop::on(const AddChildren& command) {
  Transfer* transfer = find(command.transfer->id);
  const auto holdings = setup_.agent.holdings();
  const Holding* holding =
      command.slot < holdings.size() && holdings[command.slot] ? &*holdings[command.slot] : nullptr;
  if (transfer != nullptr) transfer->know(command.transfer);
  for (const LiveEdge& edge : command.edges) {
    const bool as_parent = edge.parent == setup_.agent.worker();
    if (transfer != nullptr) {
      transfer->add_child(edge);
    } else if (!as_parent || !edge.parent_has_all) {
      LiveEdge told = edge;
      if (!as_parent) told.path = edge.alternate_path;
      teller_.add(command.transfer, told, holding, setup_.agent.incarnation());
    }
  }
}

void AgentLoop::on(const StopTransfer& command) {
  (void)teller_.remove(command.plan);
  Transfer* transfer = find(command.plan);
  if (transfer != nullptr) transfer->loop().stop();
}

void AgentLoop::on(const AllocateSlot& command) {
  setup_.slots.allocate(command.slot, command.bytes);
}
void AgentLoop::on(const FreeSlot& command) {
  setup_.slots.release(command.slot);
}

void AgentLoop::on(const Runs& command) {
  if (setup_.observer == nullptr) return;
  setup_.observer->runs_changed(command.version, command.slot, setup_.transport.now());
}

// One that is being stopped is no more: its plan may begin again.
AgentLoop::Transfer* AgentLoop::find(PlanNumber plan) {
  const auto found =
      std::find_if(transfers_.begin(), transfers_.end(), [plan](const auto& transfer) {
        return transfer->planned().id == plan && !transfer->loop().stopped();
      });
  return found == transfers_.end() ? nullptr : found->get();
}

std::uint16_t AgentLoop::free_slot() {
  const auto used = [this](std::uint16_t slot) {
    return slot == kOwnJobs ||
           std::any_of(transfers_.begin(), transfers_.end(),
                       [slot](const auto& transfer) { return transfer->loop().slot() == slot; });
  };
  do {
    ++last_slot_;
  } while (used(last_slot_));
  return last_slot_;
}

}  // namespace holdfast
