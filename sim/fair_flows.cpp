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

FairFlows::FairFlows(std::span<const Rate> capacities)
    : rates_(numbers(capacities)), wake_(Time::never()) {}

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
}

Bytes FairFlows::cancel(FlowId id) {
  Flow& flow = flows_[id];
  if (!flow.live) return Bytes(flow.bytes);  // it ended in this instant
  const auto left = static_cast<std::uint64_t>(std::llround(left_now(flow)));
  flow.live = false;
  ends_.erase(id);
  rates_.remove(id);
  return Bytes(flow.bytes - std::min(flow.bytes, left));
}

// New ends for the flows whose rates have changed.
void FairFlows::settle() {
  for (const FlowId id : rates_.settle()) {
    Flow& flow = flows_[id];
    flow.left = left_now(flow);
    flow.since = now_;
    flow.rate = rates_.rate(id);
    const double wait = flow.left / flow.rate;
    const auto most = static_cast<double>((Time::never() - now_).picoseconds());
    if (wait < most) {
      ends_.set(id, now_ + Time(std::llround(wait)));
    } else {
      ends_.erase(id);  // never, as far as time is counted
    }
  }
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
}

void FairFlows::run(const std::function<void(std::span<const FlowId> ended)>& handler) {
  handler({});
  while (!stopped_) {
    settle();
    const Time next = ends_.empty() ? wake_ : std::min(wake_, ends_.first_time());
    if (next == Time::never()) return;
    now_ = std::max(now_, next);
    if (wake_ <= now_) wake_ = Time::never();
    take_ended();
    handler(ended_);
  }
}

}  // namespace holdfast::sim
