// An agent's state, and its parts by topic: of the implementation.
//
//   agent.cpp            events, timers, what is asked of it
//   agent_session.cpp    Hello, Welcome, fencing, frames, heartbeats
//   agent_calls.cpp      the user's calls and how they end
//   agent_fetch.cpp      fetch numbers, decisions, what the group runs
//   agent_transfers.cpp  Begin, Change, Stop, blocks, slots
//   agent_grants.cpp     who may read
//   agent_clears.cpp     hiding, draining, revoking
//   agent_report.cpp     what it knows; what is wrong with it
//
// Nothing waits inside: each part acts on what is there and leaves the rest to the event that
// brings it. `settle` runs at the end of each step and does what became possible.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/catalog/agent.hpp"

namespace holdfast {

struct Agent::State {
  using WorkerSession = Session<WorkerMessage, CoordinatorMessage>;

  struct OpenCall {
    CallId id = 0;
    Call call;
    Time deadline;
    SessionKey asked;           // the session in which it was asked; epoch zero: not yet
    bool ready = true;          // publish: false while the slot is digested
    bool answered = false;      // unpublish: Ok, and this worker drains by itself
    bool was_there = false;     // publish: the slot held that version before
    std::uint32_t revoked = 0;  // unpublish: so far
    std::uint32_t slot = 0;     // publish
  };
  struct Fetch {
    CallId id = 0;
    FetchCall call;
    Time deadline;
    Time stop_at;  // if it still reads
    std::uint64_t n = 0;
    Generation generation = 0;
    SessionKey asked;
    std::optional<CallResult> end;  // returns once nothing is read any more
  };
  // A version that is to leave its slot.
  struct Clearing {
    ClearReason reason = ClearReason::Fetch;
    OnDeadline on_deadline = OnDeadline::Fail;
    Time deadline;
    bool revoking = false;
    std::uint32_t revoked = 0;  // readers
  };
  struct Slot {
    bool there = true;  // host memory: allocated
    Bytes bytes;        // host memory: what may be written of it
    std::optional<Holding> holding;
    std::shared_ptr<const UpdateTables> tables;  // with which it is, or was, filled
    HoldingState shown = HoldingState::Filling;  // what it is again when it is no longer hidden
    std::optional<Clearing> clearing;
    bool digesting = false;  // DigestSlot is not answered
    // The publish of it that no coordinator has answered yet, even if the call is over: other bytes
    // may be known under its number.
    std::optional<CallId> unheard;
    bool news = false;  // verified something that no Progress told
  };
  // A plan that this worker carries out as a reader.
  struct Transfer {
    TransferRef ref;
    SlotNumber slot = 0;
    bool filled = false;  // nothing is missing: it goes on while it has children
    bool stopping = false;
    bool quiet = false;                 // stopping, and no read is open
    std::vector<LiveEdge> edges;        // where they differ from the plan's
    std::vector<ParentWanted> orphans;  // stripes that wait for a Change
  };
  enum class GrantPhase : std::uint8_t {
    Allowing,  // AllowReader is not answered
    Allowed,
    Ending,  // RevokeReader is not answered
  };
  // A GrantReads that is not answered in full.
  struct GrantRequest {
    SessionKey asked;
    TransferRef transfer;
    std::vector<GrantedReader> readers;  // of these no answer yet
    Granted answer;
    std::vector<LiveEdge> children;  // of those who were let in
  };

  State(WorkerId worker, Incarnation first, const WorkerCard& worker_card,
        std::shared_ptr<const ModelSpace> model, const AgentConfig& agent_config);

  // agent.cpp
  Time step(const AgentEvent& event, Time at, std::vector<AgentCommand>& commands);
  void shutdown(Time at, std::vector<AgentCommand>& commands);
  [[nodiscard]] Time next_deadline() const;
  void emit(AgentCommand command) { out->push_back(std::move(command)); }
  void settle();
  void on(const CallMade& event);
  void on(const FromCoordinator& event);
  void on(const ReaderAllowed& event);
  void on(const ReaderRevoked& event);
  void on(const SlotDigested& event);
  void on(const BlockHere& event);
  void on(const TransferFilled& event);
  void on(const TransferQuiet& event);
  void on(const TransferIdle& event);
  void on(const TransferSwitched& event);
  void on(const TransferWantsParent& event);
  void on(const TransferSlow& event);
  void on(const AgentTimePassed&) {}

