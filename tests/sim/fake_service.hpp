// A WeightService without a network: each call takes the time that the test says, and ends well
// unless the group is gone.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/weight_service.hpp"

namespace holdfast::sim {

class FakeService final : public WeightService {
 public:
  struct Times {
    Time publish = seconds(1);
    Time unpublish = seconds(1);
    Time fetch = seconds(4);  // its blocks come evenly in that time
    Time leave = seconds(2);
    Time retain = seconds(1);
  };
  struct Called {
    Time at;
    GroupId group;
    Call call;
    Time deadline;
  };

  FakeService(ServiceSetup setup, const Times& times)
      : setup_(std::move(setup)), times_(times), groups_(setup_.groups.size()) {}

  // Instead of Ok, in this order.
  std::vector<CallStatus> fetch_ends;
  std::vector<Called> calls;
  std::vector<FaultChange> faults;

  void run(ServiceObserver& observer, std::function<void()> begin) override {
    observer_ = &observer;
    begin();
    while (!stopped_ && !queue_.empty()) {
      const auto first = queue_.begin();
      now_ = first->first.first;
      const std::function<void()> what = std::move(first->second);
      queue_.erase(first);
      what();
    }
  }
  void stop() override { stopped_ = true; }
  [[nodiscard]] Time now() const override { return now_; }
  void call_at(Time at, std::function<void()> what) override {
    queue_.emplace(std::pair(std::max(at, now_), ++order_), std::move(what));
  }

  void start(GroupId group) override { groups_[group.index()].started = true; }
  void kill(GroupId group) override {
    groups_[group.index()].started = false;
    end_calls(group, CallStatus::Stopped);
    set_runs(group, std::nullopt);
  }
  [[nodiscard]] bool running(GroupId group) const override {
    if (!groups_[group.index()].started) return false;
    const auto& members = setup_.groups[group.index()].members;
    return std::none_of(members.begin(), members.end(),
                        [this](NodeId node) { return down_.count(node) > 0; });
  }

  GroupCall call(GroupId group, const Call& call, Time deadline) override {
    calls.push_back({now_, group, call, deadline});
    const GroupCall number = ++last_;
    groups_[group.index()].open.insert(number);
    if (const auto* publish = std::get_if<PublishCall>(&call)) {
      end_at(group, number, times_.publish, [this, version = publish->version] {
        latest_ = std::max(latest_.value_or(version), version);
        return CallResult{};
      });
    } else if (std::holds_alternative<FetchCall>(call)) {
      fetch(group, number, std::get<FetchCall>(call));
    } else if (std::holds_alternative<LeaveCall>(call)) {
      end_at(group, number, times_.leave, [this, group] {
        groups_[group.index()].started = false;
        return CallResult{};
      });
    } else {
      const bool unpublish = std::holds_alternative<UnpublishCall>(call);
      end_at(group, number, unpublish ? times_.unpublish : times_.retain,
             [] { return CallResult{}; });
    }
    return number;
  }

  void apply(const FaultChange& change) override {
    faults.push_back(change);
    for (const NodeId node : change.workers) {
      if (change.step == FaultStep::Begin) {
        down_.insert(node);
      } else {
        down_.erase(node);
      }
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g].started || running(GroupId(g))) continue;
      end_calls(GroupId(g), CallStatus::GroupBroken);
      set_runs(GroupId(g), std::nullopt);
    }
  }

  [[nodiscard]] const SimNetwork::Moved& moved() const override { return moved_; }
  [[nodiscard]] std::vector<SimNetwork::Use> channel_use(Time) const override { return {}; }
  [[nodiscard]] FlowDriver driver() const override { return {}; }

 private:
  struct Group {
    bool started = false;
    std::optional<Version> runs;
    std::set<GroupCall> open;
  };

  void set_runs(GroupId group, const std::optional<Version>& version) {
    if (groups_[group.index()].runs == version) return;
    groups_[group.index()].runs = version;
    call_at(now_, [this, group, version] { observer_->runs_changed(group, version); });
  }

  void end_calls(GroupId group, CallStatus status) {
    for (const GroupCall number : std::exchange(groups_[group.index()].open, {})) {
      CallResult result;
      result.status = status;
      call_at(now_,
              [this, group, number, result] { observer_->call_ended(group, number, result); });
    }
  }

  void end_at(GroupId group, GroupCall number, Time after,
              const std::function<CallResult()>& result) {
    call_at(now_ + after, [this, group, number, result] {
      if (groups_[group.index()].open.erase(number) == 0) return;
      observer_->call_ended(group, number, result());
    });
  }

  void fetch(GroupId group, GroupCall number, const FetchCall& call) {
    const Version version = call.version.value_or(latest_.value_or(Version{}));
    CallStatus status = CallStatus::Ok;
    if (!fetch_ends.empty()) {
      status = fetch_ends.front();
      fetch_ends.erase(fetch_ends.begin());
    }
    if (call.destination == Destination::InPlace) set_runs(group, std::nullopt);
    std::uint32_t first = 0;
    for (std::size_t g = 0; g < group.index(); ++g) {
      first += static_cast<std::uint32_t>(setup_.groups[g].members.size());
    }
    const ServiceGroup& members = setup_.groups[group.index()];
    const ModelSpace& space = *setup_.spaces[0];
    for (std::uint32_t rank = 0; rank < members.members.size(); ++rank) {
      const ShardId shard{members.layout, rank};
      for (std::uint32_t b = 0; b < space.blocks(shard); ++b) {
        const BlockId block = space.block(shard, b);
        call_at(now_ + times_.fetch * (b + 1) / space.blocks(shard),
                [this, group, number, worker = WorkerId(first + rank), block] {
                  if (groups_[group.index()].open.count(number) == 0) return;
                  observer_->block_delivered(worker, block, WorkerId(0U));
                });
      }
    }
    end_at(group, number, times_.fetch, [this, group, version, status] {
      CallResult result;
      result.status = status;
      result.version = version;
      if (status == CallStatus::Ok) set_runs(group, version);
      return result;
    });
  }

  ServiceSetup setup_;
  Times times_;
  std::vector<Group> groups_;
  std::set<NodeId> down_;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> queue_;
  std::uint64_t order_ = 0;
  GroupCall last_ = 0;
  Time now_;
  std::optional<Version> latest_;
  ServiceObserver* observer_ = nullptr;
  bool stopped_ = false;
  SimNetwork::Moved moved_;
};

}  // namespace holdfast::sim
