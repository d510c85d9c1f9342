// Bandwidth: flows over directed links that share them max-min fairly, and the clock. SimGrid does
// both, or, where it would take too long, our own solver of the same model (fair_flows.hpp); nobody
// else in sim/ includes SimGrid's headers.
//
// Model. A link has a capacity and no latency (true latencies are timers of the layer above:
// SimGrid shares bandwidth in proportion to 1 / latency, which no real fabric does). A flow takes a
// list of links, for as long as its bytes need; a cap bounds its own rate. Flows without a common
// link do not touch each other. Settings, each needed: network/model CM02 without cross traffic
// (acknowledge- ments that take 5 % of the way back), TCP-gamma out of reach (it would cap a flow
// at window / RTT), precisions far below a picosecond's share of anything that is compared with
// closed forms.
//
// How flows are started. `KernelAction` asks SimGrid's network model for an action directly,
// through a declaration of a class whose header is not installed; it fits version 3.32 only and is
// refused elsewhere. `DirectComm` uses the public Comm, at the cost of a scan of all live ones for
// each that ends. Both give the same times bit for bit (tested). `MaxMin` is our own solver: its
// times differ by rounding alone (tested).
//
// One object in the life of a process (SimGrid's engine cannot be made twice). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace holdfast::sim {

// Chosen by the caller, small, unique among the live ones.
using FlowId = std::uint32_t;

enum class FlowDriver { KernelAction, DirectComm, MaxMin };

// What this build's SimGrid can do: KernelAction on 3.32, else DirectComm.
[[nodiscard]] FlowDriver best_flow_driver();

// Makes rates fair at most once in `step` as soon as `exact_rates` of them have been computed: see
// fair_flows.hpp. A step of zero: at every change, always.
struct FlowStep {
  Time step;
  std::uint64_t exact_rates = 0;
};

class FlowNetwork {
 public:
  // Links are numbered in the order of `capacities`. `step` is for MaxMin alone.
  FlowNetwork(std::span<const Rate> capacities, FlowDriver driver, const FlowStep& step = {});
  ~FlowNetwork();
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  // Called when flows ended or the wake time has come, never from inside another call.
  // `ended`: since the last call, in the order in which they ended.
  void set_handler(std::function<void(std::span<const FlowId> ended)> handler);

  // Time of the present instant; never falls.
  [[nodiscard]] Time now() const;

  // Preconditions: links not empty, bytes above zero.
  void start(FlowId id, std::span<const std::uint32_t> links, Bytes bytes, std::optional<Rate> cap);
  // Ends a live flow at once; it is not reported as ended. Returns what it has moved.
  Bytes cancel(FlowId id);
  // From now on, for the flows that run as well. Precondition: above zero.
  void set_capacity(std::uint32_t link, Rate capacity);
  [[nodiscard]] std::size_t live() const;
  // The step, once it is in use; else zero.
  [[nodiscard]] Time step_used() const;

  // The handler is to run at `at` if nothing else makes it run earlier. Replaces the last one;
  // Time::never() takes it back.
  void wake_at(Time at);

  // Runs until `stop`, the handler first at time zero.
  void run();
  void stop();

  // The same with actors: runs until each body has returned. A body that calls `block` stops until
  // somebody calls `unblock` with its number. Not with MaxMin: throws Error(Unsupported).
  void run_actors(std::span<const std::function<void()>> bodies);
  void block();
  void unblock(std::size_t actor);
  void kill(std::size_t actor);  // it never runs again

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
