// The demand and the domains as the bound looks at them: by worker instead of by class, and what
// enters and leaves each domain. Everything here is near-linear in the demand and the topology.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::bound {

// The domain of each level, invalid where there is none.
using Nest = std::array<DomainId, kLevels>;

[[nodiscard]] Nest nest_of(const Topology& topology, NodeId node);
// Keeps the domains that are in both.
[[nodiscard]] Nest common(const Nest& a, const Nest& b);

// Lists of `To` by a dense number, in one array.
template <class To>
class Lists {
 public:
  // `pairs(visit)` calls visit(number, value) for each entry, the same entries each time it is
  // called.
  template <class Pairs>
  Lists(std::size_t size, const Pairs& pairs) : first_(size + 1) {
    pairs([&](std::size_t number, To) { ++first_[number + 1]; });
    for (std::size_t i = 0; i < size; ++i) first_[i + 1] += first_[i];
    values_.resize(first_[size]);
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    pairs([&](std::size_t number, To value) { values_[next[number]++] = value; });
  }
  [[nodiscard]] std::span<const To> operator[](std::size_t number) const {
    return std::span(values_).subspan(first_[number], first_[number + 1] - first_[number]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<To> values_;
};

class DemandIndex {
 public:
  // Throws Error(BadValue) naming the node if blocks are verified but a receiver's memory digests
  // nothing (digest rate zero). Keeps references.
  DemandIndex(const Topology& topology, const Demand& demand);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] const Demand& demand() const { return *demand_; }

  [[nodiscard]] std::uint64_t bytes(ClassId c) const { return bytes_[c.index()]; }
  [[nodiscard]] std::uint64_t missing(WorkerId w) const { return missing_[w.index()]; }
  [[nodiscard]] std::span<const ClassId> receives(WorkerId w) const { return receives_[w.index()]; }
  // Classes that it holds and may serve.
  [[nodiscard]] std::span<const ClassId> serves(WorkerId w) const { return serves_[w.index()]; }
  // Time to digest the smallest block of the class at that worker; zero if nothing is verified.
  [[nodiscard]] Time digest(ClassId c, WorkerId w) const;
  [[nodiscard]] bool may_relay(WorkerId w) const;
  // By node: a worker that may relay.
  [[nodiscard]] const std::vector<bool>& relays() const { return relays_; }
  [[nodiscard]] const Nest& nest(WorkerId w) const { return nests_[w.index()]; }
  // Workers that receive something, ascending.
  [[nodiscard]] std::span<const WorkerId> receivers() const { return receivers_; }

  // Classes with the same holders that may serve have one holder set.
  [[nodiscard]] std::size_t holder_sets() const { return sets_.size(); }
  [[nodiscard]] std::uint32_t holder_set(ClassId c) const { return set_of_[c.index()]; }
  [[nodiscard]] std::span<const WorkerId> holders(std::uint32_t set) const { return sets_[set]; }
  // Is some holder of the set in the domain? O(log domains).
  [[nodiscard]] bool held_in(std::uint32_t set, DomainId domain) const;
  // The domains that contain all holders of the set.
  [[nodiscard]] const Nest& around_holders(std::uint32_t set) const { return set_nests_[set]; }
  // The domains that contain all receivers of the class.
  [[nodiscard]] const Nest& around_receivers(ClassId c) const { return receiver_nests_[c.index()]; }

 private:
  void find_holder_sets();
  void find_receivers();

  const Topology* topology_;
  const Demand* demand_;
  std::vector<std::uint64_t> bytes_;     // by class
  std::vector<std::uint64_t> smallest_;  // block, by class
  Lists<ClassId> receives_;
  Lists<ClassId> serves_;
  std::vector<Nest> nests_;  // by worker
  std::vector<std::uint64_t> missing_;
  std::vector<WorkerId> receivers_;
  std::vector<bool> relays_;
  std::vector<std::uint32_t> set_of_;
  std::vector<std::vector<WorkerId>> sets_;
  std::vector<std::vector<DomainId>> set_domains_;  // ascending
  std::vector<Nest> set_nests_;
  std::vector<Nest> receiver_nests_;
};

// The channels that cross into and out of each domain, links and nodes that are up alone.
class DomainCuts {
 public:
  explicit DomainCuts(const Topology& topology);
  [[nodiscard]] std::span<const ChannelId> into(DomainId d) const { return into_[d.index()]; }
  [[nodiscard]] std::span<const ChannelId> out_of(DomainId d) const { return out_of_[d.index()]; }
  [[nodiscard]] std::uint64_t capacity_into(DomainId d) const { return capacity_in_[d.index()]; }
  [[nodiscard]] std::uint64_t capacity_out_of(DomainId d) const { return capacity_out_[d.index()]; }

 private:
  Lists<ChannelId> into_;
  Lists<ChannelId> out_of_;
  std::vector<std::uint64_t> capacity_in_;
  std::vector<std::uint64_t> capacity_out_;
};

}  // namespace holdfast::bound
