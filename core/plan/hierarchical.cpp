#include "core/plan/hierarchical.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/plan/class_hosts.hpp"
#include "core/plan/cost_model.hpp"
#include "core/plan/local_spread.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/two_tree.hpp"

namespace holdfast {
namespace {

// Hosts of one class that lie in one domain of the level at which a stripe enters once.
struct Site {
  std::vector<const ClassHost*> sources;    // with holders
  std::vector<const ClassHost*> receivers;  // without, but with relays
  std::optional<std::size_t> fed_from;  // the site whose hosts feed it; none where it has sources
};

// One tree of one class.
struct Strand {
  StripeId id;
  Bytes bytes;
  std::uint32_t rail = 0;
  std::uint32_t turn = 0;  // numbers the class's stripes
  TreeSide side = TreeSide::First;
  std::uint32_t rotation = 0;  // of the list of a site that is fed from outside
};

// The domain of that level or, where a machine has none of it, of the next level that it has.
DomainId site_around(const Topology& topology, DomainId host, Level level) {
  for (auto up = static_cast<std::size_t>(level); host.valid() && up < kLevels; ++up) {
    const DomainId domain = topology.around(host, static_cast<Level>(up));
    if (domain.valid()) return domain;
  }
  return {};
}

class Planner {
 public:
  Planner(const PlanSpace& space, Level level)
      : space_(space),
        level_(level),
        paths_(space),
        builder_(space),
        spread_(space, paths_, builder_),
        sent_(space.topology().nodes().size()),
        repeats_(wan_repeats()) {}

  Plan plan() {
    const auto classes = static_cast<std::uint32_t>(space_.demand().classes.size());
    for (std::uint32_t k = 0; k < classes; ++k) plan_class(ClassId(k));
    return std::move(builder_).finish();
  }

 private:
  void plan_class(ClassId id);
  std::vector<Strand> cut_into_strands(ClassId id, const ClassHosts& hosts);
  std::vector<Site> group_into_sites(const ClassHosts& hosts) const;
  std::vector<std::size_t> order_sites(std::vector<Site>& sites);
  void add_trees_of_sources(const Site& site, const Strand& strand);
  void add_tree_of_fed_site(const Site& site, const Strand& strand);
  void feed_site(const std::vector<Site>& sites, std::size_t to, const Strand& strand);
  void add_leaves(const ClassHosts& hosts, const std::vector<Strand>& strands);
  void add_host_edge(const Strand& strand, const ClassHost& parent, const ClassHost& child);
  [[nodiscard]] Rate width(const Site& from, const Site& to);
  [[nodiscard]] std::uint32_t wan_repeats() const;

  [[nodiscard]] const Slot& slot(const ClassHost& host, const Strand& strand) const {
    return host.slot(space_, strand.rail, strand.turn);
  }
  [[nodiscard]] Bytes& sent_by(const Slot& slot) {
    return sent_[(slot.nic.valid() ? slot.nic : space_.node(slot.gateway)).index()];
  }

