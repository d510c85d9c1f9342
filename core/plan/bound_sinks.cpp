#include "core/plan/bound_sinks.hpp"

#include <algorithm>

namespace holdfast::bound {
namespace {

constexpr auto kHost = static_cast<std::size_t>(Level::Host);
constexpr std::size_t kMostHolderNodes = 4'096;             // in one view of holders
constexpr std::size_t kMostEffort = std::size_t{1} << 21U;  // arcs in all of them

auto set_pairs(const DemandIndex& index) {
  return [&index](const auto& visit) {
    for (std::uint32_t set = 0; set < index.holder_sets(); ++set) {
      for (const WorkerId w : index.holders(set)) visit(w.index(), set);
    }
  };
}

auto host_pairs(const DemandIndex& index) {
  return [&index](const auto& visit) {
    for (std::size_t i = 0; i < index.demand().workers.size(); ++i) {
      visit(index.nest(WorkerId(i))[kHost].index(), WorkerId(i));
    }
  };
}

DomainId host_of(const DemandIndex& index, WorkerId w) {
  return index.nest(w)[kHost];
}

}  // namespace

std::vector<std::uint32_t> SuppliedView::entries(std::uint32_t set, std::size_t holders) const {
  const auto at = entries_.find(set);
  std::vector<std::uint32_t> list;
  if (at != entries_.end()) list = at->second;
  const bool elsewhere = list.size() < holders;
  std::sort(list.begin(), list.end());
  if (elsewhere) list.push_back(view_.elsewhere());
  return list;
}

SinkCuts::SinkCuts(const RoutingGraph& graph, const DemandIndex& index, const DomainCuts& domains,
                   const Latencies& latencies, Result& result)
    : graph_(&graph),
      index_(&index),
      domains_(&domains),
      latencies_(&latencies),
      result_(&result),
      sets_of_worker_(index.demand().workers.size(), set_pairs(index)),
      workers_of_host_(index.topology().domains().size(), host_pairs(index)),
      needed_(index.demand().classes.size()),
      held_(index.demand().classes.size()),
      wanted_set_(index.holder_sets()),
      set_bytes_(index.holder_sets()),
      counted_(index.holder_sets()) {}

SuppliedView SinkCuts::view_of(std::span<const DomainId> hosts,
                               std::span<const ChannelId> entries) const {
  std::vector<NodeId> nodes;
  for (const DomainId host : hosts) {
    const std::span<const NodeId> members = index_->topology().members(host);
    nodes.insert(nodes.end(), members.begin(), members.end());
  }
  if (hosts.size() > 1) std::sort(nodes.begin(), nodes.end());
  SuppliedView view(View(*graph_, nodes, entries));
  for (const DomainId host : hosts) {
    for (const WorkerId w : workers_of_host_[host.index()]) {
      const NodeId node = index_->demand().workers[w.index()].node;
      for (const std::uint32_t set : sets_of_worker_[w.index()]) {
        view.add_entry(set, view.view().local(graph_->departure(node)));
      }
    }
  }
  return view;
}

SuppliedView SinkCuts::view_of_all() const {
  SuppliedView view{View(*graph_)};
  for (std::uint32_t set = 0; set < index_->holder_sets(); ++set) {
    for (const WorkerId w : index_->holders(set)) {
      view.add_entry(set, graph_->departure(index_->demand().workers[w.index()].node));
    }
  }
  return view;
}

void SinkCuts::begin(const Sink& sink) {
  sink_ = &sink;
  group_ = index_->demand().workers[sink.workers.front().index()].group;
  ++stamp_;
  sets_.clear();
  around_ = index_->nest(sink.workers.front());
  for (const WorkerId w : sink.workers) {
    around_ = common(around_, index_->nest(w));
    for (const ClassId c : index_->serves(w)) held_[c.index()] = stamp_;
  }
  for (const WorkerId w : sink.workers) {
    for (const ClassId c : index_->receives(w)) {
      if (held_[c.index()] == stamp_ || needed_[c.index()] == stamp_) continue;
      needed_[c.index()] = stamp_;
      const std::uint32_t set = index_->holder_set(c);
      if (wanted_set_[set] != stamp_) {
        wanted_set_[set] = stamp_;
        set_bytes_[set] = 0;
        sets_.push_back(set);
      }
      set_bytes_[set] += index_->bytes(c);
    }
  }
  std::sort(sets_.begin(), sets_.end());
}

std::uint64_t SinkCuts::bytes_into(DomainId domain) const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t set : sets_) {
    if (!index_->held_in(set, domain)) bytes += set_bytes_[set];
  }
  return bytes;
}

