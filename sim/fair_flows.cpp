#include "sim/fair_flows.hpp"

#include <algorithm>
#include <cmath>

namespace holdfast::sim {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

double per_picosecond(Rate rate) {
  return static_cast<double>(rate.bytes_per_second()) / kPicosecondsPerSecond;
}

std::vector<double> numbers(std::span<const Rate> rates) {
  std::vector<double> result;
  result.reserve(rates.size());
  for (const Rate rate : rates) result.push_back(per_picosecond(rate));
  return result;
}

}  // namespace

FairFlows::FairFlows(std::span<const Rate> capacities, Time step, std::uint64_t exact_rates)
    : rates_(numbers(capacities)), step_(step), exact_rates_(exact_rates), wake_(Time::never()) {}

double FairFlows::left_now(const Flow& flow) const {
  const auto passed = static_cast<double>((now_ - flow.since).picoseconds());
  return std::max(flow.left - flow.rate * passed, 0.0);
}

void FairFlows::start(FlowId id, std::span<const std::uint32_t> links, Bytes bytes,
                      std::optional<Rate> cap) {
  if (flows_.size() <= id) flows_.resize(std::max<std::size_t>(id + 1, 2 * flows_.size()));
  Flow& flow = flows_[id];
  flow.bytes = bytes.count();
  flow.left = static_cast<double>(flow.bytes);
  flow.rate = 0;
  flow.since = now_;
  flow.live = true;
  rates_.add(id, links, cap ? per_picosecond(*cap) : FairRates::kNoCap);
  if (step_used() > Time(0)) set_rate(id, rates_.lend(id));
  settle_at_ = std::min(settle_at_, now_ + step_used());
}

Bytes FairFlows::cancel(FlowId id) {
  Flow& flow = flows_[id];
  if (!flow.live) return Bytes(flow.bytes);  // it ended in this instant
  const auto left = static_cast<std::uint64_t>(std::llround(left_now(flow)));
  flow.live = false;
  ends_.erase(id);
  rates_.remove(id);
  settle_at_ = std::min(settle_at_, now_ + step_used());
  return Bytes(flow.bytes - std::min(flow.bytes, left));
}

// In effect at once, whatever the step: no link carries more than it can.
void FairFlows::set_capacity(std::uint32_t link, Rate capacity) {
  rates_.set_capacity(link, per_picosecond(capacity));
  settle_at_ = now_;
}

// From now on; its end moves accordingly.
void FairFlows::set_rate(FlowId id, double rate) {
  Flow& flow = flows_[id];
  flow.left = left_now(flow);
  flow.since = now_;
  flow.rate = rate;
  const double wait = flow.left / rate;
  if (wait < static_cast<double>((Time::never() - now_).picoseconds())) {
    ends_.set(id, now_ + Time(std::llround(wait)));
  } else {
    ends_.erase(id);  // never, as far as time is counted
  }
}

void FairFlows::settle() {
  settle_at_ = Time::never();
  for (const FlowId id : rates_.settle()) set_rate(id, rates_.rate(id));
}

void FairFlows::take_ended() {
  ended_.clear();
  while (!ends_.empty() && ends_.first_time() <= now_) {
    const FlowId id = ends_.first();
    ends_.erase(id);
    flows_[id].live = false;
    rates_.remove(id);
    ended_.push_back(id);
  }
  if (!ended_.empty()) settle_at_ = std::min(settle_at_, now_ + step_used());
}

void FairFlows::run(const std::function<void(std::span<const FlowId> ended)>& handler) {
  handler({});
  while (!stopped_) {
    if (settle_at_ <= now_) settle();
    const Time end = ends_.empty() ? Time::never() : ends_.first_time();
    const Time next = std::min({wake_, end, settle_at_});
    if (next == Time::never()) return;
    now_ = std::max(now_, next);
    if (next == settle_at_ && next < std::min(wake_, end)) continue;
    if (wake_ <= now_) wake_ = Time::never();
    take_ended();
    handler(ended_);
  }
}

}  // namespace holdfast::sim
