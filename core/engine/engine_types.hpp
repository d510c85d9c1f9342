// What goes into a worker's engine and what comes out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include "core/engine/transport.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace holdfast {

// Numbers an engine's assignments from 0 in the order in which they were made: first those of the
// tables, ascending by stripe, then those of `assign`.
using EdgeNumber = std::uint32_t;

// A block on an edge: its number in the stripe's own order. Unique among an engine's open work.
struct EdgeBlock {
  EdgeNumber edge = 0;
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(const EdgeBlock&, const EdgeBlock&) = default;
};

// --- Events ---------------------------------------------------------------------------------

// All bytes of a Read command are there, or it failed.
struct BlockRead {
  EdgeBlock at;
  ReadStatus status = ReadStatus::Ok;
};
struct BlockDigested {
  EdgeBlock at;
  std::uint64_t digest = 0;
};
// The read was not posted: later (WouldBlock: the engine posts it again after the next completed
// read, or after a while) or never (PeerGone). Commands of the same edge that follow a refused one
// must be refused too, so that the order on the edge is kept.
struct PostRefused {
  EdgeBlock at;
  Posted reason = Posted::WouldBlock;
};
struct MessageFrom {
  WorkerId worker;
  std::span<const std::byte> payload;  // only used during the step
};
struct WorkerLost {
  WorkerId worker;
};
struct TimePassed {};
using EngineEvent =
    std::variant<BlockRead, BlockDigested, PostRefused, MessageFrom, WorkerLost, TimePassed>;

// --- Commands -------------------------------------------------------------------------------

// Ask the edge's parent for the block; `deadline` is absolute.
struct ReadBlock {
  EdgeBlock at;
  BlockId block;
  Time deadline;
};
// Cancel all open reads of the edge; each still ends with a BlockRead.
struct CancelReads {
  EdgeNumber edge = 0;
};
struct DigestBlock {
  EdgeBlock at;
  BlockId block;
};
// To a child: have of `count` blocks from `first`; to a parent: ask from `first`. The engine writes
// the bytes (WorkerEngine::write_message), before its next step.
struct SendMessage {
  WorkerId to;
  StripeId stripe;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool ask = false;
  EdgeNumber edge = 0;  // ask: the assignment whose parent is asked
};
// The block's bytes are not the version's: it is missing as before, and read elsewhere.
struct BadDigest {
  EdgeBlock at;
  BlockId block;
  WorkerId source;  // who sent them
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
};
// The block is right and counted; children may have it. For traces and statistics.
struct BlockVerified {
  EdgeBlock at;
  BlockId block;
};
// Nothing that was assigned is missing. Comes again if more is assigned and arrives later.
struct Completed {};

// Why a source was given up, and why an engine ended.
enum class FailureKind {
  ReadFailed,      // a read completed with something else than Ok
  DigestMismatch,  // the bytes that came are not those of the version
  SourceLost,      // the parent of an unfinished assignment is gone
  NoProgress,      // nothing arrived for EngineConfig::no_progress
};
[[nodiscard]] const char* to_string(FailureKind kind);

// The engine itself took an alternate for a parent; what is verified stays.
struct Reparented {
  StripeId stripe;
  WorkerId from;
  WorkerId to;
  FailureKind cause = FailureKind::SourceLost;
  ReadStatus status = ReadStatus::Ok;  // ReadFailed
};
// An unfinished assignment has nobody to read from: assign the rest of the stripe or name an
// alternate (WorkerEngine::assign, add_alternate).
struct NeedParent {
  StripeId stripe;
  std::uint32_t first = 0;  // missing, in the stripe's order
  WorkerId lost;
  FailureKind cause = FailureKind::SourceLost;
  ReadStatus status = ReadStatus::Ok;  // ReadFailed
};
// Alive, but it sends less than a quarter of what was planned (rule 9 of worker_engine.hpp).
struct SlowSource {
  StripeId stripe;
  WorkerId parent;
};

// Why an engine gave up: who needed what from whom.
struct EngineFailure {
  FailureKind kind = FailureKind::NoProgress;
  WorkerId worker;
  WorkerId source;
  StripeId stripe;
  BlockId block;                       // the first one that is missing
  ReadStatus status = ReadStatus::Ok;  // ReadFailed
  std::uint64_t expected = 0;          // DigestMismatch
  std::uint64_t found = 0;
  Time waited;  // NoProgress: since the last progress
};
// "read failed: h3.gpu0 needs block 17 (stripe 2) from h1.gpu0: the read ended with ..." and the
// like. `name_of` says how workers are called; without it "worker 3".
using WorkerName = std::function<std::string(WorkerId)>;
[[nodiscard]] std::string to_string(const EngineFailure& failure, const WorkerName& name_of = {});

// The last command of an engine.
struct Failed {
  EngineFailure failure;
};

using EngineCommand =
    std::variant<ReadBlock, CancelReads, DigestBlock, SendMessage, BadDigest, BlockVerified,
                 Reparented, NeedParent, SlowSource, Completed, Failed>;

}  // namespace holdfast
