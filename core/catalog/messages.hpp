// What workers and the coordinator tell each other.
//
// Between one worker incarnation and one coordinator epoch messages arrive exactly once and in the
// order in which they were sent: session.hpp makes that of a network that loses, doubles, delays
// and reorders. Across epochs and incarnations nothing is promised: frames of another key are
// refused, and Hello and Welcome start anew.
//
// Start of a session. A worker repeats Hello{incarnation, everything it knows} until the
// coordinator answers Welcome{epoch} or Fenced. Whoever gets a frame of a session that it does not
// have answers Unknown, and the worker says Hello again. A fenced worker takes the next
// incarnation, ends its calls, stops its transfers, revokes its readers, keeps what it has verified
// and says Hello.
//
// Transfers. A transfer is one plan carried out by its receivers; it has the plan's id. Grants come
// before reads: GrantReads to a source, Granted back, and only then Begin (or Change) to the
// reader. EndReads to a source takes a grant back; GrantsGone says that no further byte can leave.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/catalog/block_set.hpp"
#include "core/catalog/calls.hpp"
#include "core/catalog/model_space.hpp"
#include "core/engine/engine_types.hpp"
#include "core/engine/transport.hpp"
#include "core/engine/update_tables.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"

namespace holdfast {

using Incarnation = std::uint64_t;  // from 1; zero: none
using Epoch = std::uint64_t;        // from 1; zero: none known
using Generation = std::uint64_t;   // of a group: rises when a member's incarnation changes
// The upper half is the epoch in which it was planned, so that no two plans have one id.
using PlanNumber = std::uint64_t;

// A worker as it introduces itself. One that has grants or open transfers is let in only while the
// coordinator rebuilds; at any other time it is fenced, clears both, and says Hello with its next
// incarnation. After Welcome it asks again for whatever its open calls wait for.
struct WorkerCard {
  NodeId node;  // its GPU or host memory
  SpaceId space;
  bool host_memory = false;  // keeps copies for others, in no group
  bool reliable = true;      // false: spot, never counted for retention
  GroupId group;             // invalid for host memory
  ShardId shard;
  std::uint32_t slots = 1;  // buffers of the shard's size: 2 where Shadow is used
  Bytes budget;             // host memory: what may be filled
  std::string address;      // where its transport is reached; empty in simulation
  friend bool operator==(const WorkerCard&, const WorkerCard&) = default;
};

// What is to be kept how well, known to every holder so that a new coordinator hears of it.
struct Retention {
  std::uint32_t copies = 0;  // zero: not retained
  Level level = Level::Host;
  friend bool operator==(const Retention&, const Retention&) = default;
};

// One plan with everything its receivers need, shared by all of them and never changed.
struct PlannedTransfer {
  PlanNumber id = 0;
  std::uint32_t revision = 0;  // rises with each join, which the later ones know of
  SpaceId space;
  Version version;
  Hash128 root;
  Retention retention;
  std::shared_ptr<const Demand> demand;  // workers: by WorkerId, all that are registered
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const UpdateTables> tables;
  // What each worker of the demand holds or gets of the version, by WorkerId.
  std::vector<ShardId> shards;
  std::vector<std::string> addresses;  // of the transports, by WorkerId; empty in simulation
};
using TransferRef = std::shared_ptr<const PlannedTransfer>;

// An edge of a running plan that is not in its tables, or no longer as it is there.
struct LiveEdge {
  StripeId stripe;
  WorkerId child;
  WorkerId parent;
  WorkerId alternate;  // invalid: none
  std::uint32_t from_block = 0;
  std::uint32_t window = 2;
  Path path;
  Path alternate_path;
  bool parent_has_all = false;
  bool alternate_has_all = false;
  Time have_interval;
  friend bool operator==(const LiveEdge&, const LiveEdge&) = default;
};

enum class HoldingState : std::uint8_t {
  Published,  // complete, offered by publish
  Filling,    // receives, or received a part: its verified blocks may be read
  Complete,   // received in full
  Hidden,     // complete or not: gains no reader, drains
};

// One version in one buffer of a worker.
struct Holding {
  Version version;
  Hash128 root;  // zero: not yet known, other shards are not published
  ShardId shard;
  HoldingState state = HoldingState::Published;
  BlockSet verified;                                          // by number in the shard
  std::shared_ptr<const std::vector<std::uint64_t>> digests;  // by number in the shard
  bool withdrawn = false;
  bool runs = false;  // the group runs it
  Retention retention;
};

// How a group's n-th fetch was decided.
struct Decision {
  std::uint64_t n = 0;  // from 1; zero: none yet
  Generation generation = 0;
  FetchCall call;
  CallResult result;      // Ok: `version` is to be fetched; else this is the answer
  bool finished = false;  // the fetch ended, with `end`
  CallResult end;
};

// A reader whom this worker lets read.
struct ReadGrant {
  WorkerId reader;
  Incarnation incarnation = 0;  // of the reader
  Version version;
  PlanNumber plan = 0;
  friend auto operator<=>(const ReadGrant&, const ReadGrant&) = default;
};

// --- Worker to coordinator --------------------------------------------------------------------

struct OpenTransfer {
  TransferRef transfer;
  std::vector<LiveEdge> edges;  // where they differ from the plan's
  bool stopping = false;
};
struct OpenFetch {
  std::uint64_t n = 0;
  FetchCall call;
  Time deadline;
};
// Everything a worker knows, in Hello.
struct WorkerReport {
  WorkerCard card;
  Epoch epoch = 0;            // largest known
  std::uint64_t lineage = 0;  // largest that LineageCall answered
  Generation generation = 0;
  std::uint64_t over =
      0;              // how many fetches of that generation are over for it, however they ended
  Decision decision;  // the last one of its group
  std::optional<OpenFetch> fetch;
  std::vector<Holding> holdings;
  std::vector<ReadGrant> grants;        // as source
  std::vector<OpenTransfer> transfers;  // as reader
  bool leaving = false;
};

// Said again in each session until it is answered, also when the call is over.
struct Publish {
  CallId call = 0;
  Version version;
  std::shared_ptr<const std::vector<std::uint64_t>> digests;  // by number in the shard
  Time deadline;
};
struct AskUnpublish {
  CallId call = 0;
  Version version;
  Time deadline;
};
struct AskFetch {
  std::uint64_t n = 0;
  Generation generation = 0;
  FetchCall call;
  Time deadline;
};
struct AskCancel {
  std::uint64_t n = 0;
};
struct AskWithdraw {
  CallId call = 0;
  Version version;
};
struct AskRetain {
  CallId call = 0;
  Version version;
  Retention retention;
  Time deadline;
};
struct AskRelease {
  CallId call = 0;
  Version version;
};
struct AskInstalled {
  CallId call = 0;
  Version version;
  Hash128 root;
  std::uint32_t groups = 1;
  Time deadline;
};
struct AskLineage {
  CallId call = 0;
};
struct AskLeave {
  CallId call = 0;
  Time deadline;
};
// The worker gave up a call by itself (its deadline): nothing is owed any more.
struct CallEnded {
  CallId call = 0;
};

// After Clear: drained (readers done or revoked), the version is no longer in that buffer.
struct Cleared {
  Version version;
  std::uint32_t revoked = 0;
};
// After Clear: the deadline came first. Still immutable and hidden.
struct ClearFailed {
  Version version;
  std::vector<WorkerId> readers;
};
struct Granted {
  PlanNumber plan = 0;
  std::vector<WorkerId> readers;
  std::vector<Access> access;     // of each reader
  std::vector<WorkerId> refused;  // hidden, gone, or not here
};
struct GrantsGone {
  std::vector<ReadGrant> grants;
};
// At most once in 100 ms, and in answer to Tell. Only ever more.
struct Progress {
  PlanNumber plan = 0;
  Version version;
  BlockSet verified;
  bool told = false;    // answers Tell
  std::uint64_t n = 0;  // its number
};
// Everything that was to be fetched is here and verified.
struct Filled {
  PlanNumber plan = 0;
  Version version;
};
// After Stop: no read is open any more.
struct TransferStopped {
  PlanNumber plan = 0;
  Version version;
  BlockSet verified;
};
// The reader went over to its alternate by itself.
struct Switched {
  PlanNumber plan = 0;
  StripeId stripe;
  WorkerId from;
  WorkerId to;
  FailureKind cause = FailureKind::SourceLost;
};
struct ParentWanted {
  PlanNumber plan = 0;
  StripeId stripe;
  std::uint32_t first_missing = 0;
  WorkerId lost;
  FailureKind cause = FailureKind::SourceLost;
};
struct SourceIsSlow {
  PlanNumber plan = 0;
  StripeId stripe;
  WorkerId source;
};

using WorkerMessage = std::variant<Publish, AskUnpublish, AskFetch, AskCancel, AskWithdraw,
                                   AskRetain, AskRelease, AskInstalled, AskLineage, AskLeave,
                                   CallEnded, Cleared, ClearFailed, Granted, GrantsGone, Progress,
                                   Filled, TransferStopped, Switched, ParentWanted, SourceIsSlow>;

// --- Coordinator to worker --------------------------------------------------------------------

struct Answer {
  CallId call = 0;
  CallResult result;
};
// Sent to every member, the same to all. A failed decision ends the fetch.
struct Decided {
  Decision decision;
};
// The fetch is over for the whole group, so also for a member that had not called it yet: its next
// call is a later one, and no member lags for ever. Also the answer to an AskFetch of an older
// generation (GroupBroken), which may come after GenerationIs.
struct FetchDone {
  std::uint64_t n = 0;
  Generation generation = 0;
  CallResult result;
};
// A member died, or came back as another incarnation; fetches count from 1 again. A group starts
// with generation 1.
struct GenerationIs {
  Generation generation = 0;
};
enum class ClearReason : std::uint8_t { Fetch, Unpublish, Leave, Forget };
// Hide the version, let its readers finish, then answer Cleared. Where nobody reads it, the buffer
// is free for the next message already, and the coordinator goes on without waiting for Cleared. At
// the deadline: ClearFailed, or, with Revoke, take the readers' access away first. From now on the
// group does not run it.
struct Clear {
  Version version;
  ClearReason reason = ClearReason::Fetch;
  OnDeadline on_deadline = OnDeadline::Fail;
  Time deadline;
};
// The clearing was called off: offer it again.
struct Unhide {
  Version version;
};
struct GrantedReader {
  WorkerId reader;
  Incarnation incarnation = 0;
  // Children that the tables do not name: of this source as parent, or as alternate.
  std::vector<LiveEdge> edges;
};
struct GrantReads {
  TransferRef transfer;
  std::vector<GrantedReader> readers;
};
// Take these grants back: the reader is done, or dead (then it must be cut off).
struct EndReads {
  std::vector<ReadGrant> grants;
};
struct SourceAccess {
  WorkerId source;
  Access access;
};
// Fill the worker's shard of the version: in its own buffer (slot), host memory in new memory.
struct Begin {
  TransferRef transfer;
  Destination destination = Destination::InPlace;
  std::vector<SourceAccess> sources;
  std::vector<LiveEdge> edges;  // instead of the tables' edges of the same stripe
};
// In this order: drop what is read of these stripes, then read along these edges.
struct Change {
  PlanNumber plan = 0;
  std::vector<StripeId> drops;
  std::vector<LiveEdge> edges;
  std::vector<SourceAccess> sources;
};
struct Stop {
  PlanNumber plan = 0;
};
// Answer with Progress{told, n}. After Unhide it asks whether the version is still there. With the
// number of a fetch it also asks whether the worker has stopped running another version than the
// decided one: it has, once Decided was read.
struct Tell {
  Version version;
  std::uint64_t n = 0;  // zero: of no fetch
};
// To holders, so that it outlives the coordinator.
struct Note {
  Version version;
  bool withdrawn = false;
  Retention retention;
};
struct LeaveNow {};  // everything is cleared: the worker may go

using CoordinatorMessage =
    std::variant<Answer, Decided, FetchDone, GenerationIs, Clear, Unhide, GrantReads, EndReads,
                 Begin, Change, Stop, Tell, Note, LeaveNow>;

using WorkerMessageRef = std::shared_ptr<const WorkerMessage>;
using CoordinatorMessageRef = std::shared_ptr<const CoordinatorMessage>;

// The kind of a message, for stories and counters: "AskFetch".
[[nodiscard]] const char* name_of(const WorkerMessage& message);
[[nodiscard]] const char* name_of(const CoordinatorMessage& message);

}  // namespace holdfast