  const PlanSpace& space_;
  Level level_;
  PathChooser paths_;
  PlanBuilder builder_;
  LocalSpread spread_;
  std::vector<Bytes> sent_;  // to other hosts, by NIC
  std::unordered_map<std::uint64_t, Rate> widths_;
  std::uint32_t repeats_;
};

// How often a class's stripes must be repeated so that all stripes together have half as many
// streams again as fill the WAN: a stream that pauses or ends early must not leave it idle.
std::uint32_t Planner::wan_repeats() const {
  const Topology& topology = space_.topology();
  std::unordered_map<DomainId, std::uint64_t> needed_by_datacenter;
  std::uint64_t needed = 0;
  for (const Link& link : topology.links()) {
    if (!link.stream_cap || !link.up) continue;
    const std::uint64_t cap = link.stream_cap->bytes_per_second();
    const std::uint64_t streams = (link.capacity.bytes_per_second() * 3 + 2 * cap - 1) / (2 * cap);
    for (const NodeId end : {link.a, link.b}) {
      std::uint64_t& sum = needed_by_datacenter[topology.around(end, Level::Datacenter)];
      needed = std::max(needed, sum += streams);
    }
  }
  if (needed == 0) return 1;
  Bytes all;
  std::vector<Bytes> of_class;
  for (const BlockClass& c : space_.demand().classes) {
    of_class.push_back(bytes_of(space_.demand(), c));
    all += of_class.back();
  }
  constexpr std::uint64_t kSmallest = 100;  // a class below 1 % of the bytes fills nothing
  std::uint64_t planned = 0;
  for (std::size_t k = 0; k < of_class.size(); ++k) {
    if (of_class[k] * kSmallest < all) continue;
    const ClassHosts hosts(space_, space_.demand().classes[k]);
    planned += 2 * hosts.rails.size();
  }
  return static_cast<std::uint32_t>((needed + planned - 1) / std::max<std::uint64_t>(planned, 1));
}

void Planner::plan_class(ClassId id) {
  const BlockClass& c = space_.demand().classes[id.index()];
  const ClassHosts hosts(space_, c);
  std::vector<Site> sites = group_into_sites(hosts);
  const std::vector<std::size_t> fed = order_sites(sites);
  const std::vector<Strand> strands = cut_into_strands(id, hosts);
  for (const Strand& strand : strands) {
    for (const Site& site : sites) {
      if (site.fed_from) {
        add_tree_of_fed_site(site, strand);
      } else {
        add_trees_of_sources(site, strand);
      }
    }
  }
  // Only now is it known who has egress to spare.
  for (const std::size_t to : fed) {
    for (const Strand& strand : strands) feed_site(sites, to, strand);
  }
  const Bytes class_bytes = bytes_of(space_.demand(), c);
  for (const ClassHost& host : hosts.hosts) {
    if (host.relays.empty()) continue;
    std::vector<StripeEntry> entries;
    for (const Strand& strand : strands) {
      entries.push_back({strand.id, strand.bytes, slot(host, strand).gateway});
    }
    spread_.add(host, std::move(entries), class_bytes);
  }
  add_leaves(hosts, strands);
}

std::vector<Strand> Planner::cut_into_strands(ClassId id, const ClassHosts& hosts) {
  const auto rails = static_cast<std::uint32_t>(hosts.rails.size());
  const std::uint32_t sides = hosts.remote ? 2 : 1;
  const std::uint32_t repeats = hosts.remote ? repeats_ : 1;
  const auto ids = builder_.add_stripes(id, rails * sides * repeats);
  const Bytes all = bytes_of(space_.demand(), space_.demand().classes[id.index()]);
  std::vector<Strand> strands;
  for (std::uint32_t k = 0; k < ids.size(); ++k) {
    Strand strand;
    strand.id = ids[k];
    strand.bytes = all / ids.size();
    strand.turn = k / rails;
    // Small classes have fewer stripes than rails: starting at the class's number spreads them.
    strand.rail = hosts.rails[(k + id.value()) % rails];
    strand.side = (k / rails) % 2 == 0 ? TreeSide::First : TreeSide::Second;
    strand.rotation = k / (rails * 2);
    strands.push_back(strand);
  }
  return strands;
}

std::vector<Site> Planner::group_into_sites(const ClassHosts& hosts) const {
  std::vector<Site> sites;
  DomainId last;
  for (const ClassHost& host : hosts.hosts) {
    if (!host.serves()) continue;
    const DomainId domain = site_around(space_.topology(), host.host, level_);
    if (sites.empty() || domain != last) sites.emplace_back();
    last = domain;
    (host.holders.empty() ? sites.back().receivers : sites.back().sources).push_back(&host);
  }
  return sites;
}

// What a flow between the two gets: the narrowest link on one way between them.
Rate Planner::width(const Site& from, const Site& to) {
  const ClassHost& a = *(from.sources.empty() ? from.receivers : from.sources).front();
  const ClassHost& b = *to.receivers.front();
  const auto key = (std::uint64_t{a.host.value()} << 32) | b.host.value();
  const auto [known, is_new] = widths_.emplace(key, Rate(0));
  if (!is_new) return known->second;
  const Slot& out = a.slots.front();
  const Slot& in = b.slots.front();
  if (out.nic.valid() && in.nic.valid()) {
    const auto route = space_.router().route(space_.node(out.gateway), space_.node(in.gateway),
                                             Path{out.nic, in.nic, 0});
    if (route) known->second = space_.router().bottleneck(*route);
  }
  return known->second;
}

// Sites without a holder, in the order in which they are reached: over the widest way first, from
// the site that feeds fewest others.
std::vector<std::size_t> Planner::order_sites(std::vector<Site>& sites) {
  std::vector<std::size_t> reached;
  std::vector<std::size_t> waiting;
  std::vector<std::size_t> order;
  std::vector<std::uint32_t> feeds(sites.size(), 0);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    (sites[i].sources.empty() ? waiting : reached).push_back(i);
  }
  while (!waiting.empty()) {
    std::size_t best_to = 0;
    std::size_t best_from = 0;
    std::tuple<std::uint64_t, std::uint32_t, std::size_t> best_cost{};
    bool found = false;
    // All waiting sites are alike to the order but for their width; looking at the first few keeps
    // this near-linear for hundreds of racks.
    for (std::size_t w = 0; w < std::min<std::size_t>(waiting.size(), 8); ++w) {
      for (const std::size_t from : reached) {
        const std::uint64_t narrowness = ~width(sites[from], sites[waiting[w]]).bytes_per_second();
        const std::tuple cost{narrowness, feeds[from], from};
        if (found && cost >= best_cost) continue;
        found = true;
        best_cost = cost;
        best_from = from;
        best_to = w;
      }
    }
    const std::size_t to = waiting[best_to];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(best_to));
    sites[to].fed_from = best_from;
    ++feeds[best_from];
    reached.push_back(to);
    order.push_back(to);
  }
  return order;
}

