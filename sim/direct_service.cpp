#include "sim/direct_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

namespace holdfast::sim {

DirectService::DirectService(const Router& router, ServiceSetup setup, const DirectOptions& options)
    : router_(router), setup_(std::move(setup)), options_(options), faults_(router.topology()) {
  std::vector<NodeId> nodes;
  for (std::size_t g = 0; g < setup_.groups.size(); ++g) {
    const ServiceGroup& group = setup_.groups[g];
    const bool known = group.space.valid() && group.space.index() < setup_.spaces.size() &&
                       group.layout < setup_.spaces[group.space.index()]->layouts();
    if (!known || setup_.spaces[group.space.index()]->ranks(group.layout) != group.members.size()) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("group '{}' does not fit its space and layout", group.name));
    }
    groups_.emplace_back();
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      groups_.back().members.emplace_back(members_.size());
      members_.push_back({group.members[rank], GroupId(g), rank, false, false});
      nodes.push_back(group.members[rank]);
    }
  }
  // Endpoints of host memory keep their numbers and do nothing.
  for (const ServiceMemory& memory : setup_.memories) nodes.push_back(memory.node);
  NetworkOptions ports = options_.network;
  ports.links = PlatformLinks::All;
  for (const auto& space : setup_.spaces) ports.block = std::max(ports.block, space->block_size());
  network_.emplace(router, nodes, std::span<const DataPath>{}, options_.meters, ports);
  for (std::size_t w = 0; w < nodes.size(); ++w) network_->kill(WorkerId(w));
}
DirectService::~DirectService() = default;

// --- Running -------------------------------------------------------------------------------------

void DirectService::run(ServiceObserver& observer, std::function<void()> begin) {
  observer_ = &observer;
  call_at(Time(0), std::move(begin));
  network_->run(
      [this](WorkerId worker) {
        pump(worker);
        settle();
      },
      [this] { network_->stop(); });
}

void DirectService::stop() {
  network_->stop();
}
Time DirectService::now() const {
  return network_->now();
}
void DirectService::call_at(Time at, std::function<void()> what) {
  network_->call_at(at, [this, what = std::move(what)] {
    what();
    settle();
  });
}

void DirectService::settle() {
  if (settling_) return;
  settling_ = true;
  std::erase_if(transfers_, [this](const auto& transfer) {
    return ending_.count(transfer.get()) != 0 && transfer->empty() &&
           ending_.erase(transfer.get()) != 0;
  });
  look_at_drains();
  while (!notices_.empty()) {
    const auto notice = std::move(notices_.front());
    notices_.pop_front();
    notice(*observer_);
    look_at_drains();
  }
  settling_ = false;
}

void DirectService::pump(WorkerId worker) {
  if (worker.index() >= members_.size() || !members_[worker.index()].runs) return;
  std::array<TransportEvent, 16> events;
  std::array<JobDone, 16> jobs;
  for (bool busy = true; busy;) {
    for (const auto& transfer : transfers_) transfer->pump(worker);
    const std::size_t told = network_->transport(worker).poll(events);
    for (std::size_t i = 0; i < told; ++i) {
      for (const auto& transfer : transfers_) {
        if (transfer->take(worker, events[i])) break;
      }
    }
    const std::size_t done = network_->memory(worker).poll(jobs);
    for (std::size_t i = 0; i < done; ++i) {
      for (const auto& transfer : transfers_) {
        if (transfer->take(worker, jobs[i])) break;
      }
    }
    busy = told + done != 0;
  }
  Time next = Time::never();
  for (const auto& transfer : transfers_) next = std::min(next, transfer->next_deadline(worker));
  network_->wake_at(worker, next);
}

// --- Members -------------------------------------------------------------------------------------

void DirectService::start_worker(WorkerId worker) {
  Member& member = members_[worker.index()];
  member.wanted = true;
  if (member.runs || faults_.stopped(member.node)) return;
  network_->restart(worker);
  member.runs = true;
}

