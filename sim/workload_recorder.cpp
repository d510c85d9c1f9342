#include "sim/workload_recorder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/plan/plan.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array kParts{StallPart::Rollout, StallPart::Trainer, StallPart::Offload};
constexpr std::size_t kMostNamed = 4;
constexpr std::uint64_t kTenths = 10;

std::size_t index_of(StallPart part) {
  return static_cast<std::size_t>(part);
}

}  // namespace

WorkloadRecorder::WorkloadRecorder(const Topology& topology, const ServiceSetup& setup,
                                   const WorkloadRun& run)
    : topology_(topology),
      setup_(setup),
      run_(run),
      groups_(setup.groups.size()),
      worker_at_(topology.nodes().size(), WorkerId().value()) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const ServiceGroup& group = setup.groups[g];
    const ModelSpace& space = *setup.spaces[group.space.index()];
    groups_[g].first = WorkerId(workers_.size());
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const Bytes shard = space.bytes({group.layout, rank});
      groups_[g].bytes += shard;
      worker_at_[group.members[rank].index()] = static_cast<std::uint32_t>(workers_.size());
      workers_.push_back({GroupId(g), shard, {}, 0});
    }
    out_.groups.push_back({run.groups[g].gpus, {}, {}});
  }
  for (const ServiceMemory& memory : setup.memories) {
    worker_at_[memory.node.index()] = static_cast<std::uint32_t>(workers_.size());
    workers_.push_back({GroupId(), {}, {}, 0});
    out_.memory_from.push_back(Time::never());
  }
}

const std::string& WorkloadRecorder::name(GroupId group) const {
  return setup_.groups[group.index()].name;
}

// --- Presence and waits --------------------------------------------------------------------------

void WorkloadRecorder::present(GroupId group, Time now) {
  std::optional<Time>& since = groups_[group.index()].since;
  if (!since) since = now;
}

void WorkloadRecorder::gone(GroupId id, Time now) {
  Group& group = groups_[id.index()];
  for (const StallPart part : kParts) close_wait(id, part, now);
  close_fetch(id, now, false);
  for (const std::size_t held : group.held) out_.held[held].to = now;
  group.held.clear();
  if (!group.since) return;
  out_.groups[id.index()].present.push_back({*group.since, now});
  group.since.reset();
}

void WorkloadRecorder::wait(GroupId group, StallPart part, Time now) {
  std::optional<Time>& since = groups_[group.index()].waits[index_of(part)];
  if (!since) since = now;
}

void WorkloadRecorder::go_on(GroupId group, StallPart part, Time now) {
  close_wait(group, part, now);
}

void WorkloadRecorder::close_wait(GroupId group, StallPart part, Time now) {
  std::optional<Time>& since = groups_[group.index()].waits[index_of(part)];
  if (!since) return;
  if (now > *since) out_.groups[group.index()].waits.push_back({part, *since, now});
  since.reset();
}

// --- Versions ------------------------------------------------------------------------------------

void WorkloadRecorder::holds(GroupId group, const Version& version, Time now) {
  groups_[group.index()].held.push_back(out_.held.size());
  out_.held.push_back({group, version, now, Time::never()});
}

void WorkloadRecorder::lets_go(GroupId group, const Version& version, Time now) {
  std::vector<std::size_t>& held = groups_[group.index()].held;
  const auto gone = [&](std::size_t record) {
    if (out_.held[record].version != version) return false;
    out_.held[record].to = now;
    return true;
  };
  held.erase(std::remove_if(held.begin(), held.end(), gone), held.end());
}

void WorkloadRecorder::fetch_begins(GroupId id, const Version& latest, Destination destination,
                                    Time now) {
  Group& group = groups_[id.index()];
  const WorkloadGroup& plays = run_.groups[id.index()];
  FetchRecord fetch;
  fetch.version = latest;
  fetch.group = id.value();
  fetch.gpus = plays.gpus;
  fetch.workers = static_cast<std::uint32_t>(setup_.groups[id.index()].members.size());
  fetch.in_place = destination == Destination::InPlace;
  fetch.generates = plays.plays == Plays::Rollout;
  fetch.requested = now;
  group.fetch = fetch;
  // What it has verified of the same version stays.
  std::vector<std::size_t> kept;
  bool has_some = false;
  for (const std::size_t held : group.held) {
    const bool same = out_.held[held].version == latest;
    has_some = has_some || same;
    if (same || !fetch.in_place) {
      kept.push_back(held);
    } else {
      out_.held[held].to = now;
    }
  }
  group.held = std::move(kept);
  if (!has_some) holds(id, latest, now);
  for (std::uint32_t rank = 0; rank < fetch.workers; ++rank) {
    Worker& worker = workers_[group.first.index() + rank];
    worker.arrived = Bytes();
    worker.tenths = 0;
  }
  member_events(id, WorkloadEventKind::Start, now, {});
}

