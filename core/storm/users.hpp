// The users of a run: each worker's owner, who makes calls as the script says, writes into buffers
// that are its own, and scribbles over them the moment it gets them back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/storm/script.hpp"
#include "core/storm/watch.hpp"

namespace holdfast::storm {

// What users can do to a run.
class Desk {
 public:
  Desk() = default;
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  virtual ~Desk() = default;
  // Precondition: the worker is alive.
  virtual void call(WorkerId worker, CallId id, const Call& call, Time deadline) = 0;
  // The bytes that the owner writes: a version's (its shard of it) or, null, anything else.
  virtual void write(WorkerId worker, SlotNumber slot, const Content* content) = 0;
  // Later: `Users::perform` for one member.
  virtual void later(Time at, const Task& task, WorkerId worker) = 0;
};

class Users {
 public:
  Users(const Stage& stage, Desk& desk);

  // A task of the script: group calls are spread over the members.
  void start(const Task& task);
  // One worker's part of it.
  void perform(const Task& task, WorkerId worker);
  void ended(WorkerId worker, CallId id, const CallResult& result);
  void died(WorkerId worker);
  // Each group that can fetches the latest version, with time enough.
  void fetch_all(Time patience);

  [[nodiscard]] std::size_t open_calls() const { return open_.size(); }

 private:
  struct OpenCall {
    WorkerId worker;
    Call call;
    Time deadline;
    SlotNumber slot = 0;             // Unpublish: which buffer comes back
    std::optional<Task> afterwards;  // and then
  };
  CallId make(WorkerId worker, const Call& call, Time patience);
  void publish(const Task& task, WorkerId worker);
  [[nodiscard]] std::uint32_t variant_for(const Task& task, WorkerId worker) const;
  [[nodiscard]] std::optional<std::uint32_t> variant_at(WorkerId worker,
                                                        const Version& version) const;
  [[nodiscard]] bool publishing(WorkerId worker, const Version& version) const;
  void unpublish(const Task& task, WorkerId worker, bool then_publish);
  void fetch(const Task& task, WorkerId worker);
  void single(const Task& task, WorkerId worker);
  [[nodiscard]] bool unpublishing(WorkerId worker) const;
  [[nodiscard]] bool fetching(WorkerId worker) const;
  [[nodiscard]] std::optional<CallId> open_fetch(WorkerId worker) const;
  [[nodiscard]] bool busy(const WorldGroup& group) const;
  [[nodiscard]] bool odd(const Task& task, WorkerId worker) const;

  const Stage& stage_;
  Desk& desk_;
  CallId next_ = 1;
  std::map<CallId, OpenCall> open_;
  std::vector<std::uint32_t> waiting_;  // by group: members whose turn in a fetch comes later
};

}  // namespace holdfast::storm
