#include "sim/engine_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "core/engine/loop.hpp"
#include "core/error.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kProgressSteps = 256;
constexpr std::uint32_t kTraceSteps = 10;  // Progress events of a worker, the last one not told

std::vector<NodeId> nodes_of(const Demand& demand) {
  std::vector<NodeId> nodes;
  nodes.reserve(demand.workers.size());
  for (const DemandWorker& worker : demand.workers) nodes.push_back(worker.node);
  return nodes;
}

std::vector<DataPath> paths_of(const Demand& demand, const Plan& plan) {
  std::vector<DataPath> paths;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      paths.push_back({demand.workers[edge.parent.index()].node,
                       demand.workers[edge.child.index()].node, edge.path});
    }
  }
  return paths;
}

// No plan is faster than the worst receiver's bytes through its slowest single edge allow; a guess
// for the width of time bins, nothing depends on it.
Time least_makespan(const Router& router, const Demand& demand, const Plan& plan) {
  Time result;
  for (const Stripe& stripe : plan.stripes) {
    if (stripe.edges.empty()) continue;
    const Edge& edge = stripe.edges.front();
    const auto route = router.route(demand.workers[edge.parent.index()].node,
                                    demand.workers[edge.child.index()].node, edge.path);
    if (!route) continue;
    Bytes bytes;
    for (const BlockId block : blocks_of(demand, stripe))
      bytes += demand.block_bytes[block.index()];
    result = std::max(result, transfer_time(bytes, router.bottleneck(*route)));
  }
  return result;
}

std::optional<FlowDriver> driver_of(Sharing sharing) {
  if (sharing == Sharing::SimGrid) return best_flow_driver();
  if (sharing == Sharing::MaxMin) return FlowDriver::MaxMin;
  return std::nullopt;
}

// SimGrid asserts or loses flows silently where these do not hold.
void check_supported(const Demand& demand, const Plan& plan) {
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      if (edge.child.index() >= demand.workers.size() ||
          edge.parent.index() >= demand.workers.size()) {
        throw Error(ErrorCode::BadPlan,
                    "an edge names a worker that the demand does not have; "
                    "check the plan first");
      }
    }
  }
}

class Run final : public LoopObserver, public Grants {
 public:
  Run(const Router& router, const Demand& demand, const Plan& plan,
      const SimulationOptions& options, const std::function<void(double)>& progress,
      std::optional<FlowDriver> driver, Director* director);

  SimulationResult carry_out();

  void block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block, Time now) override;
  void completed(const WorkerEngine& engine, Time now) override;
  void failed(const EngineFailure& failure, Time now) override;
  Access access(WorkerId reader, WorkerId source) override;
  std::string address(WorkerId /*worker*/) override { return {}; }

 private:
  void make_engines(const Router& router, const Plan& plan);
  void count_wanted();
  void give(const Order& order);
  void report(WorkerId worker, Time now);
  void pump(WorkerId worker);
  void fail(std::string text, WorkerId worker, Time now);
  void keep_bins_of_busiest();
  void trace_progress(std::uint32_t worker, Time now);

  const Topology& topology_;
  const Demand& demand_;
  const SimulationOptions& options_;
  const std::function<void(double)>& progress_;
  Director* director_;
  SimNetwork network_;
  PackedPlacement placement_;
  std::vector<RegionId> regions_;
  std::deque<WorkerEngine> engines_;
  std::deque<WorkerLoop> loops_;
  std::vector<std::uint64_t> wanted_;  // blocks, by worker
  std::vector<std::uint64_t> got_;
  std::uint64_t deliveries_wanted_ = 0;
  std::uint64_t next_progress_ = 0;
  std::size_t receivers_left_ = 0;
  SimulationResult result_;
};