void DirectService::stop_worker(WorkerId worker) {
  Member& member = members_[worker.index()];
  if (!member.runs) return;
  member.runs = false;
  network_->kill(worker);
  for (const auto& transfer : transfers_) transfer->forget(worker);
  Group& group = groups_[member.group.index()];
  group.holds.reset();
  set_runs(member.group, std::nullopt);
  worker_stopped(worker);
  if (group.fetch) {
    const bool alone = std::none_of(group.members.begin(), group.members.end(),
                                    [&](WorkerId w) { return members_[w.index()].runs; });
    const GroupCall number = group.fetch->number;
    const bool moving = group.fetch->moving;
    group.fetch.reset();
    if (moving) fetch_given_up(member.group);
    end(member.group, number, alone ? CallStatus::Stopped : CallStatus::GroupBroken);
  }
}

void DirectService::start(GroupId group) {
  if (running(group)) return;
  for (const WorkerId member : groups_[group.index()].members) start_worker(member);
  if (running(group)) {
    groups_[group.index()].hidden = false;
    group_started(group);
  }
}

void DirectService::kill(GroupId group) {
  for (const WorkerId member : groups_[group.index()].members) {
    members_[member.index()].wanted = false;
    stop_worker(member);
  }
  Group& gone = groups_[group.index()];
  if (!gone.drain) return;
  const GroupCall number = gone.drain->number;
  gone.drain.reset();
  end(group, number, CallStatus::Stopped);
}

bool DirectService::running(GroupId group) const {
  const auto& members = groups_[group.index()].members;
  return std::all_of(members.begin(), members.end(),
                     [this](WorkerId member) { return members_[member.index()].runs; });
}

void DirectService::apply(const FaultChange& change) {
  faults_.apply(change);
  std::set<GroupId> back;
  for (std::size_t w = 0; w < members_.size(); ++w) {
    const Member& member = members_[w];
    const bool hit = std::find(change.workers.begin(), change.workers.end(), member.node) !=
                     change.workers.end();
    if (!hit) continue;
    if (faults_.stopped(member.node)) {
      stop_worker(WorkerId(w));
    } else if (member.wanted && !member.runs) {
      start_worker(WorkerId(w));
      back.insert(member.group);
    }
  }
  std::vector<LinkShare> shares;
  for (const LinkId link : change.links) shares.push_back({link, faults_.share(link)});
  if (!shares.empty()) network_->limit(shares);
  for (const GroupId group : back) {
    if (running(group)) group_started(group);
  }
}

// --- Calls ---------------------------------------------------------------------------------------

GroupCall DirectService::call(GroupId group, const Call& what, Time deadline) {
  const GroupCall number = ++last_call_;
  if (!running(group)) {
    end(group, number, CallStatus::Stopped, "not every member of the group runs");
    return number;
  }
  if (const auto* made = std::get_if<PublishCall>(&what)) {
    publish(group, number, made->version);
  } else if (const auto* unpublished = std::get_if<UnpublishCall>(&what)) {
    drain(group, number, false, unpublished->on_deadline == OnDeadline::Revoke,
          &unpublished->version);
  } else if (const auto* fetched = std::get_if<FetchCall>(&what)) {
    fetch(group, number, *fetched);
  } else if (std::holds_alternative<CancelCall>(what)) {
    const auto& open = groups_[group.index()].fetch;
    if (open) {
      const GroupCall cancelled = open->number;
      const bool moving = open->moving;
      groups_[group.index()].fetch.reset();
      if (moving) fetch_given_up(group);
      end(group, cancelled, CallStatus::Cancelled);
    }
    end(group, number, CallStatus::Ok);
  } else if (const auto* withdrawn = std::get_if<WithdrawCall>(&what)) {
    withdrawn_.insert(withdrawn->version);
    end(group, number, CallStatus::Ok);
  } else if (std::holds_alternative<LeaveCall>(what)) {
    drain(group, number, true, false, nullptr);
  } else {
    end(group, number, CallStatus::Stopped, "this baseline keeps no copies and counts nobody");
  }
  call_at(deadline, [this, group, number] { overdue(group, number); });
  return number;
}

