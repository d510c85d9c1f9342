// The coordinator's state, and its parts by topic: of the implementation.
//
//   coordinator.cpp            events, sessions, timers
//   coordinator_workers.cpp    who lives: Hello, expiry, death, groups' generations
//   coordinator_versions.cpp   holders, copies of each block, publish, withdraw, what is lost
//   coordinator_fetch.cpp      the life of a group's fetch
//   coordinator_clears.cpp     hiding, draining, unpublish, leave
//   coordinator_plans.cpp      who is planned together, joins, answers of the planner
//   coordinator_transfers.cpp  grants, reads, how readers stop
//   coordinator_repairs.cpp    plans that are mended
//   coordinator_retention.cpp  safety, offloads
//   coordinator_rebuild.cpp    from reports to a state
//
// Messages change tables at once; consequences that cross topics (a version lost its last copy, a
// plan its source) are noted in `dirty` sets and settled at the end of the step, once each.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/catalog/coordinator.hpp"
#include "core/catalog/fault_domains.hpp"
#include "core/catalog/holder_choice.hpp"

namespace holdfast {

struct Coordinator::State {
  using VersionKey = std::pair<SpaceId, Version>;

  // --- Workers and groups -------------------------------------------------------------------
  // What a worker holds of one version.
  struct Holder {
    VersionKey version;
    ShardId shard;
    BlockSet verified;
    bool published = false;        // by publish
    bool hidden = false;           // Clear was sent: gains no reader
    bool pending = false;          // is to be cleared: serves only what makes that possible
    bool returning = false;        // was told Unhide: may have cleared it before it heard
    std::uint32_t untold = 0;      // Tell that it has not answered
    bool broken = false;           // filled for a fetch that ended before its group was complete
    bool noted_withdrawn = false;  // what the worker was told of the version
    Retention noted;
  };
  enum class GrantState : std::uint8_t { Asked, Held, Ending };
  // A reader at a source.
  struct GrantKey {
    WorkerId reader;
    PlanNumber plan = 0;
    friend auto operator<=>(const GrantKey&, const GrantKey&) = default;
  };
  struct Grant {
    GrantState state = GrantState::Asked;
    Incarnation incarnation = 0;  // of the reader
    Version version;
  };
  using WorkerSession = Session<CoordinatorMessage, WorkerMessage>;
  struct Worker {
    Incarnation incarnation = 0;  // zero: not alive
    Incarnation fenced = 0;       // the largest that is dead
    WorkerCard card;
    bool known = false;     // has a card
    bool welcomed = false;  // in this epoch, by this coordinator
    bool leaving = false;
    bool gone = false;     // was told to leave: its silence is no death
    bool touched = false;  // its session may have frames to send
    Time heard;
    Time armed = Time::never();  // of its session's timer
    std::unique_ptr<WorkerSession> session;
    std::vector<Holder> holders;
    std::set<Version> refused;          // of another root: it was told to clear them
    std::map<GrantKey, Grant> readers;  // as source
    std::set<std::pair<PlanNumber, WorkerId>> sources;  // as reader
    std::set<PlanNumber> plans;                         // in which it reads
    std::optional<CallId> leave_call;
    Time leave_deadline;
    std::vector<WorkerId> leave_blocked_by;      // readers that did not end in time
    std::shared_ptr<const WorkerReport> report;  // while rebuilding
    Incarnation reported = 0;
    std::uint64_t greeting = 0;  // that told what is known of it
  };
  enum class Phase : std::uint8_t { Idle, Collecting, Securing, Clearing, Waiting, Filling };
  struct Group {
    bool known = false;
    SpaceId space;
    LayoutNumber layout = 0;
    std::vector<WorkerId> members;  // by rank; invalid: never seen
    Generation generation = 1;
    std::vector<WorkerId> broken_by;  // whose end made the last generation end
    Decision last;                    // of the generation
    Phase phase = Phase::Idle;
    // The open fetch, beside `last`: Collecting is about fetch last.n + 1.
    FetchCall call;
    std::vector<bool> asked;  // by rank
    std::uint64_t over = 0;   // fetches that ended at some member, after a rebuild
    Time deadline = Time::never();
    std::set<WorkerId> stopped;        // do not run anything else than the decided version
    std::set<WorkerId> asked_to_stop;  // that they tell
    std::optional<Version> runs;
    std::string trouble;  // why there is no plan
  };

