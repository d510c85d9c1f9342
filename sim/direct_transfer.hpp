// One version on its way among workers without a catalog: their engines, and who reads what from
// whom as somebody else decides. For baselines; Holdfast's own transfers are AgentLoop's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/engine/placement.hpp"
#include "core/engine/transfer_loop.hpp"
#include "core/engine/update_tables.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "sim/sim_network.hpp"

namespace holdfast::sim {

class DirectTransfer;

// Hears of it from inside `pump` and `take`; must not call back into the transfer.
class TransferWatcher {
 public:
  TransferWatcher() = default;
  TransferWatcher(const TransferWatcher&) = delete;
  TransferWatcher& operator=(const TransferWatcher&) = delete;
  virtual ~TransferWatcher() = default;
  virtual void delivered(WorkerId receiver, BlockId block, WorkerId source) = 0;
  // Everything that the reader was assigned is verified.
  virtual void assigned_done(DirectTransfer& transfer, WorkerId reader) = 0;
  // The reader needs another source for the rest of a stripe.
  virtual void source_lost(DirectTransfer& transfer, WorkerId reader, StripeId stripe,
                           std::uint32_t first_missing, WorkerId lost) = 0;
};

class DirectTransfer final : private Grants {
 public:
  // The network, router and watcher must outlive it. `number`: no other transfer's. The plan's
  // edges are known to the engines that join; it may have none.
  DirectTransfer(SimNetwork& network, const Router& router, Demand demand, Plan plan,
                 std::uint32_t number, TransferWatcher& watcher);
  ~DirectTransfer() override;

  [[nodiscard]] const Demand& demand() const { return demand_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const UpdateTables& tables() const { return *tables_; }
  [[nodiscard]] Bytes region_bytes() const { return placement_.region_bytes(WorkerId(0U)); }

  // The worker takes part from now on, with its blocks in `region`. `slot`: of its TransferLoop,
  // its own for each time.
  void join(WorkerId worker, RegionId region, std::uint16_t slot);
  [[nodiscard]] bool joined(WorkerId worker) const;
  // Reads nothing any more; it is out once `idle`. What it has stays readable until then.
  void stop(WorkerId worker);
  // Its process is gone: to be called after it was killed in the network.
  void forget(WorkerId worker);
  // Precondition: both have joined.
  void assign(WorkerId reader, const Assignment& work);
  // The first block of the stripe that the worker lacks. Precondition: it has joined.
  [[nodiscard]] std::uint32_t first_missing(WorkerId worker, StripeId stripe) const;
  [[nodiscard]] bool empty() const { return parts_.empty(); }

  // Those of one worker. `pump` also lets out who has stopped.
  void pump(WorkerId worker);
  bool take(WorkerId worker, const TransportEvent& event);
  bool take(WorkerId worker, const JobDone& job);
  [[nodiscard]] Time next_deadline(WorkerId worker) const;

 private:
  class Part;
  Access access(WorkerId reader, WorkerId source) override;
  std::string address(WorkerId worker) override;

  SimNetwork& network_;
  Demand demand_;
  Plan plan_;
  std::shared_ptr<const UpdateTables> tables_;
  PackedPlacement placement_;
  TransferWatcher& watcher_;
  std::map<WorkerId, std::unique_ptr<Part>> parts_;
};

}  // namespace holdfast::sim