  // agent_session.cpp
  void take(const Welcome& welcome);
  void take(const FencedOff& fenced);
  void take(const UnknownSession& unknown);
  void take(const CoordinatorFrame& frame);
  void say_hello();  // from now on, until Welcome
  void greet();      // sends Hello if it is time
  void flush();      // frames, heartbeat
  void finish_fencing();
  [[nodiscard]] bool connected() const { return session.has_value() && !greeting; }
  [[nodiscard]] bool silent() const { return left || stopped; }
  // News that must arrive: kept while there is no session.
  void tell(WorkerMessage message);
  // News that is worth nothing later.
  void mention(WorkerMessage message);

  // agent_calls.cpp
  void start(const CallMade& made, const PublishCall& call);
  void start(const CallMade& made, const UnpublishCall& call);
  void start(const CallMade& made, const FetchCall& call);
  void start(const CallMade& made, const CancelCall& call);
  void start(const CallMade& made, const LeaveCall& call);
  // A publish or unpublish of it is open.
  [[nodiscard]] bool called_about(const Version& version) const;
  void open(const CallMade& made);
  void ask(OpenCall& call);
  void ask_all();
  void expire_calls();
  [[nodiscard]] bool returns_soon(const OpenCall& call) const;
  [[nodiscard]] CallResult overdue(const OpenCall& call) const;
  void finish(CallId id, CallResult result);
  void finish(CallId id, CallStatus status, const std::string& reason = {});
  void finish_all(CallStatus status);
  [[nodiscard]] Time told(Time deadline) const;
  [[nodiscard]] Time given_up_at(const Fetch& open) const;
  void on(const Answer& message);
  void published(SlotNumber slot, bool was_there, const CallResult& result);
  void ask_unheard();
  void on(const LeaveNow& message);
  void drain_by_itself(OpenCall& call);

  // agent_fetch.cpp
  void ask_fetch();
  void on(const Decided& message);
  void on(const FetchDone& message);
  void on(const GenerationIs& message);
  void enter_generation(Generation to);
  void end_fetch(CallResult result);
  void expire_fetch();
  void settle_fetch();
  [[nodiscard]] bool run(const Version& version);
  void pause(SlotNumber slot);
  void resume();
  void run_slot(std::optional<SlotNumber> slot);

  // agent_transfers.cpp
  void on(const Begin& message);
  void on(const Change& message);
  void on(const Stop& message);
  void on(const Tell& message);
  void on(const Note& message);
  std::optional<SlotNumber> prepare(const PlannedTransfer& planned);
  [[nodiscard]] std::optional<SlotNumber> free_slot() const;
  std::optional<SlotNumber> host_slot(const PlannedTransfer& planned,
                                      std::optional<SlotNumber> here);
  void hold(SlotNumber slot, const PlannedTransfer& planned, ShardId shard);
  [[nodiscard]] bool same_content(const Holding& holding, const PlannedTransfer& planned) const;
  void settle_slots();
  [[nodiscard]] std::optional<ShardId> shard_of(const PlannedTransfer& planned) const;
  [[nodiscard]] std::optional<SlotNumber> slot_of(const Version& version) const;
  [[nodiscard]] bool is_empty(SlotNumber slot) const;
  Transfer* find_transfer(PlanNumber plan);
  // `told_all`: the transfer says that nothing is missing of what was assigned.
  void check_filled(Transfer& transfer, bool told_all);
  void stop_transfer(Transfer& transfer);
  void stop_filling();
  [[nodiscard]] bool filling(SlotNumber slot) const;  // reads and digests of it may be open
  [[nodiscard]] bool reading() const;                 // reads that fill may be open
  [[nodiscard]] bool in_transfer(SlotNumber slot) const;
  void tell_progress();
  void empty_slot(SlotNumber slot);

