#include "core/plan/bound_demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace holdfast::bound {
namespace {

bool may_serve(const Topology& topology, const DemandWorker& worker) {
  return worker.may_serve && topology.node(worker.node).up;
}

// Visits (class's receiver, class).
auto receiver_pairs(const Demand& demand) {
  return [&demand](const auto& visit) {
    for (std::size_t c = 0; c < demand.classes.size(); ++c) {
      for (const WorkerId w : demand.classes[c].receivers) visit(w.index(), ClassId(c));
    }
  };
}

// Visits (class's holder that may serve, class).
auto server_pairs(const Topology& topology, const Demand& demand) {
  return [&](const auto& visit) {
    for (std::size_t c = 0; c < demand.classes.size(); ++c) {
      for (const WorkerId w : demand.classes[c].holders) {
        if (may_serve(topology, demand.workers[w.index()])) visit(w.index(), ClassId(c));
      }
    }
  };
}

// Visits (domain, channel) for each channel that enters the domain, or leaves it.
auto crossing_pairs(const Topology& topology, bool entering) {
  return [&topology, entering](const auto& visit) {
    for (std::uint32_t i = 0; i < topology.channels(); ++i) {
      const ChannelId channel(i);
      if (!topology.usable(channel.link())) continue;
      const Nest tail = nest_of(topology, topology.tail(channel));
      const Nest head = nest_of(topology, topology.head(channel));
      for (std::size_t level = 0; level < kLevels; ++level) {
        const DomainId crossed = entering ? head[level] : tail[level];
        if (tail[level] != head[level] && crossed.valid()) visit(crossed.index(), channel);
      }
    }
  };
}

std::vector<std::uint64_t> capacities(const Topology& topology, const Lists<ChannelId>& lists) {
  std::vector<std::uint64_t> sums(topology.domains().size());
  for (std::size_t d = 0; d < sums.size(); ++d) {
    for (const ChannelId channel : lists[d]) {
      sums[d] += topology.link(channel.link()).capacity.bytes_per_second();
    }
  }
  return sums;
}

}  // namespace

Nest nest_of(const Topology& topology, NodeId node) {
  Nest nest;
  for (DomainId d = topology.node(node).domain; d.valid(); d = topology.domain(d).parent) {
    nest[static_cast<std::size_t>(topology.domain(d).level)] = d;
  }
  return nest;
}

Nest common(const Nest& a, const Nest& b) {
  Nest both;
  for (std::size_t level = 0; level < kLevels; ++level) {
    if (a[level] == b[level]) both[level] = a[level];
  }
  return both;
}

DemandIndex::DemandIndex(const Topology& topology, const Demand& demand)
    : topology_(&topology),
      demand_(&demand),
      receives_(demand.workers.size(), receiver_pairs(demand)),
      serves_(demand.workers.size(), server_pairs(topology, demand)) {
  bytes_.reserve(demand.classes.size());
  smallest_.reserve(demand.classes.size());
  for (const BlockClass& c : demand.classes) {
    std::uint64_t sum = 0;
    std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
    for (const BlockSpan& span : c.blocks) {
      for (std::uint32_t k = 0; k < span.count; ++k) {
        const std::uint64_t block = demand.block_bytes[span.first.index() + k].count();
        sum += block;
        smallest = std::min(smallest, block);
      }
    }
    bytes_.push_back(sum);
    smallest_.push_back(smallest);
  }
  nests_.reserve(demand.workers.size());
  for (const DemandWorker& worker : demand.workers) {
    nests_.push_back(nest_of(topology, worker.node));
  }
  find_receivers();
  find_holder_sets();
}

void DemandIndex::find_receivers() {
  missing_.assign(demand_->workers.size(), 0);
  relays_.assign(topology_->nodes().size(), false);
  for (std::size_t i = 0; i < demand_->workers.size(); ++i) {
    const WorkerId w(i);
    if (receives(w).empty()) continue;
    receivers_.push_back(w);
    for (const ClassId c : receives(w)) missing_[i] += bytes(c);
    const Node& node = topology_->node(demand_->workers[i].node);
    if (demand_->verify && node.digest_rate == Rate(0)) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("'{}' receives blocks that are to be verified, but its digest rate "
                              "is zero: give it one, or switch verification off",
                              node.name));
    }
    relays_[demand_->workers[i].node.index()] = may_relay(w);
  }
  receiver_nests_.reserve(demand_->classes.size());
  for (const BlockClass& c : demand_->classes) {
    Nest nest;
    for (std::size_t k = 0; k < c.receivers.size(); ++k) {
      nest = k == 0 ? nests_[c.receivers[k].index()] : common(nest, nests_[c.receivers[k].index()]);
    }
    receiver_nests_.push_back(nest);
  }
}

void DemandIndex::find_holder_sets() {
  std::map<std::vector<WorkerId>, std::uint32_t> known;
  for (const BlockClass& c : demand_->classes) {
    std::vector<WorkerId> servers;
    for (const WorkerId w : c.holders) {
      if (may_serve(*topology_, demand_->workers[w.index()])) servers.push_back(w);
    }
    const auto [at, fresh] = known.try_emplace(servers, static_cast<std::uint32_t>(sets_.size()));
    set_of_.push_back(at->second);
    if (!fresh) continue;
    Nest nest;
    std::vector<DomainId> domains;
    for (std::size_t k = 0; k < servers.size(); ++k) {
      const Nest& own = nests_[servers[k].index()];
      nest = k == 0 ? own : common(nest, own);
      for (const DomainId d : own) {
        if (d.valid()) domains.push_back(d);
      }
    }
    std::sort(domains.begin(), domains.end());
    domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
    set_nests_.push_back(nest);
    set_domains_.push_back(std::move(domains));
    sets_.push_back(std::move(servers));
  }
}

Time DemandIndex::digest(ClassId c, WorkerId w) const {
  if (!demand_->verify) return Time();
  const Node& node = topology_->node(demand_->workers[w.index()].node);
  return transfer_time(Bytes(smallest_[c.index()]), node.digest_rate);
}

bool DemandIndex::may_relay(WorkerId w) const {
  const DemandWorker& worker = demand_->workers[w.index()];
  return may_serve(*topology_, worker) && !receives(w).empty();
}

bool DemandIndex::held_in(std::uint32_t set, DomainId domain) const {
  return std::binary_search(set_domains_[set].begin(), set_domains_[set].end(), domain);
}

DomainCuts::DomainCuts(const Topology& topology)
    : into_(topology.domains().size(), crossing_pairs(topology, true)),
      out_of_(topology.domains().size(), crossing_pairs(topology, false)),
      capacity_in_(capacities(topology, into_)),
      capacity_out_(capacities(topology, out_of_)) {}

}  // namespace holdfast::bound
