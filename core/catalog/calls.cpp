#include "core/catalog/calls.hpp"

#include <fmt/format.h>

namespace holdfast {

const char* to_string(CallStatus status) {
  switch (status) {
    case CallStatus::Ok:
      return "Ok";
    case CallStatus::NothingNewer:
      return "NothingNewer";
    case CallStatus::DeadlineExceeded:
      return "DeadlineExceeded";
    case CallStatus::Cancelled:
      return "Cancelled";
    case CallStatus::GroupBroken:
      return "GroupBroken";
    case CallStatus::GroupMismatch:
      return "GroupMismatch";
    case CallStatus::VersionConflict:
      return "VersionConflict";
    case CallStatus::VersionNotNew:
      return "VersionNotNew";
    case CallStatus::UnknownVersion:
      return "UnknownVersion";
    case CallStatus::Withdrawn:
      return "Withdrawn";
    case CallStatus::VersionLost:
      return "VersionLost";
    case CallStatus::RetentionBlocked:
      return "RetentionBlocked";
    case CallStatus::DrainTimeout:
      return "DrainTimeout";
    case CallStatus::Fenced:
      return "Fenced";
    case CallStatus::BufferBusy:
      return "BufferBusy";
    case CallStatus::Superseded:
      return "Superseded";
    case CallStatus::CoordinatorUnreachable:
      return "CoordinatorUnreachable";
    case CallStatus::Stopped:
      return "Stopped";
  }
  return "unknown";
}

std::string to_string(const Version& version) {
  return fmt::format("{}.{}", version.lineage, version.number);
}

std::string to_string(const CallResult& result) {
  std::string text = to_string(result.status);
  std::string separator = ": ";
  const auto add = [&](const std::string& part) {
    text += separator + part;
    separator = "; ";
  };
  if (result.status == CallStatus::Ok && result.version != Version{}) {
    add("version " + to_string(result.version));
  }
  if (!result.who.empty()) {
    std::string names;
    for (const WorkerId worker : result.who) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", worker.value());
    }
    add((result.who.size() == 1 ? "worker " : "workers ") + names);
  }
  if (!result.lost.empty()) {
    std::uint64_t blocks = 0;
    for (const BlockSpan& span : result.lost) blocks += span.count;
    add(fmt::format("{} blocks of shard {} from block {}", blocks, result.shard.rank,
                    result.lost.front().first.value()));
  }
  if (result.revoked != 0) add(fmt::format("{} readers revoked", result.revoked));
  if (!result.reason.empty()) add(result.reason);
  return text;
}

}  // namespace holdfast