Run::Run(const Router& router, const Demand& demand, const Plan& plan,
         const SimulationOptions& options, const std::function<void(double)>& progress,
         std::optional<FlowDriver> driver, Director* director)
    : topology_(router.topology()),
      demand_(demand),
      options_(options),
      progress_(progress),
      director_(director),
      network_(
          router, nodes_of(demand), paths_of(demand, plan),
          {options.time_bins, demand.workers.size() > options.single_bin_above,
           least_makespan(router, demand, plan)},
          {driver ? driver : driver_of(options.sharing), BlockJitter(options.jitter, options.seed),
           director == nullptr ? PlatformLinks::OfPaths : PlatformLinks::All, demand.block_size,
           options.sharing_step}),
      placement_(demand.block_bytes) {
  result_.sharing = network_.driver() == FlowDriver::MaxMin ? Sharing::MaxMin : Sharing::SimGrid;
  result_.completed.resize(demand.workers.size());
  wanted_.resize(demand.workers.size());
  got_.resize(demand.workers.size());
  if (director_ != nullptr) count_wanted();
  make_engines(router, plan);
  if (director_ == nullptr) return;
  for (const Order& order : director_->start()) give(order);
}

void Run::make_engines(const Router& router, const Plan& plan) {
  // A simulated memory answers every digest with zero, and so do the tables.
  const auto tables = std::make_shared<const UpdateTables>(
      demand_, plan, &router, std::vector<std::uint64_t>(demand_.block_bytes.size()));
  EngineConfig config;
  config.await_parent = false;  // nobody here mends a plan
  config.read_deadline = options_.read_deadline;
  config.no_progress = std::max(config.no_progress, options_.read_deadline * 2);
  for (std::uint32_t i = 0; i < demand_.workers.size(); ++i) {
    const WorkerId worker(i);
    Transport& transport = network_.transport(worker);
    regions_.push_back(transport.add_region({}, placement_.region_bytes(worker)));
    engines_.emplace_back(tables, worker, config);
    if (director_ == nullptr) wanted_[i] = engines_.back().missing();
    deliveries_wanted_ += wanted_[i];
    if (wanted_[i] != 0) {
      ++receivers_left_;
      if (options_.trace != Trace::None) {
        result_.events.push_back({Time(0), TraceKind::Start, worker, 0, {}, {}, {}, {}});
      }
    }
  }
  for (std::uint32_t i = 0; i < demand_.workers.size(); ++i) {
    loops_.emplace_back(LoopSetup{engines_[i], network_.transport(WorkerId(i)),
                                  network_.memory(WorkerId(i)), placement_, regions_[i], *this, 0,
                                  this});
  }
}

Access Run::access(WorkerId reader, WorkerId source) {
  return network_.transport(source).allow(reader, demand_.version, regions_[source.index()]);
}

// Everything that is missing is to be read in the end.
void Run::count_wanted() {
  for (const BlockClass& c : demand_.classes) {
    for (const WorkerId w : c.receivers) wanted_[w.index()] += block_count(c);
  }
}

void Run::give(const Order& order) {
  const Assignment& work = order.assignment;
  engines_[order.reader.index()].assign(work);
  network_.wake_at(order.reader, network_.now());
  if (work.parent_has_all) return;
  engines_[work.parent.index()].add_child(
      {work.stripe, order.reader, work.path, work.have_interval});
  network_.wake_at(work.parent, network_.now());
}

// Word of what is done takes one latency to the director, what it decides another one back.
void Run::report(WorkerId worker, Time now) {
  const Time latency = director_->control_latency();
  network_.call_at(now + latency, [this, worker, latency] {
    std::vector<Order> orders = director_->done(worker);
    if (orders.empty()) return;
    network_.call_at(network_.now() + latency, [this, orders = std::move(orders)] {
      for (const Order& order : orders) give(order);
    });
  });
}

void Run::pump(WorkerId worker) {
  WorkerLoop& loop = loops_[worker.index()];
  if (loop.pump()) network_.wake_at(worker, loop.next_deadline());
}

void Run::trace_progress(std::uint32_t worker, Time now) {
  const std::uint64_t step = got_[worker] * kTraceSteps / wanted_[worker];
  const std::uint64_t before = (got_[worker] - 1) * kTraceSteps / wanted_[worker];
  if (step == before || step == kTraceSteps) return;
  const auto percent = static_cast<std::uint32_t>(step * (100 / kTraceSteps));
  result_.events.push_back({now, TraceKind::Progress, WorkerId(worker), percent, {}, {}, {}, {}});
}