void SinkCuts::cut_at_domains() {
  std::vector<std::uint32_t> sets;
  for (const DomainId domain : around_) {
    if (!domain.valid()) continue;
    sets.clear();
    Ratio ratio{0, domains_->capacity_into(domain)};
    for (const std::uint32_t set : sets_) {
      if (index_->held_in(set, domain)) continue;
      sets.push_back(set);
      ratio.bytes += set_bytes_[set];
    }
    const auto into = domains_->into(domain);
    offer(sets, ratio, [&] { return std::vector<ChannelId>(into.begin(), into.end()); });
  }
  for (std::size_t level = 0; level < kLevels; ++level) {
    std::vector<std::pair<DomainId, std::uint32_t>> held;
    for (const std::uint32_t set : sets_) {
      const DomainId domain = index_->around_holders(set)[level];
      if (domain.valid()) held.emplace_back(domain, set);
    }
    std::sort(held.begin(), held.end());
    for (std::size_t begin = 0, end = 0; begin < held.size(); begin = end) {
      const DomainId domain = held[begin].first;
      sets.clear();
      Ratio ratio{0, domains_->capacity_out_of(domain)};
      for (; end < held.size() && held[end].first == domain; ++end) {
        sets.push_back(held[end].second);
        ratio.bytes += set_bytes_[held[end].second];
      }
      if (hopeless(ratio) || lies_in(domain, level)) continue;
      const auto out = domains_->out_of(domain);
      offer(sets, ratio, [&] { return std::vector<ChannelId>(out.begin(), out.end()); });
    }
  }
}

void SinkCuts::cut_in(const SuppliedView& view) {
  offer(solve(view, arrivals(view.view())));
}

void SinkCuts::cut_at_holders() {
  const HolderCuts& cuts = holder_cuts(DomainId());
  if (workers_in(cuts.hosts) == 0) offer(cuts.found);
}

void SinkCuts::cut_among_holders() {
  for (std::size_t level = kHost + 1; level < kLevels; ++level) {
    const DomainId domain = around_[level];
    if (!domain.valid() || !straddled(domain)) continue;
    // Without what enters the domain there is no cut here that others do not find.
    Ratio most{0, domains_->capacity_into(domain)};
    for (const std::uint32_t set : sets_) most.bytes += set_bytes_[set];
    if (hopeless(most)) continue;
    const HolderCuts& cuts = holder_cuts(domain);
    if (!cuts.view) continue;
    const std::size_t inside = workers_in(cuts.hosts);
    if (inside == 0) offer(cuts.found);
    if (inside == sink_->workers.size()) {
      offer(solve(*cuts.view, arrivals(cuts.view->view())));
    }
  }
}

// How many of the sink lie in these hosts.
std::size_t SinkCuts::workers_in(const std::vector<DomainId>& hosts) const {
  return static_cast<std::size_t>(
      std::count_if(sink_->workers.begin(), sink_->workers.end(), [&](WorkerId w) {
        return std::binary_search(hosts.begin(), hosts.end(), host_of(*index_, w));
      }));
}

std::vector<std::uint32_t> SinkCuts::arrivals(const View& view) const {
  std::vector<std::uint32_t> sinks;
  for (const WorkerId w : sink_->workers) {
    sinks.push_back(view.local(graph_->arrival(index_->demand().workers[w.index()].node)));
  }
  return sinks;
}

void SinkCuts::offer(const Found& found) {
  for (std::size_t i = 0; i < found.ratios.size(); ++i) {
    offer(found.sets[i], found.ratios[i], [&] { return found.channels[i]; });
  }
}

// Has some holders of a set that the sink wants, and not all.
bool SinkCuts::straddled(DomainId domain) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](std::uint32_t set) {
    const auto level = static_cast<std::size_t>(index_->topology().domain(domain).level);
    return index_->held_in(set, domain) && index_->around_holders(set)[level] != domain;
  });
}

const SinkCuts::HolderCuts& SinkCuts::holder_cuts(DomainId domain) {
  Wanted wanted;
  for (const std::uint32_t set : sets_) wanted.emplace_back(set, set_bytes_[set]);
  const auto [at, fresh] = holder_cuts_.try_emplace({domain, std::move(wanted)});
  HolderCuts& cuts = at->second;
  if (!fresh || effort_ > kMostEffort) return cuts;
  std::vector<DomainId> hosts;
  for (const std::uint32_t set : sets_) {
    for (const WorkerId w : index_->holders(set)) {
      const Nest& nest = index_->nest(w);
      if (domain.valid() && std::find(nest.begin(), nest.end(), domain) == nest.end()) continue;
      hosts.push_back(host_of(*index_, w));
    }
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    std::size_t nodes = 0;
    for (const DomainId host : hosts) nodes += index_->topology().members(host).size();
    if (nodes > kMostHolderNodes) return cuts;
  }
  cuts.hosts = std::move(hosts);
  cuts.view =
      view_of(cuts.hosts, domain.valid() ? domains_->into(domain) : std::span<const ChannelId>());
  effort_ += cuts.view->view().arcs().size();
  cuts.found = solve(*cuts.view, {cuts.view->view().outside()});
  return cuts;
}

