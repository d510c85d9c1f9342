#include "tests/engine/virtual_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/digest.hpp"

namespace holdfast::testing {
namespace {

constexpr std::byte kPoison{0xcd};

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  return z ^ (z >> 27U);
}

// What a worker is to have in the end, by block: held or wanted.
std::vector<std::vector<bool>> wanted_or_held(const Demand& demand, bool wanted) {
  std::vector<std::vector<bool>> has(demand.workers.size(),
                                     std::vector<bool>(demand.block_bytes.size()));
  for (const BlockClass& c : demand.classes) {
    for (const BlockId block : blocks_of(c)) {
      for (const WorkerId w : c.holders) has[w.index()][block.index()] = true;
      if (!wanted) continue;
      for (const WorkerId w : c.receivers) has[w.index()][block.index()] = true;
    }
  }
  return has;
}

}  // namespace

Cluster::Cluster(const Demand& demand, const Plan& plan, const ClusterOptions& options)
    : demand_(demand), placement_(demand.block_bytes), completed_(demand.workers.size()) {
  const std::size_t workers = demand.workers.size();
  network_ = std::make_unique<VirtualNetwork>(workers, options.network);
  const std::uint64_t size = placement_.region_bytes(WorkerId(0U)).count();
  std::vector<std::uint64_t> digests(demand.block_bytes.size());
  if (options.real_bytes) {
    truth_.resize(size);
    for (std::size_t i = 0; i < size; ++i) truth_[i] = static_cast<std::byte>(mix(i * 77 + 1));
    for (std::size_t b = 0; b < digests.size(); ++b) {
      const Extent extent = placement_.extent(BlockId(b));
      digests[b] = block_digest(std::span(truth_).subspan(extent.offset, extent.bytes));
    }
    memory_.assign(workers, std::vector<std::byte>(size, kPoison));
    const auto held = wanted_or_held(demand, false);
    for (std::size_t w = 0; w < workers; ++w) {
      for (std::size_t b = 0; b < digests.size(); ++b) {
        if (!held[w][b]) continue;
        const Extent extent = placement_.extent(BlockId(b));
        std::copy_n(truth_.begin() + static_cast<std::ptrdiff_t>(extent.offset), extent.bytes,
                    memory_[w].begin() + static_cast<std::ptrdiff_t>(extent.offset));
      }
    }
  }
  Plan carried = plan;
  if (options.without_plan) {
    for (Stripe& stripe : carried.stripes) stripe.edges.clear();
  }
  tables_ = std::make_shared<const UpdateTables>(demand, carried, options.router, digests);
  for (std::size_t w = 0; w < workers; ++w) {
    const std::span<std::byte> memory =
        options.real_bytes ? std::span(memory_[w]) : std::span<std::byte>{};
    regions_.push_back(network_->transport(WorkerId(w)).add_region(memory, Bytes(size)));
    engines_.push_back(std::make_unique<WorkerEngine>(tables_, WorkerId(w), options.engine));
  }
  driver_ = std::make_unique<VirtualDriver>(*network_);
  for (std::size_t w = 0; w < workers; ++w) {
    const WorkerId id(w);
    guarded_.push_back(std::make_unique<GuardedTransport>(network_->transport(id)));
    loops_.push_back(
        std::make_unique<WorkerLoop>(LoopSetup{*engines_[w], *guarded_[w], network_->memory(id),
                                               placement_, regions_[w], *this, 1, this, this}));
    driver_->add(*loops_[w], id);
  }
}

Cluster::~Cluster() = default;

bool Cluster::run(Time until) {
  const auto done = [this] {
    if (failure_ && stop_at_failure_) return true;
    return std::all_of(engines_.begin(), engines_.end(),
                       [](const auto& engine) { return engine->complete() && !engine->fresh(); });
  };
  return driver_->run(done, until) && !failure_;
}

