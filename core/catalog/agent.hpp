// One worker's side of the protocol: a passive state machine between the user's calls, the
// coordinator, and the transfers that fill its buffers. No clock, no thread, no input and output:
// agent_loop.hpp carries its commands out over a Transport, a Memory and TransferLoops, the same
// way in simulation and on hardware.
//
// What it owns: the buffers' contents (which version, which blocks are verified), its own table of
// read grants, its calls, its incarnation and the largest epoch it knows; the session with the
// coordinator (frames.hpp). What it never does: plan, or trust a command of an older epoch.
//
// Rules
//   1. A reader is let in only after GrantReads, and only to a version that is not hidden. Hidden:
//      no new reader; the table only shrinks.
//   2. A drain needs neither coordinator nor reader alive: at its deadline it fails, naming the
//      readers, or revokes them and waits for the transport's confirmation.
//   3. A buffer that is being filled holds nothing else; the group runs a version only after
//      FetchDone{Ok}; what failed is Empty, never the old version. Verified blocks of a fetch that
//      failed stay and may be read.
//   4. A fetch begins with Begin and ends with FetchDone, or by itself with GroupBroken (fenced),
//      DeadlineExceeded or CoordinatorUnreachable at its deadline: then its transfers are stopped
//      before the call returns.
//   5. Every call ends by its deadline. `shutdown` ends all at once with Stopped.
//   6. Commands of an epoch below the largest known are refused; so are frames of another
//      incarnation.
//   7. Restart: when a fetch of the latest version ends with Superseded, the same call goes on as
//      the group's next fetch, with the same deadline.
//
// Deterministic. One thread at a time. O(1) amortised a message, block and grant, apart from
// commands' own sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/catalog/frames.hpp"

