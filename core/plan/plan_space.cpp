#include "core/plan/plan_space.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

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

// For the memory of a host whose GPUs all take part, which owns no NIC: it goes through theirs.
std::vector<NodeId> nearest_first(NodeId endpoint, std::span<const NodeId> nics,
                                  const std::vector<bool>& out, const NicDistances& distance) {
  std::vector<std::pair<std::uint32_t, NodeId>> found;
  for (std::size_t k = 0; k < nics.size(); ++k) {
    if (out[k] && distance(k, endpoint) != kUnreached) {
      found.emplace_back(distance(k, endpoint), nics[k]);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<NodeId> sorted;
  for (const auto& each : found) sorted.push_back(each.second);
  return sorted;
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
  for (const WorkerId w : workers) {
    if (nics_[w.index()].empty()) nics_[w.index()] = nearest_first(node(w), nics, out, distance);
  }
}

bool PlanSpace::leads_out(NodeId nic) const {
  return topology().node(nic).up &&
         leads_out_of_host(topology(), nic, topology().around(nic, Level::Host));
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

}  // namespace holdfast