std::string Cluster::wrong_bytes() const {
  const auto expected = wanted_or_held(demand_, true);
  for (std::size_t w = 0; w < memory_.size(); ++w) {
    for (std::size_t b = 0; b < demand_.block_bytes.size(); ++b) {
      const Extent extent = placement_.extent(BlockId(b));
      for (std::uint64_t i = extent.offset; i < extent.offset + extent.bytes; ++i) {
        const std::byte right = expected[w][b] ? truth_[i] : kPoison;
        if (memory_[w][i] != right) {
          return fmt::format("worker {} block {} byte {}", w, b, i - extent.offset);
        }
      }
    }
  }
  return {};
}

bool Cluster::has_bytes(WorkerId worker, BlockId block) const {
  const Extent extent = placement_.extent(block);
  const auto begin = static_cast<std::ptrdiff_t>(extent.offset);
  return std::equal(truth_.begin() + begin,
                    truth_.begin() + begin + static_cast<std::ptrdiff_t>(extent.bytes),
                    memory_[worker.index()].begin() + begin);
}

Access Cluster::access(WorkerId reader, WorkerId source) {
  return network_->transport(source).allow(reader, demand_.version, regions_[source.index()]);
}

void Cluster::block_verified(const WorkerEngine& engine, EdgeBlock at, BlockId block, Time now) {
  verified_.push_back({now, engine.worker(), engine.source(at.edge), block});
  const Extent extent = placement_.extent(block);
  guarded_[engine.worker().index()]->seal(extent.offset, extent.bytes);
}
void Cluster::reparented(const WorkerEngine& engine, const Reparented& what, Time now) {
  reparented_.push_back({now, engine.worker(), what});
}
void Cluster::parent_needed(const WorkerEngine& engine, const NeedParent& what, Time now) {
  ++wanted_;
  if (!mend_) return;
  const WorkerId worker = engine.worker();
  network_->at(now, [this, worker, what] { mend_(worker, what); });
}
void Cluster::slow_source(const WorkerEngine& engine, const SlowSource& what, Time now) {
  slow_.push_back({now, engine.worker(), what});
}
void Cluster::bad_digest(const WorkerEngine& engine, const BadDigest& what, Time now) {
  bad_.push_back({now, engine.worker(), what});
}
std::string Cluster::broken_rules() const {
  for (std::size_t w = 0; w < guarded_.size(); ++w) {
    if (!guarded_[w]->broken().empty())
      return fmt::format("worker {}: {}", w, guarded_[w]->broken());
  }
  return {};
}
void Cluster::completed(const WorkerEngine& engine, Time now) {
  completed_[engine.worker().index()] = now;
}
void Cluster::failed(const EngineFailure& failure, Time) {
  if (!failure_) failure_ = failure;
}

Demand simple_demand(std::size_t receivers, std::uint32_t blocks, Bytes bytes) {
  Demand demand;
  demand.model = "test";
  demand.version = {1, 2};
  demand.block_size = bytes;
  demand.block_bytes.assign(blocks, bytes);
  demand.workers.resize(receivers + 1);
  BlockClass c;
  c.blocks = {{BlockId(0U), blocks}};
  c.holders = {WorkerId(0U)};
  for (std::size_t w = 1; w <= receivers; ++w) c.receivers.emplace_back(w);
  demand.classes = {c};
  return demand;
}

Plan tree_plan(const Demand& demand, const std::vector<std::uint32_t>& parents,
               std::uint32_t window) {
  Plan plan;
  Stripe stripe;
  stripe.block_class = ClassId(0U);
  stripe.blocks = {0, 1, block_count(demand.classes[0])};
  for (std::size_t i = 0; i < parents.size(); ++i) {
    Edge edge;
    edge.child = WorkerId(i + 1);
    edge.parent = WorkerId(parents[i]);
    edge.window = window;
    stripe.edges.push_back(edge);
  }
  plan.stripes = {stripe};
  return plan;
}

}  // namespace holdfast::testing
