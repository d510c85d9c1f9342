// What the baselines without a catalog have in common: members, calls with their deadlines, faults,
// buffers that drain. How bytes move is the derived class's.
//
// Assumed of all of them, in their favour: whoever decides knows everything at once, unless the
// derived class says otherwise, and control messages cost nothing; nobody is declared dead by
// mistake; publishing takes no time. They keep no copies: retain, release, installed and lineage
// end with Stopped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/direct_transfer.hpp"
#include "sim/weight_service.hpp"

namespace holdfast::sim {

struct DirectOptions {
  NetworkOptions network;  // `links` is always PlatformLinks::All, `block` is filled in
  Meters meters;
  bool verify = true;
};

class DirectService : public WeightService, protected TransferWatcher {
 public:
  ~DirectService() override;

  void run(ServiceObserver& observer, std::function<void()> begin) final;
  void stop() final;
  [[nodiscard]] Time now() const final;
  void call_at(Time at, std::function<void()> what) final;
  void start(GroupId group) final;
  void kill(GroupId group) final;
  [[nodiscard]] bool running(GroupId group) const final;
  GroupCall call(GroupId group, const Call& call, Time deadline) final;
  void apply(const FaultChange& change) final;
  [[nodiscard]] const SimNetwork::Moved& moved() const final;
  [[nodiscard]] std::vector<SimNetwork::Use> channel_use(Time makespan) const final;
  [[nodiscard]] FlowDriver driver() const final;

 protected:
  // The router must outlive it. Throws Error(BadValue) as ProtocolService does.
  DirectService(const Router& router, ServiceSetup setup, const DirectOptions& options);

  struct Member {
    NodeId node;
    GroupId group;
    std::uint32_t rank = 0;
    bool wanted = false;
    bool runs = false;
  };
  struct Fetch {
    GroupCall number = 0;
    FetchCall call;
    Version version;
    bool moving = false;  // its buffer is free: bytes may come
  };
  struct Drain {  // an unpublish or a leave
    GroupCall number = 0;
    bool leave = false;
    bool revoke = false;
  };
  struct Group {
    std::vector<WorkerId> members;
    std::optional<Version> holds;  // complete, and readable unless hidden
    bool hidden = false;
    std::optional<Version> runs;
    std::optional<Fetch> fetch;
    std::optional<Drain> drain;
  };

  // --- What the derived class does
  // A fetch of the group has begun: its buffer is free. Its version is held by somebody, or was.
  // Called again where a newer version took the place of one of which no copy is left.
  virtual void fetch_begins(GroupId group) = 0;
  // It ended without success: nothing is to arrive any more.
  virtual void fetch_given_up(GroupId group) = 0;
  // Members have come or gone; who died is dead in the network.
  virtual void group_started(GroupId group) = 0;
  virtual void worker_stopped(WorkerId worker) = 0;
  // Somebody reads from the group.
  [[nodiscard]] virtual bool is_read(GroupId group) const = 0;
  // Its readers are to look elsewhere.
  virtual void cut_readers(GroupId group) = 0;

  // --- What it has
  // Every member has everything: the fetch ends well.
  void fetch_done(GroupId group);
  // Readers may have gone: drains look again.
  void look_at_drains();
  [[nodiscard]] bool holds(GroupId group, const Version& version) const;  // and may be read
  // For a transfer of `version` to `receivers`: holders are `holders`' members.
  [[nodiscard]] Demand demand_for(const Version& version, const std::vector<GroupId>& holders,
                                  const std::vector<GroupId>& receivers) const;
  DirectTransfer& add_transfer(Demand demand, Plan plan);
  // Once nobody is in it any more it goes.
  void end_transfer(DirectTransfer& transfer);
  void join(DirectTransfer& transfer, WorkerId worker);
  void set_runs(GroupId group, const std::optional<Version>& version);
  void tell_lost(WorkerId lost, WorkerId by);
  void delivered(WorkerId receiver, BlockId block, WorkerId source) override;
  void notify(std::function<void(ServiceObserver&)> what) { notices_.push_back(std::move(what)); }
  // After each event.
  void settle();

  const Router& router_;
  ServiceSetup setup_;
  DirectOptions options_;
  std::vector<Member> members_;  // by WorkerId
  std::vector<Group> groups_;    // by GroupId
  std::optional<SimNetwork> network_;
  ActiveFaults faults_;

 private:
  void publish(GroupId group, GroupCall number, const Version& version);
  void ask_for_newer(const Version& version);
  void drain(GroupId group, GroupCall number, bool leave, bool revoke, const Version* version);
  void fetch(GroupId group, GroupCall number, const FetchCall& what);
  void overdue(GroupId group, GroupCall number);
  void end(GroupId group, GroupCall number, CallResult result);
  void end(GroupId group, GroupCall number, CallStatus status, std::string reason = {});
  void begin_fetch(GroupId group);
  void stop_worker(WorkerId worker);
  void start_worker(WorkerId worker);
  void pump(WorkerId worker);

  std::vector<std::unique_ptr<DirectTransfer>> transfers_;
  std::set<const DirectTransfer*> ending_;
  std::set<Version> withdrawn_;
  std::set<Version> published_;
  std::uint32_t last_transfer_ = 0;
  std::uint16_t last_slot_ = 0;
  GroupCall last_call_ = 0;
  ServiceObserver* observer_ = nullptr;
  std::deque<std::function<void(ServiceObserver&)>> notices_;
  bool settling_ = false;
};

}  // namespace holdfast::sim