void DirectService::publish(GroupId group, GroupCall number, const Version& version) {
  Group& publisher = groups_[group.index()];
  if (publisher.holds || publisher.fetch || publisher.drain) {
    end(group, number, CallStatus::BufferBusy);
    return;
  }
  publisher.holds = version;
  publisher.hidden = false;
  published_.insert(version);
  ask_for_newer(version);
  end(group, number, {CallStatus::Ok, version, {}, {}, {}, {}, 0, 0, {}});
}

// Who waits for the latest version, of which no copy is left, waits for this one from now on.
void DirectService::ask_for_newer(const Version& version) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::optional<Fetch>& open = groups_[g].fetch;
    if (!open || open->call.version || open->version >= version) continue;
    const bool held = std::any_of(groups_.begin(), groups_.end(),
                                  [&](const Group& other) { return other.holds == open->version; });
    if (held) continue;
    open->version = version;
    if (open->moving) fetch_begins(GroupId(g));
  }
}

void DirectService::drain(GroupId group, GroupCall number, bool leave, bool revoke,
                          const Version* version) {
  Group& holder = groups_[group.index()];
  if (holder.drain || (version != nullptr && holder.holds != *version)) {
    end(group, number, holder.drain ? CallStatus::BufferBusy : CallStatus::UnknownVersion);
    return;
  }
  holder.hidden = true;
  holder.drain = Drain{number, leave, revoke};
}

void DirectService::fetch(GroupId group, GroupCall number, const FetchCall& what) {
  Group& receiver = groups_[group.index()];
  if (receiver.fetch || receiver.drain) {
    end(group, number, CallStatus::BufferBusy);
    return;
  }
  std::optional<Version> version = what.version;
  for (const Version& known : published_) {
    if (!what.version && withdrawn_.count(known) == 0) version = known;
  }
  if (!version || published_.count(*version) == 0) {
    end(group, number, CallStatus::UnknownVersion);
  } else if (withdrawn_.count(*version) != 0) {
    end(group, number, CallStatus::Withdrawn);
  } else if (receiver.holds == version && receiver.runs == version) {
    end(group, number, {CallStatus::NothingNewer, *version, {}, {}, {}, {}, 0, 0, {}});
  } else {
    receiver.fetch = Fetch{number, what, *version, false};
    if (what.destination == Destination::Shadow || !receiver.holds || receiver.holds == version) {
      begin_fetch(group);
    } else {
      receiver.hidden = true;  // until nobody reads the old version: look_at_drains
    }
  }
}

void DirectService::begin_fetch(GroupId group) {
  Group& receiver = groups_[group.index()];
  receiver.fetch->moving = true;
  if (receiver.fetch->call.destination == Destination::InPlace &&
      receiver.holds != receiver.fetch->version) {
    receiver.holds.reset();
    set_runs(group, std::nullopt);
  }
  receiver.hidden = false;
  fetch_begins(group);
}

void DirectService::fetch_done(GroupId group) {
  Group& receiver = groups_[group.index()];
  const Fetch done = *receiver.fetch;
  receiver.fetch.reset();
  receiver.holds = done.version;
  receiver.hidden = false;
  set_runs(group, done.version);
  end(group, done.number, {CallStatus::Ok, done.version, {}, {}, {}, {}, 0, 0, {}});
}

void DirectService::look_at_drains() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupId id(g);
    Group& group = groups_[g];
    const bool clears = group.fetch && !group.fetch->moving;
    if ((!clears && !group.drain) || is_read(id)) continue;
    if (clears) {
      begin_fetch(id);
      continue;
    }
    const Drain drained = *group.drain;
    group.drain.reset();
    group.holds.reset();
    set_runs(id, std::nullopt);
    end(id, drained.number, CallStatus::Ok);
    if (!drained.leave) continue;
    for (const WorkerId member : group.members) {
      members_[member.index()].wanted = false;
      stop_worker(member);
    }
  }
}

