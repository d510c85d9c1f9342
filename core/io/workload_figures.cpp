#include "core/io/workload_figures.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/io/run_figures.hpp"
#include "core/plan/bound.hpp"

namespace holdfast {
namespace {

// Who may serve and who receives, by group; memories follow the groups among the holders.
struct Sides {
  std::vector<std::uint32_t> holders;
  std::vector<std::uint32_t> receivers;
  friend auto operator<=>(const Sides&, const Sides&) = default;
};

struct Limits {
  std::vector<Time> alone;  // by receiver of the sides
  Time joint;
  PayloadBytes bytes;
};

DemandBuilder builder_of(const Deployment& deployment, bool verify) {
  const auto bytes = deployment.space->block_bytes();
  DemandBuilder builder(deployment.space->model(), Version{1, 1}, deployment.space->block_size(),
                        {bytes.begin(), bytes.end()});
  builder.set_verify(verify);
  return builder;
}

class Bounds {
 public:
  Bounds(const Deployment& deployment, const Topology& topology, bool serve_from_spot,
         std::span<const HeldVersion> held, std::span<const Time> memory_from)
      : deployment_(deployment),
        topology_(topology),
        serve_from_spot_(serve_from_spot),
        memory_from_(memory_from) {
    for (const HeldVersion& hold : held) held_[hold.version].push_back(hold);
  }