  // agent_grants.cpp
  void on(const GrantReads& message);
  void on(const EndReads& message);
  void try_grant(GrantRequest& request, const GrantedReader& reader);
  std::optional<SlotNumber> source_slot(const PlannedTransfer& planned);
  [[nodiscard]] bool to_be_filled(const PlannedTransfer& planned) const;
  void end_older(const GrantedReader& reader);
  void answer_requests(const ReadGrant& grant, const Access* access);
  void add_children(const GrantRequest& request);
  void settle_requests();
  void add_grant(const ReadGrant& grant);
  void drop_grant(std::size_t at);
  // Takes it back: at once if another grant needs the access to stay (then true), or when the
  // transport has confirmed.
  bool end_grant(std::size_t at);
  void end_grants(const Version* version);  // null: of all versions
  [[nodiscard]] std::optional<std::size_t> find_grant(const ReadGrant& grant) const;
  [[nodiscard]] bool revoking(WorkerId reader, const Version& version) const;
  [[nodiscard]] bool serves(PlanNumber plan) const;
  [[nodiscard]] bool read_by_anyone(const Version& version) const;
  [[nodiscard]] std::vector<WorkerId> readers_of(const Version& version) const;

  // agent_clears.cpp
  void on(const Clear& message);
  void on(const Unhide& message);
  void hide(SlotNumber slot);
  void settle_clear(SlotNumber slot);
  void clear_overdue(SlotNumber slot);
  void cleared(SlotNumber slot);
  void drop_or_clear(SlotNumber slot);
  [[nodiscard]] const OpenCall* unpublish_of(const Version& version) const;

  // agent_report.cpp
  [[nodiscard]] WorkerReport report() const;
  [[nodiscard]] std::vector<std::string> problems(Time at) const;
  void check_slots(std::vector<std::string>& wrong) const;
  void check_grants(std::vector<std::string>& wrong) const;
  void check_waits(std::vector<std::string>& wrong, Time at) const;
  [[nodiscard]] std::size_t memory_bytes() const;

  WorkerId self;
  Incarnation incarnation = 1;
  WorkerCard card;
  std::shared_ptr<const ModelSpace> space;
  AgentConfig config;

  Time now;
  std::vector<AgentCommand>* out = nullptr;

  // The session, and what is to be said when there is one.
  Epoch epoch = 0;
  std::optional<WorkerSession> session;
  SessionKey last_key;   // of the last session: no key is used twice
  bool greeting = true;  // no Welcome yet
  std::uint64_t greetings = 1;
  bool first_hello = true;  // of this greeting
  bool fencing = false;     // no Hello before readers and reads are gone
  Time hello_at;
  Time hello_wait;
  Time sent_at;  // the last frame
  std::vector<WorkerMessageRef> unsent;

  // The group.
  Generation generation = 0;
  Incarnation counted_as = 0;  // the last one that was told its generation
  std::uint64_t last_n = 0;    // of this generation: of the last fetch that is known
  std::uint64_t lineage = 0;
  Decision decision;
  std::optional<Fetch> fetch;
  std::optional<SlotNumber> running;
  // What ran until the version that is to replace it was here: runs again if the fetch fails.
  std::optional<Version> paused;

  std::vector<OpenCall> calls;
  std::vector<Slot> slots;
  std::vector<Transfer> transfers;
  Time progress_at;

  std::vector<ReadGrant> grants;                      // ascending
  std::vector<GrantPhase> phases;                     // of them
  std::vector<std::pair<WorkerId, Version>> revokes;  // RevokeReader is not answered
  std::vector<GrantRequest> requests;
  std::vector<PlanNumber> serving;  // plans with children of ours in which we read nothing

  bool leaving = false;
  bool left = false;
  bool stopped = false;
};

}  // namespace holdfast
