#include "core/plan/hierarchical.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/plan/class_hosts.hpp"
#include "core/plan/local_spread.hpp"
#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/route_smoother.hpp"
#include "core/plan/slow_entries.hpp"
#include "core/plan/strands.hpp"

namespace holdfast {
namespace {

using HostList = std::vector<const ClassHost*>;

// Hosts in the order in which a tree goes through them.
struct TreeOrder {
  HostList hosts;
  const ClassHost* below_first = nullptr;  // reads from the first in both trees
};

// In two trees over an odd number of hosts the first is a leaf of both and, like every other, can
// feed two: there stands the host that is to feed nobody or, where the number is even with it, the
// one that feeds it.
TreeOrder order_for_tree(HostList hosts, const ClassHost* leaf) {
  const auto at = std::find(hosts.begin(), hosts.end(), leaf);
  if (at == hosts.end()) return {std::move(hosts), nullptr};
  const bool odd = hosts.size() % 2 == 1;
  hosts.erase(at);
  if (!odd) return {std::move(hosts), leaf};
  hosts.insert(hosts.begin(), leaf);
  return {std::move(hosts), nullptr};
}

// A class on its way through the planner.
struct ClassPlan {
  ClassPlan(const PlanSpace& space, const BlockClass& c, const SlowLinks& slow)
      : hosts(space, c, slow) {}

  ClassHosts hosts;
  Bytes bytes;
  std::vector<Site> sites;
  std::vector<std::size_t> fed;  // sites in the order in which they are reached
  std::vector<Strand> strands;
  std::vector<HostList> apart;  // by strand: hosts that are in no tree of it
};

class Planner {
 public:
  Planner(const PlanSpace& space, const HierarchicalShape& shape)
      : space_(space),
        shape_(shape),
        paths_(space),
        builder_(space),
        spread_(space, paths_, builder_),
        site_planner_(space, shape.sites),
        cutter_(space, shape.slow),
        sent_(space.topology().nodes().size()) {}

  Plan plan();

 private:
  void begin_class(ClassId id);
  void add_trees(ClassPlan& c);
  void add_trees_of_sources(const Strand& strand, const Site& site, const HostList& receivers);
  void add_tree_of_fed_site(const Strand& strand, const Site& site, const HostList& receivers);
  [[nodiscard]] const ClassHost* only_slow_host(const Site& site);
  [[nodiscard]] const ClassHost& idlest(const Strand& strand, const Site& site);
  void feed_site(const ClassPlan& c, const Strand& strand, std::size_t to);
  void add_host_edge(const Strand& strand, const ClassHost& parent, const ClassHost& child);
  void lay_trees();
  void spread_inside_hosts(const ClassPlan& c, SlowEntries& exceptions);
  void feed_slow_workers(const ClassPlan& c, SlowEntries& exceptions) const;
  void add_leaves(const ClassPlan& c);
  [[nodiscard]] HostList serving(const ClassPlan& c, std::size_t strand) const;
  [[nodiscard]] HostList in_tree(const Strand& strand, const Site& site) const;

  [[nodiscard]] const Slot& slot(const ClassHost& host, const Strand& strand) const {
    return host.slot(space_, strand.rail, strand.turn);
  }
  [[nodiscard]] Bytes& sent_by(const Slot& slot) {
    return sent_[(slot.nic.valid() ? slot.nic : space_.node(slot.gateway)).index()];
  }

  // An edge out of a slow slot of a host with holders, to be laid when the trees are.
  struct LateEdge {
    const Strand* strand;
    const ClassHost* parent;
    const ClassHost* child;
  };

  // An edge of a strand's tree.
  struct TreeEdge {
    const Strand* strand;
    WorkerId child;
    WorkerId parent;
  };

