// Calls of whole groups, put together from their members': what each of them ended with, and what
// that means for the group.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/weight_service.hpp"

namespace holdfast::sim {

class GroupCalls {
 public:
  struct Ended {
    GroupId group;
    GroupCall call = 0;
    bool leave = false;
    CallResult result;
  };

  // `members`: who makes it, by rank. Without any it ends at once: then `ended` comes back.
  struct Opened {
    GroupCall call = 0;
    std::optional<Ended> ended;
  };
  [[nodiscard]] Opened open(GroupId group, std::span<const WorkerId> members, const Call& call);
  // Nothing while other members are not done, and for calls that are not open.
  std::optional<Ended> finished(WorkerId member, GroupCall call, const CallResult& result);
  // The worker is gone, and its part in every call with it.
  std::vector<Ended> gone(WorkerId member);
  // The group's last fetch that is open; zero if there is none.
  [[nodiscard]] GroupCall open_fetch(GroupId group) const;

 private:
  struct Member {
    WorkerId worker;
    std::optional<CallResult> result;
    bool gone = false;
  };
  struct Open {
    GroupId group;
    bool fetch = false;
    bool leave = false;
    std::vector<Member> members;
    std::size_t left = 0;
  };
  [[nodiscard]] static Ended end_of(GroupCall call, const Open& open);

  std::map<GroupCall, Open> open_;
  GroupCall last_ = 0;
};

}  // namespace holdfast::sim
