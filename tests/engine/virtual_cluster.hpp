// A whole update over the virtual network: demand, plan, regions with real bytes, engines, loops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/loop.hpp"
#include "core/engine/virtual_driver.hpp"
#include "core/engine/virtual_network.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "tests/engine/guarded_transport.hpp"

namespace holdfast::testing {

struct ClusterOptions {
  VirtualOptions network;
  EngineConfig engine;
  const Router* router = nullptr;
  bool real_bytes = true;
  bool without_plan = false;  // engines start with nothing assigned, no children
};

struct Verified {
  Time at;
  WorkerId worker;
  WorkerId source;
  BlockId block;
  friend bool operator==(const Verified&, const Verified&) = default;
};

template <class What>
struct Said {
  Time at;
  WorkerId worker;
  What what;
};

class Cluster final : public Grants, public LoopObserver, public SourceObserver {
 public:
  Cluster(const Demand& demand, const Plan& plan, const ClusterOptions& options);
  ~Cluster() override;

  // Runs until all workers are complete, one has failed, or nothing happens any more.
  bool run(Time until = Time::never());
  // Empty if each worker now has exactly the holder's bytes where it wanted blocks, kept what it
  // held and has poison elsewhere.
  [[nodiscard]] std::string wrong_bytes() const;
  // True if the worker's memory has the version's bytes of the block.
  [[nodiscard]] bool has_bytes(WorkerId worker, BlockId block) const;

  [[nodiscard]] VirtualNetwork& network() { return *network_; }
  [[nodiscard]] VirtualDriver& driver() { return *driver_; }
  [[nodiscard]] WorkerEngine& engine(WorkerId worker) { return *engines_[worker.index()]; }
  [[nodiscard]] WorkerLoop& loop(WorkerId worker) { return *loops_[worker.index()]; }
  [[nodiscard]] const UpdateTables& tables() const { return *tables_; }
  [[nodiscard]] const std::vector<Verified>& verified() const { return verified_; }
  [[nodiscard]] const std::vector<Time>& completed() const { return completed_; }
  [[nodiscard]] const std::optional<EngineFailure>& failure() const { return failure_; }
  // Stops `run` at a failure (the default) or goes on with the others.
  void set_stop_at_failure(bool stop) { stop_at_failure_ = stop; }

  [[nodiscard]] Access access(WorkerId reader, WorkerId source) override;
  [[nodiscard]] std::string address(WorkerId) override { return {}; }
  void block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block, Time now) override;
  void completed(const WorkerEngine& engine, Time now) override;
  void failed(const EngineFailure& failure, Time now) override;
  void reparented(const WorkerEngine& engine, const Reparented& what, Time now) override;
  void parent_needed(const WorkerEngine& engine, const NeedParent& what, Time now) override;
  void slow_source(const WorkerEngine& engine, const SlowSource& what, Time now) override;
  void bad_digest(const WorkerEngine& engine, const BadDigest& what, Time now) override;

  // What broke the rule that a local range has one read at most and a verified block none; empty if
  // nothing did.
  [[nodiscard]] std::string broken_rules() const;
  [[nodiscard]] const std::vector<Said<Reparented>>& reparentings() const { return reparented_; }
  [[nodiscard]] const std::vector<Said<SlowSource>>& slow_sources() const { return slow_; }
  [[nodiscard]] const std::vector<Said<BadDigest>>& bad_digests() const { return bad_; }
  [[nodiscard]] std::size_t wanted() const { return wanted_; }
  // Asked for each NeedParent, after the step in which it was said.
  void set_mend(std::function<void(WorkerId worker, const NeedParent& what)> mend) {
    mend_ = std::move(mend);
  }

 private:
  Demand demand_;
  PackedPlacement placement_;
  std::vector<std::vector<std::byte>> memory_;  // by worker
  std::vector<std::byte> truth_;
  std::vector<RegionId> regions_;
  std::shared_ptr<const UpdateTables> tables_;
  std::unique_ptr<VirtualNetwork> network_;
  std::vector<std::unique_ptr<GuardedTransport>> guarded_;
  std::vector<std::unique_ptr<WorkerEngine>> engines_;
  std::vector<std::unique_ptr<WorkerLoop>> loops_;
  std::unique_ptr<VirtualDriver> driver_;
  std::vector<Verified> verified_;
  std::vector<Time> completed_;
  std::vector<Said<Reparented>> reparented_;
  std::vector<Said<SlowSource>> slow_;
  std::vector<Said<BadDigest>> bad_;
  std::size_t wanted_ = 0;
  std::function<void(WorkerId worker, const NeedParent& what)> mend_;
  std::optional<EngineFailure> failure_;
  bool stop_at_failure_ = true;
};

// Demand of `blocks` blocks of `bytes`: worker 0 holds all, workers 1 .. receivers want all.
[[nodiscard]] Demand simple_demand(std::size_t receivers, std::uint32_t blocks, Bytes bytes);
// One stripe; parents[i] is the parent of worker i + 1.
[[nodiscard]] Plan tree_plan(const Demand& demand, const std::vector<std::uint32_t>& parents,
                             std::uint32_t window);

}  // namespace holdfast::testing