namespace holdfast {

struct AgentConfig {
  Time heartbeat = milliseconds(250);       // between frames to the coordinator, at most
  Time hello_interval = milliseconds(100);  // between Hellos, doubling up to a second
  Time progress_interval = milliseconds(100);
  // The coordinator is told deadlines that are earlier by this, so that its answer, with the name
  // of the error, comes back in time; by half of what is left where that is less.
  Time answer_time = milliseconds(100);
  // A fetch that still reads is given up so much before its deadline, at most in half of its time:
  // it returns when its transport has ended the reads. (It does not wait for blocks that are being
  // digested; their buffer stays busy until they are.)
  Time stop_time = milliseconds(5);
  SessionConfig session;
};

using SlotNumber = std::uint32_t;  // a buffer of a worker

// --- Events -----------------------------------------------------------------------------------
struct CallMade {
  CallId id = 0;
  Call call;
  Time deadline;  // absolute
};
struct FromCoordinator {
  ToWorker frame;
};
// The answer to AllowReader; an access of size zero: the transport refused.
struct ReaderAllowed {
  ReadGrant grant;
  Access access;
};
// The answer to RevokeReader.
struct ReaderRevoked {
  WorkerId reader;
  Version version;
};
// The answer to DigestSlot, by number in the shard.
struct SlotDigested {
  SlotNumber slot = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> digests;
};
// From transfers.
struct BlockHere {
  PlanNumber plan = 0;
  BlockId block;  // verified
};
struct TransferFilled {  // nothing that was assigned is missing
  PlanNumber plan = 0;
};
struct TransferQuiet {  // after StopTransfer: no read is open any more, but a digest is
  PlanNumber plan = 0;
};
struct TransferIdle {  // the answer to StopTransfer: no read and no digest is open any more
  PlanNumber plan = 0;
};
struct TransferSwitched {
  PlanNumber plan = 0;
  StripeId stripe;
  WorkerId from;
  WorkerId to;
  FailureKind cause = FailureKind::SourceLost;
};
struct TransferWantsParent {
  PlanNumber plan = 0;
  StripeId stripe;
  std::uint32_t first_missing = 0;
  WorkerId lost;
  FailureKind cause = FailureKind::SourceLost;
};
struct TransferSlow {
  PlanNumber plan = 0;
  StripeId stripe;
  WorkerId source;
};
struct AgentTimePassed {};

using AgentEvent =
    std::variant<CallMade, FromCoordinator, ReaderAllowed, ReaderRevoked, SlotDigested, BlockHere,
                 TransferFilled, TransferQuiet, TransferIdle, TransferSwitched, TransferWantsParent,
                 TransferSlow, AgentTimePassed>;

// --- Commands ---------------------------------------------------------------------------------
struct SendToCoordinator {
  ToCoordinator frame;
};
struct FinishCall {
  CallId id = 0;
  CallResult result;
};
struct DigestSlot {
  SlotNumber slot = 0;
  ShardId shard;
};
struct AllowReader {
  ReadGrant grant;
  SlotNumber slot = 0;
};
struct RevokeReader {
  WorkerId reader;
  Version version;
};
struct StartTransfer {
  TransferRef transfer;
  SlotNumber slot = 0;
  ShardId shard;
  std::vector<SourceAccess> sources;
  std::vector<LiveEdge> edges;
};
struct ChangeTransfer {
  PlanNumber plan = 0;
  std::vector<StripeId> drops;
  std::vector<LiveEdge> edges;
  std::vector<SourceAccess> sources;
};
// Children that the tables of a transfer do not name: tell them what is verified. The worker may
// be a holder in that transfer.
struct AddChildren {
  TransferRef transfer;
  SlotNumber slot = 0;
  std::vector<LiveEdge> edges;
};
// Cancel its reads; answer TransferIdle when nothing is open. Its children hear no more, and what
// is digested from now on does not count.
struct StopTransfer {
  PlanNumber plan = 0;
};
// Host memory: a new buffer, as long as the shard. What is written of it fits the budget.
struct AllocateSlot {
  SlotNumber slot = 0;
  Bytes bytes;
};
struct FreeSlot {
  SlotNumber slot = 0;
};
// What the worker runs changed: the group's replica is (or is no longer) usable.
struct Runs {
  std::optional<Version> version;
  SlotNumber slot = 0;
};

using AgentCommand = std::variant<SendToCoordinator, FinishCall, DigestSlot, AllowReader,
                                  RevokeReader, StartTransfer, ChangeTransfer, AddChildren,
                                  StopTransfer, AllocateSlot, FreeSlot, Runs>;

// --- The machine ------------------------------------------------------------------------------
class Agent {
 public:
  Agent(WorkerId worker, Incarnation incarnation, const WorkerCard& card,
        std::shared_ptr<const ModelSpace> space, const AgentConfig& config);
  ~Agent();
  Agent(Agent&&) noexcept;
  Agent& operator=(Agent&&) noexcept;

  // Appends commands to `out`, to be carried out in order before the next step; returns when to
  // step again at the latest. `now` never falls.
  Time step(const AgentEvent& event, Time now, std::vector<AgentCommand>& out);
  // Ends every call with Stopped, stops transfers, revokes all readers. `idle` says when done.
  Time shutdown(Time now, std::vector<AgentCommand>& out);
  [[nodiscard]] bool idle() const;

  [[nodiscard]] WorkerId worker() const;
  [[nodiscard]] Incarnation incarnation() const;
  [[nodiscard]] Epoch epoch() const;
  [[nodiscard]] bool connected() const;  // has a session
  [[nodiscard]] bool left() const;       // after LeaveNow
  [[nodiscard]] std::optional<Version> runs() const;
  // Everything it knows, as in Hello.
  [[nodiscard]] WorkerReport report() const;
  // By slot; nothing where it is empty.
  [[nodiscard]] std::vector<std::optional<Holding>> holdings() const;
  [[nodiscard]] std::span<const ReadGrant> grants() const;  // as source
  [[nodiscard]] std::size_t open_calls() const;
  [[nodiscard]] std::size_t open_transfers() const;
  // Beside plans and digest tables.
  [[nodiscard]] std::size_t memory_bytes() const;

  friend std::vector<std::string> broken_invariants(const Agent& agent, Time now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What is wrong inside one agent: invariants 8, 11, 12, 15 as far as it can see them, and its own
// table's agreement with its buffers. Empty: nothing. For debug builds and the fuzzer.
[[nodiscard]] std::vector<std::string> broken_invariants(const Agent& agent, Time now);

}  // namespace holdfast
