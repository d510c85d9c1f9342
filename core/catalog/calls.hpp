// What a user asks of Holdfast through its worker, and how each call ends.
//
// Every call has a deadline and ends by it, in success or in a named error. Calls are told apart by
// a number that the worker chooses; a worker has at most one open fetch and one open leave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/catalog/model_space.hpp"
#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"
#include "core/units.hpp"

namespace holdfast {

using CallId = std::uint64_t;

// Where a fetched version goes: over the old one, or into other memory, then switched to.
enum class Destination { InPlace, Shadow };
// What a fetch of the latest version does when a newer one becomes fetchable meanwhile.
enum class OnNewer { Finish, Restart };
// What an unpublish does with readers that are not done at its deadline.
enum class OnDeadline { Fail, Revoke };

// --- Calls ----------------------------------------------------------------------------------
// The worker's part of its group's buffers becomes visible as a version, immutable from the call
// on. Ok once the coordinator has recorded it; fetchable when every shard of a group is there.
struct PublishCall {
  Version version;
};
// Hidden at once, drained, then returned: from Ok on the buffer may change.
struct UnpublishCall {
  Version version;
  OnDeadline on_deadline = OnDeadline::Fail;
};
// Every worker of a group calls it, with equal arguments; it ends alike for all of them.
struct FetchCall {
  std::optional<Version> version;  // nothing: the latest
  Destination destination = Destination::InPlace;
  OnNewer on_newer = OnNewer::Finish;
  friend bool operator==(const FetchCall&, const FetchCall&) = default;
};
struct CancelCall {  // ends the open fetch of the whole group with Cancelled
  CallId fetch = 0;
};
struct WithdrawCall {
  Version version;
};
// Ok: the version is Safe(copies, level), and is kept so until released.
struct RetainCall {
  Version version;
  std::uint32_t copies = 1;
  Level level = Level::Host;
};
struct ReleaseCall {
  Version version;
};
// Ok once `groups` groups report that they run the version with that root.
struct InstalledCall {
  Version version;
  Hash128 root;
  std::uint32_t groups = 1;
};
// A lineage that nobody knows yet: for a trainer that resumed from a checkpoint.
struct LineageCall {};
// A voluntary leave or a spot notice: what is retained moves off first, readers drain.
struct LeaveCall {};

using Call = std::variant<PublishCall, UnpublishCall, FetchCall, CancelCall, WithdrawCall,
                          RetainCall, ReleaseCall, InstalledCall, LineageCall, LeaveCall>;

// --- Ends -----------------------------------------------------------------------------------
enum class CallStatus : std::uint8_t {
  Ok,
  NothingNewer,      // fetch: the group already runs what "latest" means
  DeadlineExceeded,  // `who`: those who were waited for
  Cancelled,
  GroupBroken,      // a member died or was fenced: `who`
  GroupMismatch,    // members gave different arguments for one fetch
  VersionConflict,  // publish: another root is known under that number
  VersionNotNew,    // publish: numbers rise strictly within a lineage
  UnknownVersion,   // nobody published it, or not all of it
  Withdrawn,
  VersionLost,             // no verified copy of some byte is left: `shard`, `lost`
  RetentionBlocked,        // too few copies elsewhere at the deadline: `reason`
  DrainTimeout,            // readers not done at the deadline: `who`; still immutable and hidden
  Fenced,                  // this incarnation was declared dead
  BufferBusy,              // the buffer is in use by an open call or by another version
  Superseded,              // Restart: a newer version came; the worker asks again by itself
  CoordinatorUnreachable,  // no answer by the deadline
  Stopped,                 // the worker shut down
};
[[nodiscard]] const char* to_string(CallStatus status);

struct CallResult {
  CallStatus status = CallStatus::Ok;
  Version version;              // fetch: what runs now; publish; lineage: {new lineage, 0}
  Hash128 root;                 // of that version
  std::vector<WorkerId> who;    // DeadlineExceeded, GroupBroken, DrainTimeout
  ShardId shard;                // VersionLost
  std::vector<BlockSpan> lost;  // VersionLost
  std::uint32_t revoked = 0;    // unpublish: readers whose access was taken away
  std::uint32_t safe = 0;       // retain: copies in different domains now
  std::string reason;           // RetentionBlocked, and wherever words help
  friend bool operator==(const CallResult&, const CallResult&) = default;
};
// For people: "DeadlineExceeded: waited for workers 3, 7".
[[nodiscard]] std::string to_string(const CallResult& result);
[[nodiscard]] std::string to_string(const Version& version);  // "1.7": lineage.number

}  // namespace holdfast
