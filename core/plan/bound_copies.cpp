#include "core/plan/bound_copies.hpp"

#include <algorithm>
#include <optional>

namespace holdfast::bound {
namespace {

// Sums by domain; one more for everything.
struct Sums {
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint64_t> capacity;
  explicit Sums(std::size_t domains) : bytes(domains + 1), capacity(domains + 1) {}
};

class Copies {
 public:
  Copies(const DemandIndex& index, const DomainCuts& cuts, const Latencies& latencies,
         Result& result)
      : index_(&index),
        topology_(&index.topology()),
        cuts_(&cuts),
        result_(&result),
        latency_(topology_->domains().size() + 1, Time::never()),
        serves_(topology_->domains().size()) {
    for (const WorkerId w : index.receivers()) {
      Time least = Time::never();
      for (const ClassId c : index.receives(w)) least = std::min(least, latencies.least(c, w));
      const auto lower = [&](std::size_t d) { latency_[d] = std::min(latency_[d], least); };
      visit(w, lower);
    }
    for (std::size_t i = 0; i < index.demand().workers.size(); ++i) {
      if (!is_server(WorkerId(i))) continue;
      for (const DomainId d : index.nest(WorkerId(i))) {
        if (d.valid()) serves_[d.index()] = true;
      }
    }
  }

  void offer_receivers() {
    Sums sums(topology_->domains().size());
    for (std::size_t i = 0; i < index_->demand().workers.size(); ++i) {
      const WorkerId w(i);
      visit(w, [&](std::size_t d) { sums.bytes[d] += index_->missing(w); });
      if (!is_server(w)) continue;
      std::uint64_t out = 0;
      for_channels_out(w, [&](ChannelId channel) { out += rate(channel); });
      visit(w, [&](std::size_t d) { sums.capacity[d] += out; });
    }
    offer_all(sums, std::nullopt);
  }

  void offer_units(Level unit, const std::vector<std::uint64_t>& bytes_into) {
    Sums sums(topology_->domains().size());
    for (std::size_t u = 0; u < topology_->domains().size(); ++u) {
      if (topology_->domains()[u].level != unit) continue;
      const std::uint64_t out = serves_[u] ? cuts_->capacity_out_of(DomainId(u)) : 0;
      const auto add = [&](std::size_t d) {
        sums.bytes[d] += bytes_into[u];
        sums.capacity[d] += out;
      };
      add(topology_->domains().size());
      for (DomainId d = topology_->domains()[u].parent; d.valid();
           d = topology_->domain(d).parent) {
        add(d.index());
      }
    }
    offer_all(sums, unit);
  }

 private:
  // Calls with each domain around the worker, and with the number that means everything.
  template <class Visit>
  void visit(WorkerId w, const Visit& visitor) const {
    for (const DomainId d : index_->nest(w)) {
      if (d.valid()) visitor(d.index());
    }
    visitor(topology_->domains().size());
  }

  template <class Visit>
  void for_channels_out(WorkerId w, const Visit& visitor) const {
    const NodeId node = index_->demand().workers[w.index()].node;
    for (const Neighbour& next : topology_->neighbours(node)) {
      if (!topology_->usable(next.link)) continue;
      visitor(ChannelId(next.link, topology_->link(next.link).b == node));
    }
  }

  [[nodiscard]] bool is_server(WorkerId w) const {
    return !index_->serves(w).empty() || index_->may_relay(w);
  }

  [[nodiscard]] std::uint64_t rate(ChannelId channel) const {
    return topology_->link(channel.link()).capacity.bytes_per_second();
  }

  [[nodiscard]] bool inside(const Nest& nest, std::size_t d) const {
    return d == topology_->domains().size() ||
           nest[static_cast<std::size_t>(topology_->domains()[d].level)] == DomainId(d);
  }

  void offer_all(const Sums& sums, std::optional<Level> unit) {
    for (std::size_t d = 0; d < sums.bytes.size(); ++d) {
      if (sums.bytes[d] == 0) continue;
      const bool everything = d == topology_->domains().size();
      const std::uint64_t in = everything ? 0 : cuts_->capacity_into(DomainId(d));
      result_->offer({sums.bytes[d], sums.capacity[d] + in}, latency_[d],
                     [&] { return write(d, unit); });
    }
  }

  [[nodiscard]] Cut write(std::size_t d, std::optional<Level> unit) const {
    const bool everything = d == topology_->domains().size();
    Cut cut;
    cut.kind = CutKind::Copies;
    cut.sink = everything ? "all receivers" : topology_->domains()[d].name;
    cut.unit = unit;
    std::vector<bool> wanted(index_->demand().classes.size());
    for (const WorkerId w : index_->receivers()) {
      if (!inside(index_->nest(w), d)) continue;
      cut.receivers.push_back(w);
      for (const ClassId c : index_->receives(w)) wanted[c.index()] = true;
    }
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      if (wanted[c]) cut.classes.emplace_back(c);
    }
    if (!everything) {
      const auto into = cuts_->into(DomainId(d));
      cut.channels.assign(into.begin(), into.end());
    }
    if (unit) {
      for (std::size_t u = 0; u < serves_.size(); ++u) {
        const Domain& domain = topology_->domains()[u];
        if (domain.level != *unit || !serves_[u]) continue;
        const bool lies_inside =
            everything ||
            topology_->around(DomainId(u), topology_->domains()[d].level) == DomainId(d);
        if (!lies_inside) continue;
        const auto out = cuts_->out_of(DomainId(u));
        cut.channels.insert(cut.channels.end(), out.begin(), out.end());
      }
    } else {
      for (std::size_t i = 0; i < index_->demand().workers.size(); ++i) {
        if (!is_server(WorkerId(i)) || !inside(index_->nest(WorkerId(i)), d)) continue;
        for_channels_out(WorkerId(i), [&](ChannelId channel) { cut.channels.push_back(channel); });
      }
    }
    std::sort(cut.channels.begin(), cut.channels.end());
    return cut;
  }

  const DemandIndex* index_;
  const Topology* topology_;
  const DomainCuts* cuts_;
  Result* result_;
  std::vector<Time> latency_;  // by domain, and of everything
  std::vector<bool> serves_;   // by domain
};

}  // namespace

void offer_copies(const DemandIndex& index, const DomainCuts& cuts, const Latencies& latencies,
                  const std::vector<std::uint64_t>& bytes_into, Result& result) {
  Copies copies(index, cuts, latencies, result);
  copies.offer_receivers();
  for (const Level unit : {Level::Host, Level::Rack, Level::Pod, Level::Datacenter}) {
    copies.offer_units(unit, bytes_into);
  }
}

void offer_digests(const DemandIndex& index, const Latencies& latencies, Result& result) {
  if (!index.demand().verify) return;
  for (const WorkerId w : index.receivers()) {
    Time way = Time::never();
    for (const ClassId c : index.receives(w)) way = std::min(way, latencies.way(c, w));
    const Time latency = way == Time::never() ? way : way * 2;
    const DemandWorker& worker = index.demand().workers[w.index()];
    const Node& node = index.topology().node(worker.node);
    const Ratio ratio{index.missing(w), node.digest_rate.bytes_per_second()};
    result.raise_group(worker.group, add_times(crossing_time(ratio), latency));
    result.offer(ratio, latency, [&] {
      Cut cut;
      cut.kind = CutKind::Digest;
      cut.sink = node.name;
      cut.receivers = {w};
      cut.classes.assign(index.receives(w).begin(), index.receives(w).end());
      return cut;
    });
  }
}

}  // namespace holdfast::bound