void Planner::add_host_edge(const Strand& strand, const ClassHost& parent, const ClassHost& child) {
  const Slot& out = slot(parent, strand);
  const Slot& in = slot(child, strand);
  std::optional<Path> path;
  if (out.nic.valid() && in.nic.valid()) path = paths_.fabric(out.nic, in.nic);
  if (!path) path = paths_.any(out.gateway, in.gateway);
  builder_.add_edge(strand.id, in.gateway, out.gateway, *path);
  sent_by(out) += strand.bytes;
}

void Planner::add_trees_of_sources(const Site& site, const Strand& strand) {
  const std::vector<Part> parts = equal_parts(site.receivers.size(), site.sources.size());
  for (std::size_t h = 0; h < site.sources.size(); ++h) {
    const auto parents = two_tree_parents(parts[h].count, strand.side);
    const auto at = [&](std::uint32_t position) -> const ClassHost& {
      return position == 0 ? *site.sources[h] : *site.receivers[parts[h].first + position - 1];
    };
    for (std::uint32_t i = 1; i <= parts[h].count; ++i) {
      add_host_edge(strand, at(parents[i]), at(i));
    }
  }
}

// The position in a fed site's list that stands at `position` of the tree. Repeated stripes start
// elsewhere in the list, so that they enter through other hosts.
std::size_t rotated(std::uint32_t position, std::uint32_t rotation, std::uint32_t repeats,
                    std::size_t n) {
  return (position - 1 + rotation * n / repeats) % n;
}

void Planner::add_tree_of_fed_site(const Site& site, const Strand& strand) {
  const std::size_t n = site.receivers.size();
  const auto parents = two_tree_parents(static_cast<std::uint32_t>(n), strand.side);
  for (std::uint32_t i = 1; i <= n; ++i) {
    if (parents[i] == 0) continue;
    add_host_edge(strand, *site.receivers[rotated(parents[i], strand.rotation, repeats_, n)],
                  *site.receivers[rotated(i, strand.rotation, repeats_, n)]);
  }
}

void Planner::feed_site(const std::vector<Site>& sites, std::size_t to, const Strand& strand) {
  const Site& site = sites[to];
  const Site& from = sites[*site.fed_from];
  const std::size_t n = site.receivers.size();
  const auto parents = two_tree_parents(static_cast<std::uint32_t>(n), strand.side);
  std::uint32_t root = 1;
  while (parents[root] != 0) ++root;
  // The tail of the list is farthest from its root: at equal load it is the later host that feeds.
  const ClassHost* feeder = nullptr;
  for (const auto* hosts : {&from.sources, &from.receivers}) {
    for (const ClassHost* host : *hosts) {
      if (feeder == nullptr || sent_by(slot(*host, strand)) <= sent_by(slot(*feeder, strand))) {
        feeder = host;
      }
    }
  }
  add_host_edge(strand, *feeder, *site.receivers[rotated(root, strand.rotation, repeats_, n)]);
}

// Receivers that may not serve read from a member of their host, else from hosts in turn.
void Planner::add_leaves(const ClassHosts& hosts, const std::vector<Strand>& strands) {
  std::vector<const ClassHost*> serving;
  for (const ClassHost& host : hosts.hosts) {
    if (host.serves()) serving.push_back(&host);
  }
  std::size_t next = 0;
  for (const ClassHost& host : hosts.hosts) {
    for (const WorkerId leaf : host.leaves) {
      const ClassHost& source = host.serves() ? host : *serving[next++ % serving.size()];
      for (const Strand& strand : strands) {
        const WorkerId parent = slot(source, strand).gateway;
        builder_.add_edge(strand.id, leaf, parent, paths_.any(parent, leaf));
      }
    }
  }
}

}  // namespace

Plan plan_hierarchical(const PlanSpace& space, Level sites) {
  return Planner(space, sites).plan();
}

Plan plan_hierarchical(const PlanSpace& space) {
  constexpr std::array kLevelsTried{Level::Datacenter, Level::Pod, Level::Rack};
  constexpr std::size_t kMostSites = 256;
  std::optional<Plan> best;
  Time best_time;
  std::size_t sites_before = 0;
  for (const Level level : kLevelsTried) {
    std::vector<DomainId> domains;
    for (const DemandWorker& w : space.demand().workers) {
      const DomainId host = space.topology().around(w.node, Level::Host);
      domains.push_back(site_around(space.topology(), host, level));
    }
    std::sort(domains.begin(), domains.end());
    const auto sites =
        static_cast<std::size_t>(std::unique(domains.begin(), domains.end()) - domains.begin());
    if (best && (sites == sites_before || sites > kMostSites)) continue;
    sites_before = sites;
    Plan plan = plan_hierarchical(space, level);
    const Time time = predict(plan, space.demand(), space.router()).makespan;
    if (best && time >= best_time) continue;
    best = std::move(plan);
    best_time = time;
  }
  return std::move(*best);
}

}  // namespace holdfast