SinkCuts::Found SinkCuts::solve(const SuppliedView& view, std::vector<std::uint32_t> sinks) {
  // Sets that come in at the same places are one supply.
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> sets_by_entries;
  for (const std::uint32_t set : sets_) {
    sets_by_entries[view.entries(set, index_->holders(set).size())].push_back(set);
  }
  FlowProblem problem{
      view.view().size(), view.view().arcs(), view.view().rates(), {}, std::move(sinks)};
  std::sort(problem.sinks.begin(), problem.sinks.end());
  for (const auto& [entries, sets] : sets_by_entries) {
    Supply& supply = problem.supplies.emplace_back();
    supply.entries = entries;
    for (const std::uint32_t set : sets) supply.bytes += set_bytes_[set];
  }
  Found found;
  for (const FlowCut& cut : cached(view.view(), problem)) {
    std::vector<std::uint32_t>& sets = found.sets.emplace_back();
    std::uint32_t number = 0;
    for (const auto& [entries, own] : sets_by_entries) {
      if (std::binary_search(cut.supplies.begin(), cut.supplies.end(), number++)) {
        sets.insert(sets.end(), own.begin(), own.end());
      }
    }
    std::vector<ChannelId>& channels = found.channels.emplace_back();
    for (const std::uint32_t arc : cut.arcs) {
      channels.emplace_back(view.view().arcs()[arc].channel);
    }
    std::sort(channels.begin(), channels.end());
    found.ratios.push_back({cut.bytes, cut.capacity});
  }
  return found;
}

const std::vector<FlowCut>& SinkCuts::cached(const View& view, const FlowProblem& problem) {
  CanonicalHasher hasher;
  hasher.add(view.shape()).add(std::uint64_t{problem.sinks.size()});
  for (const std::uint32_t sink : problem.sinks) hasher.add(std::uint64_t{sink});
  for (const Supply& supply : problem.supplies) {
    hasher.add(supply.bytes).add(std::uint64_t{supply.entries.size()});
    for (const std::uint32_t entry : supply.entries) hasher.add(std::uint64_t{entry});
  }
  const auto [at, fresh] = flows_.try_emplace(hasher.finish());
  if (fresh) at->second = parametric_cuts(problem);
  return at->second;
}

template <class Channels>
void SinkCuts::offer(std::span<const std::uint32_t> sets, Ratio ratio, const Channels& channels) {
  if (ratio.bytes == 0 || hopeless(ratio)) return;
  ++counting_;
  for (const std::uint32_t set : sets) counted_[set] = counting_;
  const auto counts = [&](ClassId c) {
    return needed_[c.index()] == stamp_ && counted_[index_->holder_set(c)] == counting_;
  };
  Time latency = Time::never();
  for (const WorkerId w : sink_->workers) {
    for (const ClassId c : index_->receives(w)) {
      if (counts(c)) latency = std::min(latency, latencies_->least(c, w));
    }
  }
  if (sink_->kind == CutKind::Receiver || sink_->kind == CutKind::Group) {
    result_->raise_group(group_, add_times(crossing_time(ratio), latency));
  }
  result_->offer(ratio, latency, [&] {
    Cut cut;
    cut.kind = sink_->kind;
    cut.sink = sink_->name;
    cut.receivers = sink_->workers;
    for (std::size_t c = 0; c < needed_.size(); ++c) {
      if (counts(ClassId(c))) cut.classes.emplace_back(c);
    }
    cut.channels = channels();
    return cut;
  });
}

// Nothing at or below this matters.
Time SinkCuts::threshold() const {
  const bool own = sink_->kind == CutKind::Receiver || sink_->kind == CutKind::Group;
  return own ? std::min(result_->best(group_), result_->best()) : result_->best();
}

bool SinkCuts::hopeless(Ratio ratio) const {
  return ratio.capacity != 0 && add_times(crossing_time(ratio), latencies_->worst()) <= threshold();
}

bool SinkCuts::lies_in(DomainId domain, std::size_t level) const {
  return std::any_of(sink_->workers.begin(), sink_->workers.end(),
                     [&](WorkerId w) { return index_->nest(w)[level] == domain; });
}

}  // namespace holdfast::bound