  const PlanSpace& space_;
  const HierarchicalShape& shape_;
  PathChooser paths_;
  PlanBuilder builder_;
  LocalSpread spread_;
  SitePlanner site_planner_;
  StrandCutter cutter_;
  std::vector<Bytes> sent_;  // to other hosts, by NIC
  std::vector<ClassPlan> classes_;
  std::vector<LateEdge> late_;
  std::unordered_map<DomainId, bool> slow_hosts_;
  std::set<const ClassHost*> leaves_;  // that feed nobody
  // Where a host with a slow slot stands in a tree all the same: who feeds it.
  std::map<std::pair<const Strand*, const ClassHost*>, const ClassHost*> entered_from_;
  std::vector<TreeEdge> tree_edges_;
  std::vector<RoutedEdge> routed_;  // the same
};

Plan Planner::plan() {
  const std::size_t classes = space_.demand().classes.size();
  classes_.reserve(classes);
  for (std::size_t k = 0; k < classes; ++k) begin_class(ClassId(k));
  for (ClassPlan& c : classes_) add_trees(c);
  // Only now is it known who has egress to spare.
  for (const ClassPlan& c : classes_) {
    for (const std::size_t to : c.fed) {
      for (const Strand& strand : c.strands) feed_site(c, strand, to);
    }
  }
  lay_trees();
  SlowEntries exceptions(space_, paths_, builder_, shape_.goal);
  for (const LateEdge& edge : late_) {
    exceptions.feed_from_holders(*edge.strand, *edge.parent, slot(*edge.child, *edge.strand));
  }
  for (const ClassPlan& c : classes_) spread_inside_hosts(c, exceptions);
  for (const ClassPlan& c : classes_) feed_slow_workers(c, exceptions);
  for (const ClassPlan& c : classes_) add_leaves(c);
  return std::move(builder_).finish();
}

void Planner::begin_class(ClassId id) {
  const BlockClass& block_class = space_.demand().classes[id.index()];
  ClassPlan& c = classes_.emplace_back(space_, block_class, shape_.slow);
  c.bytes = bytes_of(space_.demand(), block_class);
  c.sites = site_planner_.group(c.hosts);
  for (Site& site : c.sites) {
    site.leaf = only_slow_host(site);
    if (site.leaf != nullptr) leaves_.insert(site.leaf);
  }
  c.fed = site_planner_.order(c.sites);
  c.strands = cutter_.cut(id, c.hosts, builder_);
  c.apart.resize(c.strands.size());
}

// The one receiving host of a site with a slow way out, if there is one and no more: its other NICs
// have to take what that way cannot, so it should not feed anybody, over whichever.
const ClassHost* Planner::only_slow_host(const Site& site) {
  const ClassHost* only = nullptr;
  if (shape_.slow.empty() || cutter_.repeats() > 1) return only;
  for (const ClassHost* host : site.receivers) {
    const auto [known, is_new] = slow_hosts_.emplace(host->host, false);
    if (is_new) known->second = shape_.slow.host(host->host);
    if (!known->second) continue;
    if (only != nullptr) return nullptr;
    only = host;
  }
  return only;
}

// The receiving hosts of a site that the strand's tree goes through: those without a slow slot, or
// with the only one, or, where a site that has to be fed has no other, all.
HostList Planner::in_tree(const Strand& strand, const Site& site) const {
  HostList hosts;
  for (const ClassHost* host : site.receivers) {
    if (!slot(*host, strand).slow || host == site.leaf) hosts.push_back(host);
  }
  return hosts.empty() && !site.feeders.empty() ? site.receivers : hosts;
}

// Hosts that have the strand once its trees are laid, in domain order.
HostList Planner::serving(const ClassPlan& c, std::size_t strand) const {
  const HostList& apart = c.apart[strand];
  HostList hosts;
  for (const ClassHost& host : c.hosts.hosts) {
    if (!host.serves()) continue;
    if (std::find(apart.begin(), apart.end(), &host) == apart.end()) hosts.push_back(&host);
  }
  return hosts;
}

void Planner::add_trees(ClassPlan& c) {
  for (std::size_t s = 0; s < c.strands.size(); ++s) {
    const Strand& strand = c.strands[s];
    for (const Site& site : c.sites) {
      const HostList receivers = in_tree(strand, site);
      if (receivers.size() != site.receivers.size() || site.leaf != nullptr) {
        std::copy_if(site.receivers.begin(), site.receivers.end(), std::back_inserter(c.apart[s]),
                     [&](const ClassHost* host) { return slot(*host, strand).slow; });
      }
      if (!site.feeders.empty()) {
        add_tree_of_fed_site(strand, site, receivers);
      } else {
        add_trees_of_sources(strand, site, receivers);
      }
    }
  }
}

void Planner::add_host_edge(const Strand& strand, const ClassHost& parent, const ClassHost& child) {
  const Slot& out = slot(parent, strand);
  const Slot& in = slot(child, strand);
  if (in.slow && leaves_.contains(&child)) {
    entered_from_[{&strand, &child}] = &parent;
    sent_by(out) += strand.bytes();
    return;
  }
  if (out.slow && !parent.holders.empty() && in.nic.valid()) {
    late_.push_back({&strand, &parent, &child});
    return;
  }
  std::optional<Path> path;
  if (out.nic.valid() && in.nic.valid()) path = paths_.fabric(out.nic, in.nic, strand.bytes());
  if (!path) path = paths_.any(out.gateway, in.gateway, strand.bytes());
  paths_.charge(out.gateway, in.gateway, *path, strand.bytes());
  sent_by(out) += strand.bytes();
  tree_edges_.push_back({&strand, in.gateway, out.gateway});
  routed_.push_back({*path, strand.bytes()});
}

// Lays the edges of all trees, over better routes than they were given one by one.
void Planner::lay_trees() {
  RouteSmoother(space_, paths_.load()).smooth(routed_);
  for (std::size_t e = 0; e < tree_edges_.size(); ++e) {
    const TreeEdge& edge = tree_edges_[e];
    for (const StripeId stripe : edge.strand->stripes) {
      builder_.add_edge(stripe, edge.child, edge.parent, routed_[e].path);
    }
  }
}

void Planner::add_trees_of_sources(const Strand& strand, const Site& site,
                                   const HostList& receivers) {
  const std::vector<Part> parts = equal_parts(receivers.size(), site.sources.size());
  for (std::size_t h = 0; h < site.sources.size(); ++h) {
    const auto first = receivers.begin() + parts[h].first;
    const TreeOrder order = order_for_tree(HostList(first, first + parts[h].count), site.leaf);
    const auto count = static_cast<std::uint32_t>(order.hosts.size());
    const auto parents = two_tree_parents(count, strand.side);
    const auto at = [&](std::uint32_t position) -> const ClassHost& {
      return position == 0 ? *site.sources[h] : *order.hosts[position - 1];
    };
    for (std::uint32_t i = 1; i <= count; ++i) add_host_edge(strand, at(parents[i]), at(i));
    if (order.below_first != nullptr) add_host_edge(strand, at(1), *order.below_first);
  }
}

// The position in a fed site's list that stands at `position` of the tree. Repeated stripes start
// elsewhere in the list, so that they enter through other hosts.
std::size_t rotated(std::uint32_t position, std::uint32_t rotation, std::uint32_t repeats,
                    std::size_t n) {
  return (position - 1 + rotation * n / repeats) % n;
}

void Planner::add_tree_of_fed_site(const Strand& strand, const Site& site,
                                   const HostList& receivers) {
  const TreeOrder order = order_for_tree(receivers, site.leaf);
  const HostList& hosts = order.hosts;
  const std::size_t n = hosts.size();
  const auto parents = two_tree_parents(static_cast<std::uint32_t>(n), strand.side);
  for (std::uint32_t i = 1; i <= n; ++i) {
    if (parents[i] == 0) continue;
    add_host_edge(strand, *hosts[rotated(parents[i], strand.rotation, cutter_.repeats(), n)],
                  *hosts[rotated(i, strand.rotation, cutter_.repeats(), n)]);
  }
  if (order.below_first != nullptr) add_host_edge(strand, *hosts.front(), *order.below_first);
}

// The host of a site that sends least so far. The tail of the list is farthest from its root: at
// equal load it is the later one.
const ClassHost& Planner::idlest(const Strand& strand, const Site& site) {
  const ClassHost* best = nullptr;
  const HostList relays = in_tree(strand, site);
  for (const HostList* hosts : {&site.sources, &relays}) {
    for (const ClassHost* host : *hosts) {
      const bool slower = best != nullptr && (slot(*host, strand).slow || host == site.leaf);
      if (best == nullptr || slot(*best, strand).slow || best == site.leaf ||
          (!slower && sent_by(slot(*host, strand)) <= sent_by(slot(*best, strand)))) {
        best = host;
      }
    }
  }
  return *best;
}

// Between several lines into a datacenter the stripes are shared out so that all end at one time.
void Planner::feed_site(const ClassPlan& c, const Strand& strand, std::size_t to) {
  const HostList receivers = order_for_tree(in_tree(strand, c.sites[to]), c.sites[to].leaf).hosts;
  const std::size_t n = receivers.size();
  const auto parents = two_tree_parents(static_cast<std::uint32_t>(n), strand.side);
  std::uint32_t root = 1;
  while (parents[root] != 0) ++root;
  const ClassHost& child = *receivers[rotated(root, strand.rotation, cutter_.repeats(), n)];
  const std::vector<Feeder>& feeders = c.sites[to].feeders;
  const ClassHost* best = &idlest(strand, c.sites[feeders.front().site]);
  if (feeders.size() > 1) {
    double best_time = std::numeric_limits<double>::infinity();
    for (const Feeder& feeder : feeders) {
      const ClassHost& host = idlest(strand, c.sites[feeder.site]);
      const Slot& out = slot(host, strand);
      const Slot& in = slot(child, strand);
      if (!out.nic.valid() || !in.nic.valid()) continue;
      const auto time = paths_.least_time(out.nic, in.nic, strand.bytes());
      if (!time || *time >= best_time) continue;
      best = &host;
      best_time = *time;
    }
  }
  add_host_edge(strand, *best, child);
}

void Planner::feed_slow_workers(const ClassPlan& c, SlowEntries& exceptions) const {
  const bool any = std::any_of(c.hosts.hosts.begin(), c.hosts.hosts.end(),
                               [](const ClassHost& host) { return !host.slow.empty(); });
  for (std::size_t s = 0; any && s < c.strands.size(); ++s) {
    const HostList servers = serving(c, s);
    for (const ClassHost& host : c.hosts.hosts) {
      exceptions.feed_slow_workers(c.strands[s], host, servers);
    }
  }
}

void Planner::spread_inside_hosts(const ClassPlan& c, SlowEntries& exceptions) {
  std::unordered_map<const ClassHost*, std::vector<StripeEntry>> entered_apart;
  for (std::size_t s = 0; s < c.strands.size(); ++s) {
    if (c.apart[s].empty()) continue;
    const HostList servers = serving(c, s);
    for (const ClassHost* host : c.apart[s]) {
      auto& entries = entered_apart[host];
      const auto from = entered_from_.find({&c.strands[s], host});
      const auto entered = from == entered_from_.end()
                               ? exceptions.enter(c.strands[s], *host, servers)
                               : exceptions.enter(c.strands[s], *host, {&from->second, 1});
      entries.insert(entries.end(), entered.begin(), entered.end());
    }
  }
  for (const ClassHost& host : c.hosts.hosts) {
    if (host.relays.empty()) continue;
    std::vector<StripeEntry> entries;
    for (std::size_t s = 0; s < c.strands.size(); ++s) {
      const Strand& strand = c.strands[s];
      if (std::find(c.apart[s].begin(), c.apart[s].end(), &host) != c.apart[s].end()) continue;
      for (const StripeId stripe : strand.stripes) {
        entries.push_back({stripe, strand.stripe_bytes, slot(host, strand).gateway, strand.number});
      }
    }
    const auto apart = entered_apart.find(&host);
    if (apart != entered_apart.end()) {
      entries.insert(entries.end(), apart->second.begin(), apart->second.end());
    }
    spread_.add(host, std::move(entries), c.bytes);
  }
}

// Receivers that may not serve read from a member of their host, else from hosts in turn: those of
// their datacenter if there are any.
void Planner::add_leaves(const ClassPlan& c) {
  struct Turn {
    HostList hosts;
    std::size_t next = 0;
    const ClassHost& take() { return *hosts[next++ % hosts.size()]; }
  };
  Turn all;
  std::map<DomainId, Turn> near;
  for (const ClassHost& host : c.hosts.hosts) {
    if (!host.serves()) continue;
    all.hosts.push_back(&host);
    near[space_.topology().around(host.host, Level::Datacenter)].hosts.push_back(&host);
  }
  for (const ClassHost& host : c.hosts.hosts) {
    for (const WorkerId leaf : host.leaves) {
      const auto here = near.find(space_.topology().around(host.host, Level::Datacenter));
      const ClassHost& source = host.serves()        ? host
                                : here == near.end() ? all.take()
                                                     : here->second.take();
      for (const Strand& strand : c.strands) {
        const WorkerId parent = slot(source, strand).gateway;
        const Path path = paths_.any(parent, leaf, strand.bytes());
        for (const StripeId stripe : strand.stripes) builder_.add_edge(stripe, leaf, parent, path);
        paths_.charge(parent, leaf, path, strand.bytes());
      }
    }
  }
}

}  // namespace

Plan plan_hierarchical(const PlanSpace& space, const HierarchicalShape& shape) {
  return Planner(space, shape).plan();
}

}  // namespace holdfast
