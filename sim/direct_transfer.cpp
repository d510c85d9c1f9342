#include "sim/direct_transfer.hpp"

#include <utility>
#include <vector>

namespace holdfast::sim {
namespace {

EngineConfig patient() {
  EngineConfig config;
  config.read_deadline = seconds(3'600);
  config.no_progress = Time::never();
  return config;
}

}  // namespace

class DirectTransfer::Part final : public LoopObserver, public SourceObserver {
 public:
  Part(DirectTransfer& owner, WorkerId worker, RegionId at, std::uint16_t slot)
      : region(at),
        engine(owner.tables_, worker, patient()),
        loop({engine, owner.network_.transport(worker), owner.network_.memory(worker),
              owner.placement_, at, owner, 0, this, this},
             slot),
        owner_(owner) {}

  void block_verified(const WorkerEngine& from, EdgeBlock at, BlockId block,
                      Time /*now*/) override {
    owner_.watcher_.delivered(from.worker(), block, from.source(at.edge));
  }
  void completed(const WorkerEngine& from, Time /*now*/) override {
    owner_.watcher_.assigned_done(owner_, from.worker());
  }
  void failed(const EngineFailure& /*failure*/, Time /*now*/) override {}
  void reparented(const WorkerEngine& /*from*/, const Reparented& /*what*/, Time /*now*/) override {
  }
  void parent_needed(const WorkerEngine& from, const NeedParent& what, Time /*now*/) override {
    owner_.watcher_.source_lost(owner_, from.worker(), what.stripe, what.first, what.lost);
  }
  void slow_source(const WorkerEngine&, const SlowSource&, Time) override {}
  void bad_digest(const WorkerEngine&, const BadDigest&, Time) override {}

  RegionId region;
  WorkerEngine engine;
  TransferLoop loop;

 private:
  DirectTransfer& owner_;
};

DirectTransfer::DirectTransfer(SimNetwork& network, const Router& router, Demand demand, Plan plan,
                               std::uint32_t number, TransferWatcher& watcher)
    : network_(network),
      demand_(std::move(demand)),
      plan_(std::move(plan)),
      // A simulated memory answers every digest with zero, and so do the tables.
      tables_(std::make_shared<const UpdateTables>(
          demand_, plan_, &router, std::vector<std::uint64_t>(demand_.block_bytes.size()), number)),
      placement_(demand_.block_bytes),
      watcher_(watcher) {}
DirectTransfer::~DirectTransfer() = default;

void DirectTransfer::join(WorkerId worker, RegionId region, std::uint16_t slot) {
  parts_[worker] = std::make_unique<Part>(*this, worker, region, slot);
  network_.wake_at(worker, network_.now());
}

bool DirectTransfer::joined(WorkerId worker) const {
  return parts_.count(worker) != 0;
}

void DirectTransfer::stop(WorkerId worker) {
  const auto at = parts_.find(worker);
  if (at == parts_.end()) return;
  at->second->loop.stop();
  network_.wake_at(worker, network_.now());
}

void DirectTransfer::forget(WorkerId worker) {
  parts_.erase(worker);
}

void DirectTransfer::assign(WorkerId reader, const Assignment& work) {
  parts_.at(reader)->engine.assign(work);
  network_.wake_at(reader, network_.now());
  if (work.parent_has_all) return;
  parts_.at(work.parent)->engine.add_child({work.stripe, reader, work.path, work.have_interval});
  network_.wake_at(work.parent, network_.now());
}

std::uint32_t DirectTransfer::first_missing(WorkerId worker, StripeId stripe) const {
  return parts_.at(worker)->engine.first_missing(stripe);
}

void DirectTransfer::pump(WorkerId worker) {
  const auto at = parts_.find(worker);
  if (at == parts_.end()) return;
  if (!at->second->loop.stopped()) {
    at->second->loop.pump();
  } else if (at->second->loop.idle()) {
    parts_.erase(at);
  }
}

bool DirectTransfer::take(WorkerId worker, const TransportEvent& event) {
  const auto at = parts_.find(worker);
  return at != parts_.end() && at->second->loop.take(event);
}

bool DirectTransfer::take(WorkerId worker, const JobDone& job) {
  const auto at = parts_.find(worker);
  return at != parts_.end() && at->second->loop.take(job);
}

Time DirectTransfer::next_deadline(WorkerId worker) const {
  const auto at = parts_.find(worker);
  if (at == parts_.end() || at->second->loop.stopped()) return Time::never();
  return at->second->loop.next_deadline();
}

Access DirectTransfer::access(WorkerId reader, WorkerId source) {
  const auto at = parts_.find(source);
  if (at == parts_.end()) return {};
  return network_.transport(source).allow(reader, demand_.version, at->second->region);
}

std::string DirectTransfer::address(WorkerId /*worker*/) {
  return {};
}

}  // namespace holdfast::sim