void WorkloadRecorder::fetch_ends(GroupId id, const CallResult& result, Time now) {
  Group& group = groups_[id.index()];
  if (!group.fetch) return;
  if (result.status == CallStatus::NothingNewer) {
    group.fetch.reset();
    member_events(id, WorkloadEventKind::End, now, {});
    return;
  }
  const bool completed = result.status == CallStatus::Ok;
  if (completed && result.version != group.fetch->version) {
    // A newer one had come by then.
    lets_go(id, group.fetch->version, now);
    holds(id, result.version, group.fetch->requested);
    group.fetch->version = result.version;
  }
  if (completed) {
    std::vector<std::size_t> kept;
    for (const std::size_t held : group.held) {
      if (out_.held[held].version == result.version) {
        kept.push_back(held);
      } else {
        out_.held[held].to = now;  // a shadow's old version may be overwritten from now on
      }
    }
    group.held = std::move(kept);
  }
  close_fetch(id, now, completed);
}

void WorkloadRecorder::close_fetch(GroupId id, Time now, bool completed) {
  Group& group = groups_[id.index()];
  if (!group.fetch) return;
  group.fetch->ended = now;
  group.fetch->completed = completed;
  out_.fetches.push_back(*group.fetch);
  group.fetch.reset();
  member_events(id, WorkloadEventKind::End, now, {});
}

// --- What is heard -------------------------------------------------------------------------------

void WorkloadRecorder::event(WorkloadEventKind kind, WorkerId worker, Time now, std::string text) {
  if (run_.trace == Trace::None && kind != WorkloadEventKind::Fault) return;
  WorkloadEvent event;
  event.at = now;
  event.kind = kind;
  event.worker = worker;
  event.text = std::move(text);
  out_.events.push_back(std::move(event));
}

void WorkloadRecorder::member_events(GroupId id, WorkloadEventKind kind, Time now,
                                     const std::string& text) {
  const Group& group = groups_[id.index()];
  for (std::uint32_t rank = 0; rank < setup_.groups[id.index()].members.size(); ++rank) {
    event(kind, WorkerId(group.first.value() + rank), now, text);
  }
}

void WorkloadRecorder::call_ended(GroupId group, const std::string& call, const CallResult& result,
                                  Time now) {
  member_events(group, WorkloadEventKind::Call, now,
                fmt::format("{}: {}", call, to_string(result)));
}

void WorkloadRecorder::runs(GroupId group, const std::optional<Version>& version, Time now) {
  member_events(group, WorkloadEventKind::Runs, now, version ? to_string(*version) : "nothing");
}

GroupId WorkloadRecorder::delivered(WorkerId receiver, BlockId block, WorkerId source, Time now) {
  ++out_.deliveries;
  Worker& worker = workers_[receiver.index()];
  if (run_.trace == Trace::Block) {
    event(WorkloadEventKind::BlockDone, receiver, now);
    out_.events.back().block = block;
    out_.events.back().source = source;
  }
  if (!worker.group.valid()) {
    Time& from = out_.memory_from[out_.memory_from.size() - (workers_.size() - receiver.index())];
    from = std::min(from, now);
    return {};
  }
  const ServiceGroup& group = setup_.groups[worker.group.index()];
  worker.arrived += setup_.spaces[group.space.index()]->block_bytes()[block.index()];
  const std::uint64_t tenths =
      worker.shard == Bytes() ? kTenths : worker.arrived.count() * kTenths / worker.shard.count();
  while (worker.tenths < std::min(tenths, kTenths)) {
    ++worker.tenths;
    if (run_.trace == Trace::None) continue;
    event(WorkloadEventKind::Progress, receiver, now);
    out_.events.back().percent = worker.tenths * 10;
  }
  return worker.group;
}

void WorkloadRecorder::planned(const Plan* plan, const std::string& problem, Time now) {
  if (plan == nullptr) {
    failed("plan", "coordinator", "no plan: " + problem, now);
    return;
  }
  out_.plans.push_back(hash_of(*plan));
  out_.stripes += plan->stripes.size();
  for (const Stripe& stripe : plan->stripes) out_.edges += stripe.edges.size();
}