  // --- Versions -------------------------------------------------------------------------------
  struct InstalledWait {
    WorkerId worker;
    Incarnation incarnation = 0;
    CallId call = 0;
    Hash128 root;
    std::uint32_t groups = 1;
    Time deadline;
  };
  struct RetainWait {
    WorkerId worker;
    Incarnation incarnation = 0;
    CallId call = 0;
    Time deadline;
  };
  struct VersionState {
    std::shared_ptr<std::vector<std::uint64_t>> digests;  // by block; fixed once all are known
    std::vector<bool> digest_known;
    std::uint32_t digests_missing = 0;
    Hash128 root;  // once all digests are known, or a holder has said it
    bool published = false;
    bool withdrawn = false;
    bool lost = false;
    std::vector<std::uint32_t> serving;  // by block: holders that may be read from
    std::vector<std::uint32_t> copies;   // by block: all holders
    std::uint32_t unserved = 0;
    std::uint32_t uncovered = 0;
    std::set<WorkerId> holders;
    std::set<WorkerId> doubtful;  // asked to tell before the version is given up
    bool told = false;            // they were asked since blocks were last uncovered
    // Told to clear it while nobody was reading it there: no holders any more, and their Cleared is
    // on its way.
    std::set<WorkerId> releasing;
    std::uint32_t leases = 0;  // open fetches that were decided for it
    Time gather_at = Time::never();
    std::set<GroupId> waiting;              // for a plan
    std::map<WorkerId, BlockSet> offloads;  // host memories and what they are to hold
    Retention retention;
    std::uint32_t safe = 0;
    std::string reason;
    bool judging = false;
    std::vector<RetainWait> retain_waits;
    std::vector<InstalledWait> installed_waits;
  };

  // --- Clears -----------------------------------------------------------------------------------
  enum class ClearPhase : std::uint8_t { Securing, Draining };
  struct ClearJob {
    VersionKey version;
    ClearReason reason = ClearReason::Fetch;
    ClearPhase phase = ClearPhase::Securing;
    CallId call = 0;  // Unpublish
    Time deadline;
    std::string blocked;  // Securing: why
    // Of the first answer: what must remain, whatever was copied meanwhile.
    std::vector<std::uint32_t> floor{};
  };

  // --- Transfers --------------------------------------------------------------------------------
  enum class ReaderPhase : std::uint8_t { Granting, Begun, Stopping };
  struct Reader {
    Incarnation incarnation = 0;
    ReaderPhase phase = ReaderPhase::Granting;
    bool offload = false;
    std::set<WorkerId> awaited;          // sources that have not answered
    std::map<WorkerId, Access> access;   // of sources that granted, not yet told
    std::map<StripeId, LiveEdge> edges;  // instead of the plan's
    std::set<StripeId> untold;           // of these, not yet told to the reader
  };
  struct Transfer {
    VersionKey version;
    std::shared_ptr<const Demand> demand;
    std::shared_ptr<const Plan> plan;  // as it is now
    TransferRef ref;                   // null while it is planned
    Time asked;                        // when the plan was asked for
    std::map<WorkerId, Reader> readers;
    std::set<WorkerId> wanted;  // receivers while it is planned
    std::set<WorkerId> lost;    // no parents any more
    std::set<WorkerId> slow;
    std::map<WorkerId, std::uint32_t> slow_moves;  // how often half of its readers were moved
    std::map<std::pair<WorkerId, StripeId>, WorkerId> orphans;  // from whom they cannot read
    TransferRef first;                                          // as those know it who began first
    bool takes_joiners = true;                                  // false: some found no room
    std::uint64_t repair = 0;                                   // the open request; zero: none
    Time repair_asked;
  };

