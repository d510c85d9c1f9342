#include "sim/nccl_service.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/plan/planner.hpp"

namespace holdfast::sim {

NcclService::NcclService(const Router& router, ServiceSetup setup, const NcclOptions& options)
    : DirectService(router, std::move(setup), options.direct),
      init_time_(options.init_time),
      shape_(options.shape) {}

std::set<GroupId> NcclService::present() const {
  std::set<GroupId> result;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (running(GroupId(g))) result.insert(GroupId(g));
  }
  return result;
}

// Waits for bytes of this round's version.
bool NcclService::lacks(GroupId id) const {
  const Group& group = groups_[id.index()];
  return group.fetch && group.fetch->moving && group.fetch->version == *version_ &&
         group.holds != *version_;
}

// The newest version that somebody waits for and somebody has.
std::optional<Version> NcclService::wanted() const {
  std::optional<Version> result;
  for (const Group& group : groups_) {
    if (!group.fetch || !group.fetch->moving || group.fetch->version < result) continue;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (holds(GroupId(g), group.fetch->version)) result = group.fetch->version;
    }
  }
  return result;
}

// Begins a round if everybody is ready for it.
void NcclService::look() {
  if (phase_ != Phase::Idle) return;
  version_ = wanted();
  if (!version_) return;
  const std::set<GroupId> here = present();
  for (const GroupId id : here) {
    const Group& group = groups_[id.index()];
    const bool ready =
        lacks(id) || group.holds == *version_ || setup_.groups[id.index()].trainer || group.drain;
    if (!ready) return;
  }
  stop_everybody();
  if (communicator_ == here) {
    broadcast();
    return;
  }
  phase_ = Phase::Initialising;
  ++rebuilds_;
  communicator_ = here;
  after(init_time_, &NcclService::broadcast);
}

void NcclService::stop_everybody() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].runs != *version_ || groups_[g].fetch) continue;
    stopped_.emplace_back(g);
    set_runs(GroupId(g), std::nullopt);
  }
}

void NcclService::broadcast() {
  phase_ = Phase::Broadcasting;
  std::vector<GroupId> receivers;
  std::vector<GroupId> roots;
  for (const GroupId group : communicator_) {
    if (lacks(group)) receivers.push_back(group);
    if (holds(group, *version_)) roots.push_back(group);
  }
  std::stable_partition(roots.begin(), roots.end(),
                        [this](GroupId group) { return setup_.groups[group.index()].trainer; });
  if (receivers.empty() || roots.empty()) {
    finish();
    return;
  }
  Demand demand = demand_for(*version_, {roots.front()}, receivers);
  Plan plan;
  try {
    const Policy policy = shape_ == BroadcastShape::Ring ? Policy::Chain : Policy::TwoTree;
    plan = make_plan(policy, router_, demand).plan;
  } catch (const Error& error) {
    notify([demand, problem = error.message()](ServiceObserver& to) {
      to.planned(demand, nullptr, problem);
    });
    finish();
    return;
  }
  for (Stripe& stripe : plan.stripes) {
    for (Edge& edge : stripe.edges) edge.alternate = {};
  }
  auto told = std::make_shared<const std::pair<Demand, Plan>>(demand, plan);
  notify([told](ServiceObserver& to) { to.planned(told->first, &told->second, {}); });
  transfer_ = &add_transfer(std::move(demand), std::move(plan));
  for (const WorkerId worker : groups_[roots.front().index()].members) join(*transfer_, worker);
  for (const GroupId group : receivers) {
    for (const WorkerId worker : groups_[group.index()].members) {
      missing_.insert(worker);
      join(*transfer_, worker);
    }
  }
}

void NcclService::assigned_done(DirectTransfer& transfer, WorkerId reader) {
  if (&transfer != transfer_ || missing_.erase(reader) == 0 || !missing_.empty()) return;
  const std::uint64_t round = round_;
  call_at(now(), [this, round] {
    if (round == round_) finish();
  });
}

// Everybody at once.
void NcclService::finish() {
  ++round_;
  phase_ = Phase::Idle;
  if (transfer_ != nullptr) end_transfer(*transfer_);
  transfer_ = nullptr;
  for (const GroupId group : communicator_) {
    const Group& member = groups_[group.index()];
    if (member.fetch && member.fetch->moving && member.fetch->version == *version_ &&
        running(group)) {
      fetch_done(group);
    }
  }
  for (const GroupId group : std::exchange(stopped_, {})) {
    if (holds(group, *version_)) set_runs(group, version_);
  }
  look();
}

// Nothing of this round counts; the next one makes a communicator first.
void NcclService::fail(Time wait) {
  if (phase_ != Phase::Initialising && phase_ != Phase::Broadcasting) return;
  phase_ = Phase::Failed;
  ++round_;
  missing_.clear();
  if (transfer_ != nullptr) end_transfer(*transfer_);
  transfer_ = nullptr;
  communicator_.clear();
  after(wait, &NcclService::finish);
}

void NcclService::after(Time wait, void (NcclService::*what)()) {
  const std::uint64_t round = round_;
  call_at(now() + wait, [this, round, what] {
    if (round == round_) (this->*what)();
  });
}

// --- What happens to groups ----------------------------------------------------------------------

void NcclService::fetch_begins(GroupId /*group*/) {
  look();
}

void NcclService::fetch_given_up(GroupId group) {
  if (communicator_.count(group) != 0) fail(Time());
  look();
}

void NcclService::group_started(GroupId /*group*/) {
  look();
}

void NcclService::worker_stopped(WorkerId worker) {
  if (communicator_.count(members_[worker.index()].group) != 0 &&
      (phase_ == Phase::Initialising || phase_ == Phase::Broadcasting)) {
    const Time detection = options_.network.detection;
    fail(detection);
    call_at(now() + detection, [this, worker] { tell_lost(worker, {}); });
    return;
  }
  look();
}

// A collective call: who has the version takes part until everybody who asked for it has it.
bool NcclService::is_read(GroupId group) const {
  const std::optional<Version>& held = groups_[group.index()].holds;
  const bool asked = std::any_of(groups_.begin(), groups_.end(), [&](const Group& other) {
    return other.fetch && other.fetch->version == held && other.holds != held;
  });
  if (held && asked && setup_.groups[group.index()].trainer) return true;
  return (phase_ == Phase::Broadcasting || phase_ == Phase::Initialising) &&
         communicator_.count(group) != 0;
}

void NcclService::cut_readers(GroupId /*group*/) {
  fail(Time());
}

// Whoever it was that died, everybody begins anew: see worker_stopped. A link that is down for
// longer than the detection time ends the round as well.
void NcclService::source_lost(DirectTransfer& transfer, WorkerId reader, StripeId /*stripe*/,
                              std::uint32_t /*first_missing*/, WorkerId lost) {
  if (&transfer != transfer_) return;
  const std::uint64_t round = round_;
  call_at(now(), [this, round, reader, lost] {
    if (round != round_) return;
    tell_lost(lost, reader);
    fail(Time());
  });
}

}  // namespace holdfast::sim
