#include "core/plan/plan_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/error.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();

bool leads_out_of_host(const Topology& topology, NodeId nic, DomainId host) {
  const auto links = topology.neighbours(nic);
  return std::any_of(links.begin(), links.end(), [&](const Neighbour& next) {
    return topology.usable(next.link) && topology.around(next.node, Level::Host) != host;
  });
}

// Hops from `start` to the nodes of its host over PCIe and memory links, by node id.
std::unordered_map<NodeId, std::uint32_t> hops_inside_host(const Topology& topology, NodeId start,
                                                           DomainId host) {
  std::unordered_map<NodeId, std::uint32_t> hops{{start, 0}};
  std::vector<NodeId> frontier{start};
  for (std::size_t at = 0; at < frontier.size(); ++at) {
    const NodeId here = frontier[at];
    if (here != start && is_endpoint(topology.node(here).kind)) continue;
    for (const Neighbour& next : topology.neighbours(here)) {
      const bool inside = topology.around(next.node, Level::Host) == host;
      if (!inside || !topology.usable(next.link)) continue;
      if (topology.link(next.link).kind == LinkKind::NvLink) continue;
      if (hops.emplace(next.node, hops[here] + 1).second) frontier.push_back(next.node);
    }
  }
  return hops;
}

// Hops between the endpoints and the NICs of one host.
class NicDistances {
 public:
  NicDistances(const Topology& topology, DomainId host, std::span<const NodeId> nics) {
    for (const NodeId nic : nics) hops_.push_back(hops_inside_host(topology, nic, host));
  }
  [[nodiscard]] std::uint32_t operator()(std::size_t nic, NodeId endpoint) const {
    const auto found = hops_[nic].find(endpoint);
    return found == hops_[nic].end() ? kUnreached : found->second;
  }

 private:
  std::vector<std::unordered_map<NodeId, std::uint32_t>> hops_;
};

std::uint64_t pair_key(NodeId a, NodeId b) {
  return (std::uint64_t{a.value()} << 32) | b.value();
}

// The switch (or, cabled back to back, the NIC) that a NIC's traffic meets first.
NodeId first_hop(const Topology& topology, NodeId nic) {
  const DomainId host = topology.around(nic, Level::Host);
  for (const Neighbour& next : topology.neighbours(nic)) {
    if (topology.usable(next.link) && topology.around(next.node, Level::Host) != host) {
      return next.node;
    }
  }
  return nic;
}

}  // namespace

PlanSpace::PlanSpace(const Router& router, const Demand& demand)
    : router_(router), demand_(demand), rails_(router.topology().nodes().size(), 0) {
  place_workers();
  share_nics();
}

void PlanSpace::place_workers() {
  using Key = std::array<DomainId, kLevels>;
  const std::size_t n = demand_.workers.size();
  std::vector<Key> keys(n);
  hosts_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const WorkerId w(i);
    keys[i] = {around(w, Level::Datacenter), around(w, Level::Pod), around(w, Level::Rack),
               around(w, Level::Host)};
    hosts_[i] = keys[i][3];
  }
  by_rank_.resize(n);
  for (std::size_t i = 0; i < n; ++i) by_rank_[i] = WorkerId(i);
  std::sort(by_rank_.begin(), by_rank_.end(), [&](WorkerId a, WorkerId b) {
    return std::forward_as_tuple(keys[a.index()], node(a)) <
           std::forward_as_tuple(keys[b.index()], node(b));
  });
  ranks_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    ranks_[by_rank_[i].index()] = static_cast<std::uint32_t>(i);
  }
}

void PlanSpace::share_nics() {
  nics_.resize(demand_.workers.size());
  for (std::size_t first = 0; first < by_rank_.size();) {
    std::size_t end = first;
    const DomainId host_id = host(by_rank_[first]);
    while (end < by_rank_.size() && host(by_rank_[end]) == host_id) ++end;
    if (host_id.valid()) {
      share_nics_of_host(host_id, std::span(by_rank_).subspan(first, end - first));
    }
    first = end;
  }
}

