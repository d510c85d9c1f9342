// The cut family: which sets of receivers are looked at, and where their cuts are looked for.
#include "core/plan/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "core/plan/bound_copies.hpp"
#include "core/plan/bound_lone.hpp"
#include "core/plan/bound_sinks.hpp"

namespace holdfast {
namespace {

using bound::PcieUse;
using bound::Sink;

constexpr std::size_t kHost = static_cast<std::size_t>(Level::Host);
// A group over more hosts than this is cut at domains and holders alone.
constexpr std::size_t kMostHosts = 16;
// Sets of receivers times arcs of the whole graph below which Auto is Exact.
constexpr std::size_t kExactEffort = 300'000;

class Family {
 public:
  Family(const Topology& topology, const Demand& demand, BoundMode mode)
      : index_(topology, demand),
        graph_(topology, index_.relays()),
        domains_(topology),
        latencies_(graph_, index_),
        result_(count_groups(demand)),
        by_group_(count_groups(demand)),
        by_domain_(topology.domains().size()),
        bytes_into_(topology.domains().size()) {
    for (const WorkerId w : index_.receivers()) {
      by_group_[demand.workers[w.index()].group].push_back(w);
      for (const DomainId d : index_.nest(w)) {
        if (d.valid()) by_domain_[d.index()].push_back(w);
      }
    }
    lenses_.emplace_back(*this, PcieUse::Apart);
    if (memory_serves()) lenses_.emplace_back(*this, PcieUse::Joined);
    const std::size_t sets = index_.receivers().size() + by_group_.size() + by_domain_.size();
    exact_ = mode == BoundMode::Exact ||
             (mode == BoundMode::Auto && sets * graph_.arcs().size() <= kExactEffort);
  }

  Bound solve() && {
    if (index_.receivers().empty()) return std::move(result_).take();
    std::vector<std::vector<std::uint32_t>> groups_of_host(by_domain_.size());
    std::vector<std::uint32_t> wide_groups;
    for (std::uint32_t g = 0; g < by_group_.size(); ++g) {
      if (by_group_[g].empty()) continue;
      const std::vector<DomainId> hosts = hosts_of(by_group_[g]);
      if (hosts.size() == 1) {
        groups_of_host[hosts.front().index()].push_back(g);
      } else {
        wide_groups.push_back(g);
      }
    }
    for (std::size_t d = 0; d < by_domain_.size(); ++d) {
      if (level_of(d) == Level::Host && !by_domain_[d].empty()) cut_host(d, groups_of_host[d]);
    }
    for (const std::uint32_t g : wide_groups) cut_wide_group(g);
    for (const Level level : {Level::Rack, Level::Pod, Level::Datacenter}) {
      for (std::size_t d = 0; d < by_domain_.size(); ++d) {
        if (level_of(d) == level && !by_domain_[d].empty()) cut_domain(d);
      }
    }
    cut_all();
    bound::offer_lone_shards(index_, latencies_, result_);
    bound::offer_copies(index_, domains_, latencies_, bytes_into_, result_);
    bound::offer_digests(index_, latencies_, result_);
    return std::move(result_).take();
  }

 private:
  static std::size_t count_groups(const Demand& demand) {
    std::size_t groups = 0;
    for (const DemandWorker& worker : demand.workers) {
      groups = std::max<std::size_t>(groups, std::size_t{worker.group} + 1);
    }
    return groups;
  }

