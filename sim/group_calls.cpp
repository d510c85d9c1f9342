#include "sim/group_calls.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

GroupCalls::Opened GroupCalls::open(GroupId group, std::span<const WorkerId> members,
                                    const Call& call) {
  Open open;
  open.group = group;
  open.fetch = std::holds_alternative<FetchCall>(call);
  open.leave = std::holds_alternative<LeaveCall>(call);
  for (const WorkerId worker : members) open.members.push_back({worker, {}, false});
  open.left = open.members.size();
  Opened opened;
  opened.call = ++last_;
  if (open.left == 0) {
    opened.ended = end_of(last_, open);
  } else {
    open_.emplace(last_, std::move(open));
  }
  return opened;
}

std::optional<GroupCalls::Ended> GroupCalls::finished(WorkerId worker, GroupCall call,
                                                      const CallResult& result) {
  const auto at = open_.find(call);
  if (at == open_.end()) return std::nullopt;
  Open& open = at->second;
  const auto member = std::find_if(open.members.begin(), open.members.end(),
                                   [worker](const Member& m) { return m.worker == worker; });
  if (member == open.members.end() || member->result || member->gone) return std::nullopt;
  member->result = result;
  if (--open.left != 0) return std::nullopt;
  Ended ended = end_of(call, open);
  open_.erase(at);
  return ended;
}

std::vector<GroupCalls::Ended> GroupCalls::gone(WorkerId worker) {
  std::vector<Ended> ended;
  for (auto at = open_.begin(); at != open_.end();) {
    Open& open = at->second;
    const auto member = std::find_if(open.members.begin(), open.members.end(),
                                     [worker](const Member& m) { return m.worker == worker; });
    if (member == open.members.end() || member->gone) {
      ++at;
      continue;
    }
    if (!member->result) --open.left;
    member->gone = true;
    if (open.left != 0) {
      ++at;
      continue;
    }
    ended.push_back(end_of(at->first, open));
    at = open_.erase(at);
  }
  return ended;
}

GroupCall GroupCalls::open_fetch(GroupId group) const {
  const auto at = std::find_if(open_.rbegin(), open_.rend(), [group](const auto& entry) {
    return entry.second.group == group && entry.second.fetch;
  });
  return at == open_.rend() ? 0 : at->first;
}

GroupCalls::Ended GroupCalls::end_of(GroupCall call, const Open& open) {
  Ended ended{open.group, call, open.leave, {}};
  const Member* first = nullptr;
  for (const Member& member : open.members) {
    if (member.gone) continue;
    if (first == nullptr) first = &member;
    if (member.result->status == CallStatus::Ok) continue;
    first = &member;
    break;
  }
  if (first != nullptr) {
    ended.result = *first->result;
  } else {
    ended.result.status = CallStatus::Stopped;
    ended.result.reason = "no member of the group runs";
  }
  return ended;
}

}  // namespace holdfast::sim
