#include "sim/workload_driver.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace holdfast::sim {
namespace {

constexpr std::uint32_t kMostAttempts = 3;
constexpr Time kRetry = seconds(1);
constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

// Words for what ended, as in "fetch 1.2".
std::string words(const char* call, const Version& version) {
  return fmt::format("{} {}", call, to_string(version));
}

}  // namespace

WorkloadDriver::WorkloadDriver(const Topology& topology, const ServiceSetup& setup,
                               const WorkloadRun& run, WeightService& service,
                               std::function<void(double)> progress)
    : topology_(topology),
      setup_(setup),
      run_(run),
      service_(service),
      progress_(std::move(progress)),
      recorder_(topology, setup, run),
      members_(setup.groups.size()),
      group_at_(topology.nodes().size(), kNoGroup),
      struck_(run.faults.triggered.size(), 0) {
  for (std::size_t g = 0; g < members_.size(); ++g) {
    for (const NodeId node : setup.groups[g].members) {
      group_at_[node.index()] = static_cast<std::uint32_t>(g);
    }
    if (run.generation && run.groups[g].plays == Plays::Rollout) {
      // Streams of their own: replicas do not change each other's lengths.
      members_[g].slots.emplace(run.generation->slots, run.generation->lengths,
                                run.generation->token_time, Random(run.seed, g + 1));
    }
  }
}

WorkloadOutcome WorkloadDriver::run() {
  service_.run(*this, [this] { begin(); });
  if (!stopped_) failure_ = "nothing could happen any more before the run was over";
  const Time now = service_.now();
  WorkloadOutcome out = recorder_.take(now);
  out.versions = latest_ ? static_cast<std::uint32_t>(latest_->number) : 0;
  out.finished = rollouts_finished_;
  out.stale = rollouts_stale_;
  out.lost = rollouts_lost_;
  out.failure = failure_;
  out.driver = service_.driver();
  const SimNetwork::Moved& moved = service_.moved();
  out.moved = {moved.gpu, moved.nic, moved.wan};
  for (SimNetwork::Use& use : service_.channel_use(now)) {
    out.channels.push_back({use.channel, use.total, std::move(use.bins)});
  }
  return out;
}

void WorkloadDriver::begin() {
  service_.call_at(run_.horizon, [this] {
    if (!stopped_) stop(fmt::format("the run was not over after {}", rounded(run_.horizon)));
  });
  schedule(run_.faults.timed, Time());
  for (std::size_t g = 0; g < members_.size(); ++g) {
    if (run_.groups[g].from_start) start(GroupId(g));
  }
  for (const MemberEvent& event : run_.members) {
    service_.call_at(event.at, [this, &event] {
      if (!stopped_) member_event(event);
    });
  }
  publish();
}

bool WorkloadDriver::is_trainer(GroupId group) const {
  return plays(group).plays == Plays::Trainer;
}

bool WorkloadDriver::has_latest(const Member& member) const {
  return latest_ && member.runs && *member.runs >= *latest_;
}

bool WorkloadDriver::gave_up(const Member& member) const {
  return latest_ && member.tried == *latest_ && member.attempts >= kMostAttempts;
}

GroupCall WorkloadDriver::call(GroupId group, CallKind kind, const Version& version,
                               const Call& what, Time deadline) {
  const GroupCall number = service_.call(group, what, service_.now() + deadline);
  calls_.emplace(number, OpenCall{kind, version});
  return number;
}

// --- What is heard -------------------------------------------------------------------------------

void WorkloadDriver::call_ended(GroupId group, GroupCall number, const CallResult& result) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || stopped_) return;
  const OpenCall open = found->second;
  calls_.erase(found);
  switch (open.kind) {
    case CallKind::Publish:
      recorder_.call_ended(group, words("publish", open.version), result, service_.now());
      return publish_ended(group, open.version, result);
    case CallKind::Unpublish:
      recorder_.call_ended(group, words("unpublish", open.version), result, service_.now());
      return unpublish_ended(group, open.version, result);
    case CallKind::Fetch:
      recorder_.call_ended(group, words("fetch", open.version), result, service_.now());
      if (at(group).fetch == number) fetch_ended(group, result);
      return;
    case CallKind::Leave:
      recorder_.call_ended(group, "leave", result, service_.now());
      return leave_ended(group, result);
    case CallKind::Retain:
      recorder_.call_ended(group, words("retain", open.version), result, service_.now());
      if (result.status != CallStatus::Ok && result.status != CallStatus::Stopped) {
        recorder_.failed("retention", to_string(open.version), to_string(result), service_.now());
      }
      return;
    case CallKind::Release:
      recorder_.call_ended(group, words("release", open.version), result, service_.now());
      return;
  }
}

