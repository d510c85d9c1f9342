// Carries a plan out in SimGrid, with the engine that drives hardware, and measures it.
//
// No SimGrid header is included here: callers see plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast::sim {

enum class Trace { None, Worker, Block };

// Who shares the links among flows: SimGrid, our own solver of the same model, or SimGrid as long
// as at most kMostCoupledForSimgrid connections are coupled (sim_network.hpp).
enum class Sharing { Auto, SimGrid, MaxMin };

struct SimulationOptions {
  Sharing sharing = Sharing::Auto;
  std::optional<Time> sharing_step;  // of our own solver (fair_flows.hpp); nothing: by the rule
  Trace trace = Trace::Worker;
  std::uint32_t time_bins = 50;            // of links.csv
  std::uint64_t single_bin_above = 1'024;  // workers; then links inside hosts get one bin
  // Above so many workers (single_bin_above) only the links that are used most, bytes over
  // capacity, keep their bins; the others get one, so that what is written does not grow with links
  // x bins.
  std::size_t links_with_bins = 1'500;
  Time read_deadline = seconds(600);  // of one block
  // How errors call a worker; without it by its node. Called in the child process.
  std::function<std::string(WorkerId)> worker_name;
  std::uint32_t jitter = 0;  // of block times, in millionths: see block_jitter.hpp; zero: none
  std::uint64_t seed = 0;    // of what jitter draws
  std::function<void(double fraction)> progress;  // called now and then with what is delivered
};

enum class TraceKind { Start, Progress, BlockDone, End, Fault };

struct TraceEvent {
  Time at;
  TraceKind kind = TraceKind::Start;
  WorkerId worker;
  std::uint32_t percent = 0;  // Progress
  StripeId stripe;            // BlockDone
  BlockId block;              // BlockDone
  WorkerId source;            // BlockDone
  std::string text;           // Fault
};

// Bytes of one link and direction, by time bin of makespan / bins.
struct ChannelUse {
  ChannelId channel;
  Bytes total;
  std::vector<Bytes> bins;  // one or time_bins entries
};

// Payload, aborted reads included. `gpu`: arrived at workers; `nic`: over NIC to fabric channels
// into hosts; `wan`: over WAN links.
struct MovedBytes {
  Bytes gpu;
  Bytes nic;
  Bytes wan;
};

struct SimulationResult {
  Sharing sharing = Sharing::SimGrid;  // who did it
  Time sharing_step;                   // zero: at every change
  Time makespan;                       // last completion
  std::vector<Time> completed;         // by worker; zero for one that misses nothing
  MovedBytes moved;
  std::uint64_t deliveries = 0;        // blocks verified by receivers
  std::vector<ChannelUse> channels;    // those that carried something, ascending
  std::vector<TraceEvent> events;      // in time order
  std::optional<std::string> failure;  // a named error that ended the run
  // Where the plan was made while the run went on: what was read from whom, for the checker.
  std::optional<Plan> plan;
};

// The plan must have passed the checker. One simulation at a time in a process, and SimGrid keeps
// state for the life of a process: `simulate` runs it in a forked child and brings the result back,
// so that it may be called again and again. Same arguments, same result, bit for bit.
// Throws Error(Unsupported) where SimGrid cannot represent the topology.
[[nodiscard]] SimulationResult simulate(const Router& router, const Demand& demand,
                                        const Plan& plan, const SimulationOptions& options = {});

// Without a plan: GreedyPolicy (core/plan/greedy.hpp) gives each receiver its next 64 blocks when
// the last ones are verified; `reader_cap` readers a source, nothing: as many as come. The policy
// is asked by messages that take as long as one to the nearest other host, there and back. Nobody
// waits before the first request, as if everyone had asked before time zero.
// The result's plan has a stripe for each piece. Otherwise like `simulate`.
[[nodiscard]] SimulationResult simulate_greedy(const Router& router, const Demand& demand,
                                               std::optional<std::uint32_t> reader_cap,
                                               const SimulationOptions& options = {});

}  // namespace holdfast::sim
