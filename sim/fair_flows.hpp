// Flows over links and the clock, without SimGrid: FairRates shares, this counts bytes and time.
//
// The same model as FlowNetwork's (see there), for one thread without actors. Time is counted in
// whole picoseconds: the end of a flow is rounded to the nearest.
//
// With a step above zero, rates are made fair at most once in that time, from when `exact_rates` of
// them have been computed: a flow that begins in
// between gets what the others leave of its links (mostly just what the block before it had), and
// what an ended one had lies idle until then. So no link carries more than it can, and what differs
// is bounded by the step for each block; where many flows are coupled it saves most of the work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "sim/end_queue.hpp"
#include "sim/fair_rates.hpp"

namespace holdfast::sim {

class FairFlows {
 public:
  using FlowId = std::uint32_t;

  explicit FairFlows(std::span<const Rate> capacities, Time step = {},
                     std::uint64_t exact_rates = 0);

  // As FlowNetwork's functions of the same names.
  [[nodiscard]] Time now() const { return now_; }
  void start(FlowId id, std::span<const std::uint32_t> links, Bytes bytes, std::optional<Rate> cap);
  Bytes cancel(FlowId id);
  void set_capacity(std::uint32_t link, Rate capacity);
  [[nodiscard]] std::size_t live() const { return rates_.live(); }
  void wake_at(Time at) { wake_ = at; }
  // Ends when stopped, or when no flow runs and no time to wake is set.
  void run(const std::function<void(std::span<const FlowId> ended)>& handler);
  void stop() { stopped_ = true; }
  // The step, once it is in use; else zero.
  [[nodiscard]] Time step_used() const { return rates_.work() >= exact_rates_ ? step_ : Time(); }

 private:
  struct Flow {
    std::uint64_t bytes = 0;
    double left = 0;  // bytes at `since`
    double rate = 0;  // bytes a picosecond since then
    Time since;
    bool live = false;
  };

  [[nodiscard]] double left_now(const Flow& flow) const;
  void set_rate(FlowId id, double rate);
  void settle();
  void take_ended();

  FairRates rates_;
  std::vector<Flow> flows_;
  EndQueue ends_;
  std::vector<FlowId> ended_;
  Time step_;
  std::uint64_t exact_rates_;
  Time settle_at_ = Time::never();  // rates are to be made fair then
  Time now_;
  Time wake_;
  bool stopped_ = false;
};

}  // namespace holdfast::sim