void Run::block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block, Time now) {
  const std::uint32_t worker = engine.worker().value();
  ++result_.deliveries;
  ++got_[worker];
  if (options_.trace == Trace::Block) {
    const Assignment assignment = engine.assignment(at.edge);
    result_.events.push_back({now,
                              TraceKind::BlockDone,
                              engine.worker(),
                              0,
                              assignment.stripe,
                              block,
                              assignment.parent,
                              {}});
  }
  if (options_.trace != Trace::None) trace_progress(worker, now);
  if (progress_ && result_.deliveries >= next_progress_) {
    next_progress_ = result_.deliveries + deliveries_wanted_ / kProgressSteps + 1;
    progress_(static_cast<double>(result_.deliveries) / static_cast<double>(deliveries_wanted_));
  }
}

void Run::completed(const WorkerEngine& engine, Time now) {
  const std::size_t worker = engine.worker().index();
  if (wanted_[worker] == 0) return;
  if (director_ != nullptr) report(engine.worker(), now);
  if (got_[worker] != wanted_[worker]) return;
  result_.completed[worker] = now;
  result_.makespan = now;
  if (options_.trace != Trace::None) {
    result_.events.push_back({now, TraceKind::End, engine.worker(), 100, {}, {}, {}, {}});
  }
  if (--receivers_left_ == 0) network_.stop();
}

void Run::failed(const EngineFailure& failure, Time now) {
  const auto name = [this](WorkerId worker) {
    return options_.worker_name ? options_.worker_name(worker)
                                : topology_.node(demand_.workers[worker.index()].node).name;
  };
  fail(to_string(failure, name), failure.worker, now);
}

// The first failure ends the run.
void Run::fail(std::string text, WorkerId worker, Time now) {
  if (result_.failure) return;
  result_.events.push_back({now, TraceKind::Fault, worker, 0, {}, {}, {}, text});
  result_.failure = std::move(text);
  network_.stop();
}

// By bytes over capacity, ties to the lower channel.
void Run::keep_bins_of_busiest() {
  std::vector<std::pair<double, std::size_t>> busy;
  for (std::size_t c = 0; c < result_.channels.size(); ++c) {
    const ChannelUse& use = result_.channels[c];
    if (use.bins.size() < 2) continue;
    const Rate capacity = topology_.link(use.channel.link()).capacity;
    busy.emplace_back(
        -static_cast<double>(use.total.count()) / static_cast<double>(capacity.bytes_per_second()),
        c);
  }
  std::sort(busy.begin(), busy.end());
  for (std::size_t k = options_.links_with_bins; k < busy.size(); ++k) {
    ChannelUse& use = result_.channels[busy[k].second];
    use.bins = {use.total};
  }
}

SimulationResult Run::carry_out() {
  if (receivers_left_ != 0) {
    network_.run([this](WorkerId worker) { pump(worker); },
                 [this] {
                   fail(fmt::format("stuck: {} receivers are not complete and nothing can happen "
                                    "any more",
                                    receivers_left_),
                        {}, network_.now());
                 });
  }
  result_.sharing_step = network_.step_used();
  result_.moved = {network_.moved().gpu, network_.moved().nic, network_.moved().wan};
  const Time end = std::max(result_.makespan, network_.now());
  for (SimNetwork::Use& use : network_.channel_use(end)) {
    result_.channels.push_back({use.channel, use.total, std::move(use.bins)});
  }
  if (demand_.workers.size() > options_.single_bin_above) keep_bins_of_busiest();
  return std::move(result_);
}

}  // namespace

SimulationResult run_engines(const Router& router, const Demand& demand, const Plan& plan,
                             const SimulationOptions& options,
                             const std::function<void(double)>& progress,
                             std::optional<FlowDriver> driver, Director* director) {
  check_supported(demand, plan);
  Run run(router, demand, plan, options, progress, driver, director);
  return run.carry_out();
}

}  // namespace holdfast::sim