void WorkloadRecorder::detected(WorkerId lost, Time now) {
  const GroupId group = workers_[lost.index()].group;
  const NodeId node = group.valid()
                          ? setup_.groups[group.index()]
                                .members[lost.value() - groups_[group.index()].first.value()]
                          : NodeId();
  const auto see = [&](Fault& fault) {
    fault.detected = true;
    out_.failures[fault.failure].detected_after = now - fault.begin;
  };
  for (auto fault = faults_.rbegin(); fault != faults_.rend(); ++fault) {
    const bool hit =
        std::find(fault->workers.begin(), fault->workers.end(), node) != fault->workers.end();
    if (!hit) continue;
    if (!fault->detected) see(*fault);
    return;
  }
  const auto taken = taken_.find(group);
  if (taken != taken_.end()) {
    WorkloadFailure& failure = out_.failures[taken->second];
    if (!failure.detected_after) failure.detected_after = now - failure.at;
    return;
  }
  // Alive, and out of reach: the latest fault of links that may be why.
  for (auto fault = faults_.rbegin(); fault != faults_.rend(); ++fault) {
    if (!fault->links || fault->detected) continue;
    see(*fault);
    return;
  }
}

// --- Failures ------------------------------------------------------------------------------------

std::string WorkloadRecorder::target_of(const FaultChange& change) const {
  const FaultRule& rule = run_.rules[change.rule];
  if (rule.targets.empty()) return "coordinator";
  const std::uint32_t target = rule.targets[change.target];
  switch (rule.kind) {
    case FaultKind::Worker:
    case FaultKind::Nic:
      return topology_.node(NodeId(target)).name;
    case FaultKind::Link:
      return topology_.link(LinkId(target)).name;
    default:
      return topology_.domain(DomainId(target)).name;
  }
}

void WorkloadRecorder::fault(const FaultChange& change, const std::vector<GroupId>& broken,
                             Time now) {
  const FaultRule& rule = run_.rules[change.rule];
  const std::string who = target_of(change);
  if (change.step == FaultStep::End) {
    for (Fault& fault : faults_) {
      if (fault.number == change.fault) fault.end = now;
    }
    event(WorkloadEventKind::Fault, WorkerId(), now,
          fmt::format("{} {}: {} is over", to_string(rule.kind), who, to_string(rule.action)));
    return;
  }
  Fault fault;
  fault.failure = out_.failures.size();
  fault.number = change.fault;
  fault.workers = change.workers;
  fault.links = !change.links.empty();
  fault.broken = broken;
  fault.begin = now;
  for (const GroupId group : broken) {
    fault.fetching += groups_[group.index()].fetch ? 1U : 0U;
  }
  faults_.push_back(std::move(fault));
  out_.failures.push_back({now, to_string(rule.kind), who, std::nullopt, {}});
  event(WorkloadEventKind::Fault, WorkerId(), now,
        fmt::format("{} {}: {}", to_string(rule.kind), who, to_string(rule.action)));
}

void WorkloadRecorder::taken(GroupId group, const std::string& consequence, Time now) {
  taken_[group] = out_.failures.size();
  failed("spot", name(group), consequence, now);
}

void WorkloadRecorder::failed(const std::string& kind, const std::string& who,
                              const std::string& consequence, Time now) {
  event(WorkloadEventKind::Fault, WorkerId(), now,
        fmt::format("{} {}: {}", kind, who, consequence));
  out_.failures.push_back({now, kind, who, std::nullopt, consequence});
}

void WorkloadRecorder::fetch_failed(GroupId group, const CallResult& result, Time now) {
  const bool lost = result.status == CallStatus::VersionLost;
  failed(lost ? "version" : "fetch", name(group), to_string(result), now);
}

std::string WorkloadRecorder::names_of(const std::vector<GroupId>& groups) const {
  std::string names;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostNamed); ++i) {
    names += (i == 0 ? "" : ", ") + name(groups[i]);
  }
  if (groups.size() > kMostNamed) {
    names += fmt::format(" and {} more", groups.size() - kMostNamed);
  }
  return names;
}

std::string WorkloadRecorder::consequence_of(const Fault& fault) const {
  std::size_t others = 0;
  for (const FetchRecord& fetch : out_.fetches) {
    const bool own = std::find(fault.broken.begin(), fault.broken.end(), GroupId(fetch.group)) !=
                     fault.broken.end();
    const bool during = fetch.ended >= fault.begin && fetch.requested <= fault.end;
    others += !own && during && !fetch.completed ? 1 : 0;
  }
  std::string text;
  if (!fault.broken.empty()) {
    text = fmt::format("stopped {}", names_of(fault.broken));
    if (fault.fetching > 0) text += fmt::format(", {} of them fetching", fault.fetching);
    text += "; ";
  }
  text += others == 0 ? "no other fetch failed" : fmt::format("{} other fetches failed", others);
  return text;
}

WorkloadOutcome WorkloadRecorder::take(Time now) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    // What is held then stays so: nobody lets go because the run ends.
    groups_[g].held.clear();
    gone(GroupId(g), now);
  }
  for (const Fault& fault : faults_) {
    out_.failures[fault.failure].consequence = consequence_of(fault);
  }
  out_.length = now;
  return std::move(out_);
}

}  // namespace holdfast::sim