  PayloadBytes fill(WorkloadRecord& record) {
    std::vector<std::size_t> order(record.fetches.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t f) {
      const FetchRecord& fetch = record.fetches[f];
      return std::tuple(fetch.requested, fetch.version, fetch.group);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    PayloadBytes least;
    for (std::size_t begin = 0; begin < order.size();) {
      std::size_t end = begin;
      const FetchRecord& first = record.fetches[order[begin]];
      while (end < order.size() && record.fetches[order[end]].requested == first.requested &&
             record.fetches[order[end]].version == first.version) {
        ++end;
      }
      take({order.begin() + static_cast<std::ptrdiff_t>(begin),
            order.begin() + static_cast<std::ptrdiff_t>(end)},
           record, least);
      begin = end;
    }
    return least;
  }

 private:
  // Fetches of one version that were asked for in one moment.
  void take(std::span<const std::size_t> batch, WorkloadRecord& record, PayloadBytes& least) {
    const FetchRecord& first = record.fetches[batch.front()];
    const Version version = first.version;
    Sides sides = sides_of(version, first.requested, batch, record);
    if (sides.receivers.empty() || sides.holders.empty()) return;
    const Limits& limits = limits_of(std::move(sides));
    for (const std::size_t f : batch) {
      FetchRecord& fetch = record.fetches[f];
      const auto& receivers = last_->first.receivers;
      const auto at = std::lower_bound(receivers.begin(), receivers.end(), fetch.group);
      if (at == receivers.end() || *at != fetch.group) continue;
      fetch.bound = limits.alone[static_cast<std::size_t>(at - receivers.begin())];
    }
    record.joint.push_back({version, first.requested, limits.joint});
    least.gpu += limits.bytes.gpu;
    least.nic += limits.bytes.nic;
    least.wan += limits.bytes.wan;
  }

  Sides sides_of(const Version& version, Time requested, std::span<const std::size_t> batch,
                 const WorkloadRecord& record) {
    Sides sides;
    const std::vector<HeldVersion>& holds = held_[version];
    for (const std::size_t f : batch) sides.receivers.push_back(record.fetches[f].group);
    const auto asks_for_it = [&](std::uint32_t group) {
      return std::find(sides.receivers.begin(), sides.receivers.end(), group);
    };
    // Asked for before it was there, as the latest: judged by who had it first.
    Time at = Time::never();
    for (const HeldVersion& hold : holds) {
      if (asks_for_it(hold.group) == sides.receivers.end()) at = std::min(at, hold.from);
    }
    if (at == Time::never()) return {};
    at = std::max(at, requested);
    for (const HeldVersion& hold : holds) {
      if (hold.from > at || hold.to <= at) continue;
      const auto asks = asks_for_it(hold.group);
      if (asks != sides.receivers.end()) {
        if (hold.from == requested) continue;  // begins with this very fetch
        sides.receivers.erase(asks);           // has a part already
      }
      sides.holders.push_back(hold.group);
    }
    const auto groups = static_cast<std::uint32_t>(deployment_.groups.size());
    for (std::uint32_t m = 0; m < memory_from_.size(); ++m) {
      if (memory_from_[m] <= at) sides.holders.push_back(groups + m);
    }
    for (std::vector<std::uint32_t>* side : {&sides.holders, &sides.receivers}) {
      std::sort(side->begin(), side->end());
      side->erase(std::unique(side->begin(), side->end()), side->end());
    }
    return sides;
  }

  const Limits& limits_of(Sides sides) {
    const auto found = limits_.find(sides);
    if (found != limits_.end()) {
      last_ = found;
      return found->second;
    }
    Limits limits = compute(sides);
    last_ = limits_.emplace(std::move(sides), std::move(limits)).first;
    return last_->second;
  }

  [[nodiscard]] Limits compute(const Sides& sides) const {
    Limits limits;
    limits.alone.resize(sides.receivers.size());
    DemandBuilder builder = builder_of(deployment_, deployment_.coordinator.verify);
    std::uint32_t number = 0;
    const auto add = [&](std::uint32_t group, bool holds) {
      for (std::uint32_t rank = 0; rank < deployment_.groups[group].members.size(); ++rank) {
        const DeployedGroup& from = deployment_.groups[group];
        const bool serves = from.reliable || serve_from_spot_;
        const WorkerId worker = builder.add_worker(
            {from.members[rank], number, topology_.node(from.members[rank]).memory, serves});
        for (const BlockSpan& span : deployment_.space->spans({from.layout, rank})) {
          if (holds) {
            builder.holds(worker, span);
          } else {
            builder.wants(worker, span);
          }
        }
      }
      ++number;
    };
    for (const std::uint32_t receiver : sides.receivers) add(receiver, false);
    for (const std::uint32_t holder : sides.holders) {
      if (holder < deployment_.groups.size()) {
        add(holder, true);
        continue;
      }
      const DeployedMemory& memory = deployment_.memories[holder - deployment_.groups.size()];
      const WorkerId worker = builder.add_worker({memory.node, number++, Bytes(), true});
      builder.holds(worker, {BlockId(0U), deployment_.space->blocks()});
    }
    try {
      const Demand demand = std::move(builder).build();
      const Bound bound = lower_bound(topology_, demand);
      limits.joint = bound.time() == Time::never() ? Time() : bound.time();
      for (std::size_t r = 0; r < limits.alone.size(); ++r) {
        const Time alone = bound.by_group[r];
        limits.alone[r] = alone == Time::never() ? Time() : alone;
      }
      limits.bytes = minimum_bytes(topology_, demand);
    } catch (const Error& error) {
      // Nobody holds some block: nothing can be said.
      if (error.code() != ErrorCode::BadValue) throw;
    }
    return limits;
  }

  const Deployment& deployment_;
  const Topology& topology_;
  bool serve_from_spot_;
  std::span<const Time> memory_from_;
  std::map<Version, std::vector<HeldVersion>> held_;
  std::map<Sides, Limits> limits_;
  std::map<Sides, Limits>::const_iterator last_;
};

}  // namespace

PayloadBytes add_bounds(const Deployment& deployment, const Topology& topology,
                        bool serve_from_spot, std::span<const HeldVersion> held,
                        std::span<const Time> memory_from, WorkloadRecord& record) {
  return Bounds(deployment, topology, serve_from_spot, held, memory_from).fill(record);
}

UpdateTask task_of(const Deployment& deployment, const Scenario& scenario, const Topology& topology,
                   const Manifest& manifest) {
  UpdateTask task;
  DemandBuilder builder = builder_of(deployment, scenario.verify);
  for (std::size_t g = 0; g < deployment.groups.size(); ++g) {
    const DeployedGroup& group = deployment.groups[g];
    task.replicas.push_back({group.name, group.role, group.fetches});
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const bool serves = group.reliable || scenario.options.serve_from_spot;
      const NodeId node = group.members[rank];
      const WorkerId worker = builder.add_worker(
          {node, static_cast<std::uint32_t>(g), topology.node(node).memory, serves});
      for (const BlockSpan& span : deployment.space->spans({group.layout, rank})) {
        if (group.publishes) builder.holds(worker, span);
        if (group.fetches) builder.wants(worker, span);
      }
    }
  }
  task.demand = std::move(builder).build();
  task.model_bytes = manifest.total();
  task.manifest = manifest.hash();
  task.warnings = deployment.warnings;
  return task;
}

}  // namespace holdfast