  [[nodiscard]] bool memory_serves() const {
    for (std::size_t i = 0; i < index_.demand().workers.size(); ++i) {
      const WorkerId w(i);
      const Node& node = index_.topology().node(index_.demand().workers[i].node);
      if (node.kind == NodeKind::HostMemory && (!index_.serves(w).empty() || index_.may_relay(w))) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] Level level_of(std::size_t d) const { return index_.topology().domains()[d].level; }
  [[nodiscard]] const std::string& name_of(std::size_t d) const {
    return index_.topology().domains()[d].name;
  }
  [[nodiscard]] std::vector<DomainId> hosts_of(const std::vector<WorkerId>& workers) const {
    std::vector<DomainId> hosts;
    for (const WorkerId w : workers) hosts.push_back(index_.nest(w)[kHost]);
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    return hosts;
  }
  [[nodiscard]] Sink group_sink(std::uint32_t g) const {
    return {CutKind::Group, fmt::format("group {}", g), by_group_[g]};
  }

  // From here on the sinks lie in these hosts; none: anywhere.
  void look_at(std::span<const DomainId> hosts) {
    for (Lens& lens : lenses_) {
      lens.near.reset();
      if (!exact_ && !hosts.empty()) lens.near = lens.cuts.view_of(hosts);
    }
  }

  // The cuts that every set gets.
  void cut(const Sink& sink) {
    for (Lens& lens : lenses_) {
      lens.cuts.begin(sink);
      if (exact_) {
        if (!lens.whole) lens.whole = lens.cuts.view_of_all();
        lens.cuts.cut_in(*lens.whole);
        continue;
      }
      if (lens.near) lens.cuts.cut_in(*lens.near);
      lens.cuts.cut_at_domains();
      lens.cuts.cut_at_holders();
      lens.cuts.cut_among_holders();
    }
  }

  // Of the sink that was cut last.
  [[nodiscard]] std::uint64_t bytes_into(std::size_t domain) const {
    return lenses_.front().cuts.bytes_into(DomainId(domain));
  }

  void cut_host(std::size_t host, const std::vector<std::uint32_t>& groups) {
    const DomainId id(host);
    look_at({&id, 1});
    for (const WorkerId w : by_domain_[host]) {
      const NodeId node = index_.demand().workers[w.index()].node;
      cut({CutKind::Receiver, index_.topology().node(node).name, {w}});
    }
    for (const std::uint32_t g : groups) cut(group_sink(g));
    cut({CutKind::Domain, name_of(host), by_domain_[host]});
    bytes_into_[host] = bytes_into(host);
  }

  void cut_wide_group(std::uint32_t g) {
    const std::vector<DomainId> hosts = hosts_of(by_group_[g]);
    look_at(hosts.size() <= kMostHosts ? std::span(hosts) : std::span<const DomainId>());
    cut(group_sink(g));
  }

  void cut_domain(std::size_t d) {
    look_at({});
    cut({CutKind::Domain, name_of(d), by_domain_[d]});
    bytes_into_[d] = bytes_into(d);
  }

  // All receivers, and those outside each domain that has all holders of some class: there the
  // holders may be what limits.
  void cut_all() {
    const std::span<const WorkerId> all = index_.receivers();
    look_at({});
    cut({CutKind::Domain, "all receivers", {all.begin(), all.end()}});
    std::vector<DomainId> around;
    for (std::uint32_t set = 0; set < index_.holder_sets(); ++set) {
      for (const DomainId d : index_.around_holders(set)) {
        if (d.valid()) around.push_back(d);
      }
    }
    std::sort(around.begin(), around.end());
    around.erase(std::unique(around.begin(), around.end()), around.end());
    if (around.size() > kMostOutsides) around.resize(kMostOutsides);
    for (const DomainId d : around) {
      const auto level = static_cast<std::size_t>(level_of(d.index()));
      Sink outside{CutKind::Domain, "outside " + name_of(d.index()), {}};
      for (const WorkerId w : all) {
        if (index_.nest(w)[level] != d) outside.workers.push_back(w);
      }
      if (!outside.workers.empty()) cut(outside);
    }
  }

  // A network that flows are looked at through.
  struct Lens {
    Lens(Family& family, PcieUse use)
        : graph(family.index_.topology(), family.index_.relays(), use),
          cuts(graph, family.index_, family.domains_, family.latencies_, family.result_) {}
    bound::RoutingGraph graph;
    bound::SinkCuts cuts;  // refers to the graph
    std::optional<bound::SuppliedView> near;
    std::optional<bound::SuppliedView> whole;  // made when it is first needed
  };

  // Domains whose outside is looked at as one set of receivers, lowest numbers first.
  static constexpr std::size_t kMostOutsides = 64;

  bound::DemandIndex index_;
  bound::RoutingGraph graph_;
  bound::DomainCuts domains_;
  bound::Latencies latencies_;
  bound::Result result_;
  std::vector<std::vector<WorkerId>> by_group_;   // receivers
  std::vector<std::vector<WorkerId>> by_domain_;  // receivers
  std::vector<std::uint64_t> bytes_into_;         // by domain: distinct, held nowhere in it
  std::deque<Lens> lenses_;
  bool exact_ = false;
};

}  // namespace

const char* to_string(CutKind kind) {
  switch (kind) {
    case CutKind::Receiver:
      return "receiver";
    case CutKind::Group:
      return "group";
    case CutKind::Domain:
      return "domain";
    case CutKind::Copies:
      return "copies";
    case CutKind::Digest:
      return "digest";
  }
  return "unknown";
}

Bound lower_bound(const Topology& topology, const Demand& demand, BoundMode mode) {
  return Family(topology, demand, mode).solve();
}

}  // namespace holdfast