void DirectService::overdue(GroupId id, GroupCall number) {
  Group& group = groups_[id.index()];
  if (group.fetch && group.fetch->number == number) {
    const bool moving = group.fetch->moving;
    group.fetch.reset();
    if (moving) fetch_given_up(id);
    end(id, number, CallStatus::DeadlineExceeded);
  } else if (group.drain && group.drain->number == number) {
    if (group.drain->revoke) {
      cut_readers(id);
      return;
    }
    group.drain.reset();
    end(id, number, CallStatus::DrainTimeout);
  }
}

void DirectService::end(GroupId group, GroupCall number, CallStatus status, std::string reason) {
  CallResult result;
  result.status = status;
  result.reason = std::move(reason);
  end(group, number, std::move(result));
}

void DirectService::end(GroupId group, GroupCall number, CallResult result) {
  notify([group, number, result = std::move(result)](ServiceObserver& to) {
    to.call_ended(group, number, result);
  });
}

// --- For derived classes -------------------------------------------------------------------------

bool DirectService::holds(GroupId group, const Version& version) const {
  const Group& holder = groups_[group.index()];
  return holder.holds == version && !holder.hidden && running(group);
}

Demand DirectService::demand_for(const Version& version, const std::vector<GroupId>& holders,
                                 const std::vector<GroupId>& receivers) const {
  const SpaceId at = setup_.groups[holders.front().index()].space;
  const ModelSpace& space = *setup_.spaces[at.index()];
  DemandBuilder builder(space.model(), version, space.block_size(),
                        {space.block_bytes().begin(), space.block_bytes().end()});
  builder.set_verify(options_.verify);
  for (const Member& member : members_) {
    builder.add_worker({member.node, member.group.value(), Bytes(std::uint64_t{1} << 62), true});
  }
  const auto spans = [&](GroupId group, WorkerId worker) {
    return space.spans({setup_.groups[group.index()].layout, members_[worker.index()].rank});
  };
  for (const GroupId group : holders) {
    for (const WorkerId worker : groups_[group.index()].members) {
      for (const BlockSpan& span : spans(group, worker)) builder.holds(worker, span);
    }
  }
  for (const GroupId group : receivers) {
    for (const WorkerId worker : groups_[group.index()].members) {
      for (const BlockSpan& span : spans(group, worker)) builder.wants(worker, span);
    }
  }
  return std::move(builder).build();
}

DirectTransfer& DirectService::add_transfer(Demand demand, Plan plan) {
  TransferWatcher& watcher = *this;
  transfers_.push_back(std::make_unique<DirectTransfer>(
      *network_, router_, std::move(demand), std::move(plan), ++last_transfer_, watcher));
  return *transfers_.back();
}

void DirectService::end_transfer(DirectTransfer& transfer) {
  for (std::size_t w = 0; w < members_.size(); ++w) transfer.stop(WorkerId(w));
  ending_.insert(&transfer);
}

void DirectService::join(DirectTransfer& transfer, WorkerId worker) {
  last_slot_ = static_cast<std::uint16_t>(last_slot_ % 0xfffe + 1);
  transfer.join(worker, network_->transport(worker).add_region({}, transfer.region_bytes()),
                last_slot_);
}

void DirectService::set_runs(GroupId group, const std::optional<Version>& version) {
  Group& changed = groups_[group.index()];
  if (changed.runs == version) return;
  changed.runs = version;
  notify([group, version](ServiceObserver& to) { to.runs_changed(group, version); });
}

void DirectService::tell_lost(WorkerId lost, WorkerId by) {
  notify([lost, by](ServiceObserver& to) { to.fault_detected(lost, by); });
}

void DirectService::delivered(WorkerId receiver, BlockId block, WorkerId source) {
  notify([=](ServiceObserver& to) { to.block_delivered(receiver, block, source); });
}

const SimNetwork::Moved& DirectService::moved() const {
  return network_->moved();
}
std::vector<SimNetwork::Use> DirectService::channel_use(Time makespan) const {
  return network_->channel_use(makespan);
}
FlowDriver DirectService::driver() const {
  return network_->driver();
}

}  // namespace holdfast::sim