void WorkloadDriver::runs_changed(GroupId group, const std::optional<Version>& version) {
  if (stopped_) return;
  recorder_.runs(group, version, service_.now());
  Member& member = at(group);
  if (is_trainer(group)) return;
  member.runs = version;
  look_at_generation(group);
  // Lost without a fault of its own, as after a partition: it asks again.
  if (version || !there(member) || member.fetch || member.leaving) return;
  consider(group);
}

void WorkloadDriver::block_delivered(WorkerId receiver, BlockId block, WorkerId source) {
  if (stopped_) return;
  const GroupId group = recorder_.delivered(receiver, block, source, service_.now());
  constexpr std::uint64_t kSignOfLife = 1U << 16U;
  if (progress_ && ++deliveries_ % kSignOfLife == 0) progress_(fraction_);
  if (!group.valid()) return;
  const Member& member = at(group);
  if (!member.asked) return;
  const auto update = updates_.find(*member.asked);
  if (update == updates_.end()) return;
  const auto& space = *setup_.spaces[setup_.groups[group.index()].space.index()];
  update->second.arrived += space.block_bytes()[block.index()].count();
  strike(update->second.number);
}

void WorkloadDriver::planned(const Demand&, const Plan* plan, const std::string& problem) {
  if (!stopped_) recorder_.planned(plan, problem, service_.now());
}

void WorkloadDriver::fault_detected(WorkerId lost, WorkerId) {
  if (!stopped_) recorder_.detected(lost, service_.now());
}

// --- Receivers -----------------------------------------------------------------------------------

void WorkloadDriver::consider_all() {
  for (std::size_t g = 0; g < members_.size(); ++g) {
    if (!is_trainer(GroupId(g))) consider(GroupId(g));
  }
}

// Staging near it has the latest version, or will not get it.
bool WorkloadDriver::staged(GroupId group) {
  const auto& stages = plays(group).stages;
  return std::all_of(stages.begin(), stages.end(), [this](GroupId stage) {
    const Member& member = at(stage);
    return !there(member) || has_latest(member) || gave_up(member);
  });
}

// What a receiver does when something has changed for it.
void WorkloadDriver::consider(GroupId group) {
  Member& member = at(group);
  if (stopped_ || !latest_ || !there(member) || member.leaving || member.fetch) return;
  if (has_latest(member) || gave_up(member)) return;
  if (!member.runs) recorder_.wait(group, StallPart::Rollout, service_.now());
  if (!staged(group)) return;
  const bool finishes = run_.generation && !run_.generation->partial && member.slots &&
                        member.slots->generating() && member.slots->open() > 0;
  if (finishes) {
    member.draining = true;
    return;
  }
  fetch(group);
}

void WorkloadDriver::fetch(GroupId group) {
  Member& member = at(group);
  const Time now = service_.now();
  const Destination destination = plays(group).destination;
  if (member.tried != *latest_) {
    member.tried = *latest_;
    member.attempts = 0;
  }
  ++member.attempts;
  member.asked = *latest_;
  if (destination == Destination::InPlace || !member.runs) {
    recorder_.wait(group, StallPart::Rollout, now);
  }
  recorder_.fetch_begins(group, *latest_, destination, now);
  Update& update = updates_[*latest_];
  if (update.waiting == 0) update = {++update_numbers_, 0, 0, 0};
  ++update.waiting;
  update.wanted += recorder_.bytes(group).count();
  member.fetch = call(group, CallKind::Fetch, *latest_,
                      FetchCall{std::nullopt, destination, run_.on_newer}, run_.fetch_deadline);
  look_at_generation(group);
  strike(update.number);
}

void WorkloadDriver::close_update(const Member& member) {
  const auto update = updates_.find(*member.asked);
  if (update != updates_.end() && update->second.waiting > 0) --update->second.waiting;
}