void PlanSpace::share_nics_of_host(DomainId host_id, std::span<const WorkerId> workers) {
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  for (const NodeId id : topology().members(host_id)) {
    const Node& node = topology().node(id);
    if (node.kind == NodeKind::Gpu) gpus.push_back(id);
    if (node.kind != NodeKind::Nic) continue;
    rails_[id.index()] = static_cast<std::uint32_t>(nics.size());
    nics.push_back(id);
  }
  const NicDistances distance(topology(), host_id, nics);
  std::vector<bool> out(nics.size());
  for (std::size_t k = 0; k < nics.size(); ++k) {
    out[k] = topology().node(nics[k]).up && leads_out_of_host(topology(), nics[k], host_id);
  }
  // One NIC a GPU, whether or not the GPU takes part: a lone worker must not sit on its
  // neighbour's NIC while its own is idle.
  std::unordered_map<NodeId, std::size_t> own;
  std::vector<std::uint32_t> users(nics.size(), 0);
  for (const NodeId gpu : gpus) {
    std::size_t best = nics.size();
    for (std::size_t k = 0; k < nics.size(); ++k) {
      if (!out[k] || distance(k, gpu) == kUnreached) continue;
      if (best == nics.size() ||
          std::pair(distance(k, gpu), users[k]) < std::pair(distance(best, gpu), users[best])) {
        best = k;
      }
    }
    if (best == nics.size()) continue;
    own.emplace(gpu, best);
    ++users[best];
  }
  std::vector<bool> taken(nics.size(), false);
  for (const WorkerId w : workers) {
    const auto found = own.find(node(w));
    if (found == own.end()) continue;
    nics_[w.index()].push_back(nics[found->second]);
    taken[found->second] = true;
  }
  for (std::size_t k = 0; k < nics.size(); ++k) {
    if (!out[k] || taken[k]) continue;
    WorkerId best;
    for (const WorkerId w : workers) {
      if (distance(k, node(w)) == kUnreached) continue;
      if (!best.valid() || std::pair(distance(k, node(w)), nics_[w.index()].size()) <
                               std::pair(distance(k, node(best)), nics_[best.index()].size())) {
        best = w;
      }
    }
    if (best.valid()) nics_[best.index()].push_back(nics[k]);
  }
}

void PlanSpace::sort_by_rank(std::vector<WorkerId>& workers) const {
  std::sort(workers.begin(), workers.end(),
            [&](WorkerId a, WorkerId b) { return rank(a) < rank(b); });
}

std::uint32_t PlanSpace::distance(WorkerId a, WorkerId b) const {
  constexpr std::array kInnermostFirst{Level::Host, Level::Rack, Level::Pod, Level::Datacenter};
  for (std::uint32_t d = 0; d < kInnermostFirst.size(); ++d) {
    const DomainId domain = around(a, kInnermostFirst[d]);
    if (domain.valid() && domain == around(b, kInnermostFirst[d])) return d;
  }
  return kInnermostFirst.size();
}

std::optional<Path> PathChooser::local(WorkerId parent, WorkerId child) const {
  const DomainId host = space_.host(parent);
  if (!host.valid() || host != space_.host(child)) return std::nullopt;
  const Path path{space_.node(parent), space_.node(child), 0};
  if (!space_.router().route(path.source_port, path.destination_port, path)) return std::nullopt;
  return path;
}

std::uint32_t PathChooser::least_used(NodeId from_switch, NodeId to_switch, std::uint32_t choices) {
  constexpr std::uint32_t kMostCompared = 64;
  const auto key = [](NodeId node, bool down, std::uint32_t choice) {
    return (std::uint64_t{node.value()} << 32) | (down ? 1ULL << 31 : 0) | choice;
  };
  std::uint32_t best = 0;
  std::uint32_t best_load = kUnreached;
  for (std::uint32_t k = 0; k < std::min(choices, kMostCompared); ++k) {
    const std::uint32_t load =
        std::max(used_[key(from_switch, false, k)], used_[key(to_switch, true, k)]);
    if (load < best_load) {
      best = k;
      best_load = load;
    }
  }
  ++used_[key(from_switch, false, best)];
  ++used_[key(to_switch, true, best)];
  return best;
}

std::optional<Path> PathChooser::fabric(NodeId parent_nic, NodeId child_nic) {
  const NodeId from = first_hop(space_.topology(), parent_nic);
  const NodeId to = first_hop(space_.topology(), child_nic);
  const auto [known, is_new] = choices_.emplace(pair_key(from, to), 0);
  if (is_new) known->second = space_.router().choices(parent_nic, child_nic);
  const std::uint32_t choices = known->second;
  if (choices == 0) return std::nullopt;
  const std::uint32_t choice = choices == 1 ? 0 : least_used(from, to, choices);
  // Streams of one pair of ports are numbered apart; adding a multiple of `choices` keeps the
  // route.
  const std::uint32_t again = streams_[pair_key(parent_nic, child_nic)]++;
  return Path{parent_nic, child_nic, choice + again * choices};
}

Path PathChooser::any(WorkerId parent, WorkerId child) {
  if (const auto path = local(parent, child)) return *path;
  const auto sources = space_.nics(parent);
  const auto targets = space_.nics(child);
  for (const bool same_rail : {true, false}) {
    for (const NodeId source : sources) {
      for (const NodeId target : targets) {
        if ((space_.rail(source) == space_.rail(target)) != same_rail) continue;
        if (const auto path = fabric(source, target)) return *path;
      }
    }
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("no path joins {} to {}: their NICs are down or not connected",
                          space_.topology().node(space_.node(parent)).name,
                          space_.topology().node(space_.node(child)).name));
}

}  // namespace holdfast