  // --- Timers -----------------------------------------------------------------------------------
  enum class TimerKind : std::uint8_t {
    Rebuild,
    Expiry,
    Session,
    FetchDeadline,
    Gather,
    Judge,
    ClearDeadline,
    Waits,
    Plan
  };
  struct Timer {
    Time at;
    std::uint64_t order = 0;  // of two at one time the older one first
    TimerKind kind = TimerKind::Rebuild;
    std::uint64_t id = 0;  // worker, group, plan
    VersionKey version;
    friend bool operator>(const Timer& a, const Timer& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  State(const Topology& topology, std::vector<NodeId> roster,
        std::vector<std::shared_ptr<const ModelSpace>> spaces, const CoordinatorConfig& config);

  // coordinator.cpp
  Time step(const CoordinatorEvent& event, Time at, std::vector<CoordinatorCommand>& commands);
  void take(WorkerId worker, const WorkerMessage& message);
  void send(WorkerId worker, CoordinatorMessage message);
  void frame(WorkerId worker, ToWorker frame) {
    out->push_back(SendToWorker{worker, std::move(frame)});
  }
  void arm(Time at, TimerKind kind, std::uint64_t id = 0, VersionKey version = {});
  void fire(const Timer& timer);
  void settle();
  void flush();
  [[nodiscard]] const ModelSpace& space(SpaceId id) const { return *spaces[id.index()]; }
  [[nodiscard]] bool alive(WorkerId worker) const {
    return workers[worker.index()].incarnation != 0;
  }

  // coordinator_workers.cpp
  void on(WorkerId worker, const Hello& hello);
  void on(WorkerId worker, const WorkerFrame& frame);
  [[nodiscard]] bool acceptable(WorkerId worker, const Hello& hello) const;
  void admit(WorkerId worker, Incarnation incarnation, const WorkerReport& report);
  void welcome(WorkerId worker);
  void adopt_holdings(WorkerId worker, const WorkerReport& report,
                      const std::function<bool(const Holding&)>& which);
  void refuse_copy(WorkerId worker, const Holding& holding);
  void bury(WorkerId worker);  // this incarnation is over
  void break_group(GroupId group, WorkerId by);
  Group& group_of(const WorkerCard& card, WorkerId worker);
  void expire(WorkerId worker);

  // coordinator_versions.cpp
  VersionState* find(VersionKey key);
  VersionState& version_at(VersionKey key);
  void note_number(VersionKey key);
  [[nodiscard]] static bool serves(const Holder& holder) {
    return !holder.hidden && !holder.pending;
  }
  Holder* holder_of(WorkerId worker, VersionKey key);
  Holder& add_holder(WorkerId worker, VersionKey key, ShardId shard);
  void drop_holder(WorkerId worker, VersionKey key);
  void verify_blocks(WorkerId worker, Holder& holder, const BlockSet& verified);
  void set_serving(WorkerId worker, Holder& holder, bool hidden, bool pending);
  void count_blocks(WorkerId worker, const Holder& holder, const BlockSet& blocks, int by,
                    bool copies, bool serving);
  [[nodiscard]] bool fetchable(const VersionState& version) const {
    return version.published && !version.withdrawn && !version.lost && version.unserved == 0;
  }
  [[nodiscard]] std::optional<Version> latest(SpaceId space) const;
  void on(WorkerId worker, const Publish& message);
  void on(WorkerId worker, const AskWithdraw& message);
  void on(WorkerId worker, const AskInstalled& message);
  void on(WorkerId worker, const AskLineage& message);
  void on(WorkerId worker, const Progress& message);
  bool add_digests(VersionState& version, SpaceId id, ShardId shard,
                   const std::vector<std::uint64_t>& digests);
  void judge_published(VersionKey key);
  void ask_to_tell(WorkerId worker, VersionKey key, std::uint64_t n);
  void newly_fetchable(VersionKey key);
  void judge_cover(VersionKey key);
  void lose(VersionKey key);
  void answer_installed(VersionKey key);
  void forget_if_unused(VersionKey key);
  void answer(WorkerId worker, CallId call, CallResult result);

  // coordinator_fetch.cpp
  void on(WorkerId worker, const AskFetch& message);
  void on(WorkerId worker, const AskCancel& message);
  void on(WorkerId worker, const Filled& message);
  void decide(GroupId id);
  void skip_to(GroupId group, std::uint64_t n);
  [[nodiscard]] CallResult choose(const Group& group) const;
  void advance(GroupId id);
  [[nodiscard]] std::optional<Version> victim_of(WorkerId worker, const Group& group) const;
  void finish_fetch(GroupId id, const CallResult& result);
  void check_filled(GroupId id);
  void tell_group(const Group& group, const CoordinatorMessage& message);

  // coordinator_clears.cpp
  void on(WorkerId worker, const AskUnpublish& message);
  void on(WorkerId worker, const AskLeave& message);
  void on(WorkerId worker, const Cleared& message);
  void on(WorkerId worker, const ClearFailed& message);
  void on(WorkerId worker, const CallEnded& message);
  void start_clear(WorkerId worker, ClearJob job);
  void secure(WorkerId worker, ClearJob& job);
  void secure_all(VersionKey key);
  void send_clear(WorkerId worker, ClearJob& job);
  [[nodiscard]] bool drains_at_once(WorkerId worker, const ClearJob& job) const;
  ClearJob* clear_of(WorkerId worker, VersionKey key);
  void drop_clear(WorkerId worker, VersionKey key);
  void offer_again(WorkerId worker, Holder& holder);
  void forget_cleared(WorkerId worker, VersionKey key);
  void call_off_clear(WorkerId worker, VersionKey key);
  void clear_deadline(WorkerId worker, VersionKey key);
  void continue_leave(WorkerId worker);
  void call_off_leave(WorkerId worker);
  void forget_on_hosts(VersionKey key);

  // coordinator_plans.cpp
  void gather(VersionKey key);
  bool join_running(VersionKey key, const std::map<WorkerId, BlockSet>& wants);
  [[nodiscard]] std::optional<std::vector<Joiner>> joiners_of(
      const Transfer& transfer, const std::map<WorkerId, BlockSet>& wants);
  void admit_joiners(Transfer& transfer, const RepairMade& made);
  [[nodiscard]] std::shared_ptr<const Demand> demand_for(VersionKey key,
                                                         const std::map<WorkerId, BlockSet>& wants);
  void on(const PlanMade& made);
  void begin_plan(PlanNumber id, Transfer& transfer, const PlanMade& made);
  // What each source is to be asked for, by reader.
  using GrantRequests = std::map<WorkerId, std::map<WorkerId, GrantedReader>>;
  void ask_grants(PlanNumber id, Transfer& transfer, const GrantRequests& asked);
  // Not by this plan: what the member misses is planned anew.
  void wait_again(WorkerId member);
  void replan(PlanNumber id, const std::set<WorkerId>& readers);
  void plan_overdue(PlanNumber id);

  // coordinator_transfers.cpp
  void on(WorkerId worker, const Granted& message);
  void on(WorkerId worker, const GrantsGone& message);
  void on(WorkerId worker, const TransferStopped& message);
  void start_if_granted(PlanNumber id, Transfer& transfer, WorkerId reader);
  void stop_reader(PlanNumber id, WorkerId reader);
  void release_reader(PlanNumber id, WorkerId reader);  // ends its grants, forgets it
  void end_grant(WorkerId source, GrantKey key);
  void forget_grant(WorkerId source, GrantKey key);
  void forget_transfer_if_done(PlanNumber id);
  [[nodiscard]] LiveEdge edge_of(const Transfer& transfer, WorkerId child, StripeId stripe,
                                 bool& found) const;

  // coordinator_repairs.cpp
  void on(WorkerId worker, const Switched& message);
  void on(WorkerId worker, const ParentWanted& message);
  void on(WorkerId worker, const SourceIsSlow& message);
  void on(const RepairMade& made);
  void lose_source(PlanNumber id, WorkerId source);
  void repair(PlanNumber id);
  [[nodiscard]] static std::shared_ptr<const Plan> live_plan(const Transfer& transfer);
  [[nodiscard]] bool needs_repair(const Transfer& transfer) const;
  [[nodiscard]] std::vector<bool> known_to_all(const Transfer& transfer) const;

  // coordinator_retention.cpp
  void on(WorkerId worker, const AskRetain& message);
  void on(WorkerId worker, const AskRelease& message);
  struct RetentionView;
  void view_retention(VersionKey key, RetentionView& view, bool leavers_count);
  [[nodiscard]] static bool covers(const ModelSpace& model, ShardId shard, const BlockSet& blocks);
  [[nodiscard]] Bytes used_of(WorkerId worker);
  void order_offloads(VersionKey key, const RetentionView& view,
                      const std::vector<Offload>& offloads);
  void judge(VersionKey key);
  void judge_soon(VersionKey key);
  void note_holders(VersionKey key);
  void expire_waits();

  // coordinator_rebuild.cpp
  void finish_rebuild();
  [[nodiscard]] bool fits(const OpenTransfer& open, WorkerId worker) const;
  void rebuild_digests(const std::vector<WorkerId>& reported);
  void rebuild_transfers(const std::vector<WorkerId>& reported);
  void rebuild_generations(const std::vector<WorkerId>& reported);
  void rebuild_grants(const std::vector<WorkerId>& reported);
  void rebuild_groups();
  void resume_fetch(GroupId id);
  void skip_what_is_over(GroupId id);

  const Topology& topology;
  FaultDomains domains;
  std::vector<NodeId> roster;
  std::vector<std::shared_ptr<const ModelSpace>> spaces;
  CoordinatorConfig config;

  Time now;
  std::vector<CoordinatorCommand>* out = nullptr;
  bool started = false;
  bool rebuilding = true;
  bool start_again = false;  // rebuild from nothing, in a larger epoch
  Epoch epoch = 0;
  Epoch reported_epoch = 0;
  std::uint64_t next_plan = 1;
  std::uint64_t next_request = 1;
  std::uint64_t timer_order = 0;
  std::vector<std::uint64_t> largest_lineage;                                 // by space
  std::map<std::pair<SpaceId, std::uint64_t>, std::uint64_t> largest_number;  // by lineage

  std::vector<Worker> workers;
  std::vector<Group> groups;
  std::map<VersionKey, VersionState> versions;
  std::map<PlanNumber, Transfer> transfers;
  std::vector<std::vector<ClearJob>> clears;  // by worker
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers;
  std::size_t grants = 0;

  std::vector<WorkerId> touched;
  std::set<VersionKey> dirty_versions;
  std::set<GroupId> dirty_groups;
  std::set<PlanNumber> dirty_transfers;
  std::set<WorkerId> dirty_leaves;
  std::vector<std::shared_ptr<const WorkerMessage>> received;  // scratch
  std::vector<CoordinatorFrame> frames;                        // scratch
};

}  // namespace holdfast