void WorkloadDriver::fetch_ended(GroupId group, const CallResult& result) {
  Member& member = at(group);
  member.fetch.reset();
  close_update(member);
  member.asked.reset();
  const Time now = service_.now();
  recorder_.fetch_ends(group, result, now);
  if (!there(member) || member.leaving) return look_for_end();
  if (result.status == CallStatus::Ok || result.status == CallStatus::NothingNewer) {
    if (result.status == CallStatus::Ok) member.runs = result.version;
    member.attempts = 0;
    recorder_.go_on(group, StallPart::Rollout, now);
    look_at_generation(group);
    consider(group);
  } else {
    recorder_.fetch_failed(group, result, now);
    look_at_generation(group);
    service_.call_at(now + kRetry, [this, group] { consider(group); });
  }
  if (plays(group).plays == Plays::Staging) consider_all();
  look_for_end();
}

// --- Generation ----------------------------------------------------------------------------------

// Rule 1.
void WorkloadDriver::look_at_generation(GroupId group) {
  Member& member = at(group);
  if (!member.slots) return;
  const bool overwritten = member.fetch && plays(group).destination == Destination::InPlace;
  const bool in_turn =
      !run_.generation->synchronous || (step_ == Step::Waiting && has_latest(member));
  const bool generates =
      there(member) && !member.leaving && member.runs && !overwritten && in_turn && !stopped_;
  const Time now = service_.now();
  if (generates == member.slots->generating()) return;
  if (!generates) {
    member.slots->pause(now);
    ++member.timer;
    return;
  }
  member.slots->resume(now);
  member.draining = false;
  refill(group);
}

void WorkloadDriver::refill(GroupId group) {
  Member& member = at(group);
  RolloutSlots& slots = *member.slots;
  const Generation& loop = *run_.generation;
  if (!member.draining && slots.free() > 0) {
    if (!loop.synchronous || loop.partial) {
      slots.begin(slots.free());
    } else {
      // An even part at first; who is done early takes what is left.
      std::uint64_t replicas = 0;
      for (const Member& other : members_) replicas += other.slots && there(other) ? 1 : 0;
      const std::uint64_t part = (loop.batch + replicas - 1) / std::max<std::uint64_t>(replicas, 1);
      const std::uint64_t open = slots.open();
      const std::uint64_t room = std::min(part, open + slots.free()) - std::min(part, open);
      const auto begun = slots.begin(static_cast<std::uint32_t>(std::min(to_begin_, room)));
      to_begin_ -= begun;
    }
  }
  const Time next = slots.next();
  const std::uint64_t timer = ++member.timer;
  if (next == Time::never()) return;
  service_.call_at(next, [this, group, timer] {
    if (!stopped_ && at(group).timer == timer) tick(group);
  });
}

void WorkloadDriver::tick(GroupId group) {
  Member& member = at(group);
  const std::uint32_t ended = member.slots->finish(service_.now());
  const Version version = *member.runs;
  if (member.draining && member.slots->open() == 0) {
    member.draining = false;
    finished(ended, version);
    return consider(group);
  }
  refill(group);
  finished(ended, version);
}

void WorkloadDriver::lose_rollouts(GroupId group) {
  Member& member = at(group);
  if (!member.slots) return;
  member.slots->pause(service_.now());
  ++member.timer;
  member.draining = false;
  const std::uint32_t lost = member.slots->drop();
  rollouts_lost_ += lost;
  const bool fixed = run_.generation->synchronous && !run_.generation->partial;
  if (!fixed || lost == 0) return;
  // Somebody else generates them, or the batch would never be full.
  to_begin_ += lost;
  for (std::size_t g = 0; g < members_.size(); ++g) {
    if (members_[g].slots && members_[g].slots->generating()) refill(GroupId(g));
  }
}

// --- The end -------------------------------------------------------------------------------------

void WorkloadDriver::look_for_end() {
  if (stopped_ || step_ != Step::Done) return;
  for (std::size_t g = 0; g < members_.size(); ++g) {
    const Member& member = members_[g];
    if (is_trainer(GroupId(g)) || !there(member) || member.leaving) continue;
    if (!has_latest(member) && !gave_up(member)) return;
    if (member.fetch) return;
  }
  // What else there is to hear of this moment is heard before.
  service_.call_at(service_.now(), [this] { stop(std::nullopt); });
}

void WorkloadDriver::stop(std::optional<std::string> failure) {
  if (stopped_) return;
  stopped_ = true;
  failure_ = std::move(failure);
  if (progress_) progress_(1);
  service_.stop();
}

}  // namespace holdfast::sim
