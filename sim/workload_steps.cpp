// The trainers' side of a workload's loop.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/workload_driver.hpp"

namespace holdfast::sim {

std::vector<GroupId> WorkloadDriver::trainers() const {
  std::vector<GroupId> who;
  for (std::size_t g = 0; g < members_.size(); ++g) {
    if (is_trainer(GroupId(g)) && there(members_[g])) who.emplace_back(g);
  }
  return who;
}

void WorkloadDriver::publish() {
  step_ = Step::Publishing;
  const std::vector<GroupId> who = trainers();
  step_waits_ = who.empty();
  step_calls_ = static_cast<std::uint32_t>(who.size());
  step_done_ = 0;
  for (const GroupId trainer : who) {
    at(trainer).holds = true;
    recorder_.holds(trainer, next_, service_.now());
    recorder_.wait(trainer, StallPart::Trainer, service_.now());
    call(trainer, CallKind::Publish, next_, PublishCall{next_}, run_.publish_deadline);
  }
}

// Whether the same call may end better when it is made again.
static bool is_passing(CallStatus status) {
  return status == CallStatus::DeadlineExceeded || status == CallStatus::DrainTimeout ||
         status == CallStatus::CoordinatorUnreachable || status == CallStatus::Fenced ||
         status == CallStatus::RetentionBlocked || status == CallStatus::BufferBusy;
}

void WorkloadDriver::publish_ended(GroupId group, const Version& version,
                                   const CallResult& result) {
  const bool here = there(at(group));
  if (here && is_passing(result.status)) {
    call(group, CallKind::Publish, version, PublishCall{version}, run_.publish_deadline);
    return;
  }
  recorder_.go_on(group, StallPart::Trainer, service_.now());
  if (here && result.status != CallStatus::Ok) {
    return stop(fmt::format("{}: publish {} ended with {}", recorder_.name(group),
                            to_string(version), to_string(result)));
  }
  step_done_ += here ? 1U : 0U;
  if (--step_calls_ > 0) return;
  if (step_done_ == 0) {
    step_waits_ = true;  // all of them died meanwhile
    return;
  }
  published();
}

void WorkloadDriver::published() {
  latest_ = next_;
  ++next_.number;
  const std::uint32_t steps = run_.generation ? run_.generation->steps : 0;
  step_ = latest_->number > steps ? Step::Done : Step::Waiting;
  if (run_.generation) to_begin_ = run_.generation->batch;
  fraction_ = static_cast<double>(latest_->number) / (static_cast<double>(steps) + 1.5);
  if (progress_) progress_(fraction_);
  keep(*latest_);
  consider_all();
  try_training();
  look_for_end();
}

// The first trainer asks for it; what is too old is released.
void WorkloadDriver::keep(const Version& version) {
  if (!run_.retain) return;
  const std::vector<GroupId> who = trainers();
  if (who.empty()) return;
  call(who.front(), CallKind::Retain, version,
       RetainCall{version, run_.retain->copies, run_.retain->level}, run_.retain_deadline);
  kept_.push_back(version);
  while (kept_.size() > run_.retain->versions) {
    call(who.front(), CallKind::Release, kept_.front(), ReleaseCall{kept_.front()},
         run_.retain_deadline);
    kept_.pop_front();
  }
}

void WorkloadDriver::finished(std::uint32_t rollouts, const Version& version) {
  rollouts_finished_ += rollouts;
  finished_[version.number] += rollouts;
  try_training();
}

void WorkloadDriver::try_training() {
  if (step_ != Step::Waiting || !run_.generation) return;
  const Generation& loop = *run_.generation;
  const std::uint64_t oldest =
      latest_->number > loop.staleness ? latest_->number - loop.staleness : 1;
  while (!finished_.empty() && finished_.begin()->first < oldest) {
    rollouts_stale_ += finished_.begin()->second;
    finished_.erase(finished_.begin());
  }
  std::uint64_t ready = 0;
  for (const auto& [number, count] : finished_) ready += count;
  if (ready < loop.batch) return;
  step_waits_ = trainers().empty();
  if (step_waits_) return;
  std::uint64_t wanted = loop.batch;
  while (wanted > 0) {
    const auto first = finished_.begin();
    const std::uint64_t taken = std::min(wanted, first->second);
    wanted -= taken;
    first->second -= taken;
    if (first->second == 0) finished_.erase(first);
  }
  step_ = Step::Training;
  if (loop.synchronous) {
    for (std::size_t g = 0; g < members_.size(); ++g) look_at_generation(GroupId(g));
  }
  service_.call_at(service_.now() + loop.step_time - loop.write_time, [this] { unpublish(); });
}

void WorkloadDriver::unpublish() {
  if (stopped_) return;
  step_ = Step::Unpublishing;
  step_calls_ = 0;
  std::vector<GroupId> who;
  for (const GroupId trainer : trainers()) {
    if (at(trainer).holds) who.push_back(trainer);
  }
  if (who.empty()) return unpublished();
  step_calls_ = static_cast<std::uint32_t>(who.size());
  for (const GroupId trainer : who) {
    recorder_.wait(trainer, StallPart::Trainer, service_.now());
    call(trainer, CallKind::Unpublish, *latest_, UnpublishCall{*latest_, run_.on_deadline},
         run_.unpublish_deadline);
  }
}

void WorkloadDriver::unpublish_ended(GroupId group, const Version& version,
                                     const CallResult& result) {
  const bool here = there(at(group));
  if (here && is_passing(result.status)) {
    recorder_.failed("unpublish", recorder_.name(group), to_string(result), service_.now());
    call(group, CallKind::Unpublish, version, UnpublishCall{version, run_.on_deadline},
         run_.unpublish_deadline);
    return;
  }
  recorder_.go_on(group, StallPart::Trainer, service_.now());
  // A fenced trainer does not hold it any more: that is what was asked for.
  const bool done = result.status == CallStatus::Ok || result.status == CallStatus::UnknownVersion;
  if (here && !done) {
    return stop(fmt::format("{}: unpublish {} ended with {}", recorder_.name(group),
                            to_string(version), to_string(result)));
  }
  if (here) recorder_.lets_go(group, version, service_.now());
  at(group).holds = false;
  if (--step_calls_ == 0) unpublished();
}

void WorkloadDriver::unpublished() {
  step_ = Step::Overwriting;
  service_.call_at(service_.now() + run_.generation->write_time, [this] {
    if (!stopped_) publish();
  });
}

// A trainer is back.
void WorkloadDriver::train_again() {
  if (!step_waits_) return;
  if (step_ == Step::Publishing) return publish();
  if (step_ == Step::Waiting) try_training();
}

}  // namespace holdfast::sim
