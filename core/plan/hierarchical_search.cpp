// Chooses among the shapes that the hierarchical planner can give a plan.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/plan/hierarchical.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostSites = 256;
constexpr double kGoodEnough = 1.03;  // times what some worker or host needs anyway

double seconds_for(Bytes bytes, double rate) {
  return bytes.count() == 0 ? 0 : static_cast<double>(bytes.count()) / rate;
}

bool touches_host(const Topology& topology, const Link& link) {
  return is_inside_host(topology.node(link.a).kind) || is_inside_host(topology.node(link.b).kind);
}

// Links of one kind between like ends differ, or one of them is down.
bool uneven(const Topology& topology) {
  std::map<std::tuple<LinkKind, NodeKind, NodeKind>, Rate> known;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    if (!topology.usable(LinkId(i))) return true;
    const auto ends = std::minmax(topology.node(link.a).kind, topology.node(link.b).kind);
    const auto [found, is_new] =
        known.emplace(std::tuple(link.kind, ends.first, ends.second), link.capacity);
    if (!is_new && found->second != link.capacity) return true;
  }
  return false;
}

// What links allow around one node, bytes a second; `skip` is left out.
double rate_around(const Topology& topology, NodeId node, LinkKind skip) {
  double rate = 0;
  for (const Neighbour& next : topology.neighbours(node)) {
    const Link& link = topology.link(next.link);
    if (link.kind == skip || !topology.usable(next.link)) continue;
    rate += static_cast<double>(link.capacity.bytes_per_second());
  }
  return rate;
}

// What the NICs of a host carry in or out together: each as much as the narrower of its two sides.
double rate_of_nics(const Topology& topology, DomainId host) {
  double rate = 0;
  for (const NodeId node : topology.members(host)) {
    if (topology.node(node).kind != NodeKind::Nic) continue;
    rate += std::min(rate_around(topology, node, LinkKind::Pcie),
                     rate_around(topology, node, LinkKind::Fabric));
  }
  return rate;
}

// The class's only host with holders, and its only holder; invalid where there are more.
struct OnlySource {
  DomainId host;
  WorkerId holder;
};

OnlySource only_source(const PlanSpace& space, const BlockClass& c) {
  OnlySource only;
  std::size_t serving = 0;
  bool one_host = true;
  for (const WorkerId holder : c.holders) {
    if (!space.may_serve(holder)) continue;
    if (serving++ > 0 && space.host(holder) != only.host) one_host = false;
    only.host = space.host(holder);
    only.holder = holder;
  }
  if (!one_host) only.host = DomainId();
  if (serving != 1) only.holder = WorkerId();
  return only;
}

// Bytes of a kind, by worker or by host.
struct Flows {
  std::vector<Bytes> in;
  std::vector<Bytes> out;
  explicit Flows(std::size_t n) : in(n), out(n) {}
};

// Adds up what must come into a worker or host or, where it holds something that nobody else does,
// leave it; apart for a worker what nobody else of its host has or wants, which NVLink cannot
// bring.
class Needs {
 public:
  explicit Needs(const PlanSpace& space)
      : space_(space),
        worker_(space.demand().workers.size()),
        alone_(space.demand().workers.size()),
        host_(space.topology().domains().size()),
        members_(space.topology().domains().size(), 0),
        held_(space.topology().domains().size(), false) {
    for (const BlockClass& c : space.demand().classes) add(c);
  }

  // Seconds, over the links next to each. Nobody is faster in any plan.
  [[nodiscard]] double most() const {
    const Topology& topology = space_.topology();
    double most = 0;
    const auto raise = [&](const Flows& flows, std::size_t i, double rate) {
      most = std::max({most, seconds_for(flows.in[i], rate), seconds_for(flows.out[i], rate)});
    };
    for (std::size_t w = 0; w < worker_.in.size(); ++w) {
      const NodeId node = space_.node(WorkerId(w));
      raise(worker_, w, rate_around(topology, node, LinkKind::Fabric));
      raise(alone_, w, rate_around(topology, node, LinkKind::NvLink));
    }
    for (std::size_t d = 0; d < host_.in.size(); ++d) {
      if (host_.in[d].count() == 0 && host_.out[d].count() == 0) continue;
      raise(host_, d, rate_of_nics(topology, DomainId(d)));
    }
    return most;
  }

 private:
  void add(const BlockClass& c) {
    const Bytes bytes = bytes_of(space_.demand(), c);
    const OnlySource only = only_source(space_, c);
    for (const auto* list : {&c.holders, &c.receivers}) {
      for (const WorkerId w : *list) {
        if (space_.host(w).valid() && space_.may_serve(w)) ++members_[space_.host(w).index()];
      }
    }
    for (const WorkerId w : c.holders) {
      if (space_.host(w).valid()) held_[space_.host(w).index()] = true;
    }
    bool leaves = false;
    for (const WorkerId w : c.receivers) {
      worker_.in[w.index()] += bytes;
      leaves = leaves || space_.host(w) != only.host;
      if (!space_.host(w).valid()) continue;
      const std::size_t host = space_.host(w).index();
      if (members_[host] <= 1) alone_.in[w.index()] += bytes;
      if (held_[host]) continue;
      held_[host] = true;
      host_.in[host] += bytes;
    }
    if (only.holder.valid()) {
      worker_.out[only.holder.index()] += bytes;
      if (only.host.valid() && members_[only.host.index()] == 1) {
        alone_.out[only.holder.index()] += bytes;
      }
    }
    if (only.host.valid() && leaves) host_.out[only.host.index()] += bytes;
    for (const auto* list : {&c.holders, &c.receivers}) {
      for (const WorkerId w : *list) {
        if (!space_.host(w).valid()) continue;
        members_[space_.host(w).index()] = 0;
        held_[space_.host(w).index()] = false;
      }
    }
  }

  const PlanSpace& space_;
  Flows worker_;
  Flows alone_;
  Flows host_;
  std::vector<std::uint32_t> members_;  // by host; of one class, zero between classes
  std::vector<bool> held_;              // by host, likewise
};

class Search {
 public:
  explicit Search(const PlanSpace& space) : space_(space) {}

  std::vector<CandidatePlan> run() && {
    std::vector<SiteRule> rules = plain_rules();
    for (const SiteRule& rule : rules) add(HierarchicalShape{rule, SlowLinks(space_), 0});
    const std::size_t best = fastest();
    const double floor = Needs(space_).most();
    if (makespan(best) > floor * kGoodEnough && uneven(space_.topology())) {
      try_exceptions(rules, best, floor);
    }
    return std::move(candidates_);
  }

 private:
  // Datacenters as sites first; finer sites where that makes others of them. Then all again with
  // sites told apart by speed, if that does.
  [[nodiscard]] std::vector<SiteRule> plain_rules() const {
    constexpr std::array kLevelsTried{Level::Datacenter, Level::Pod, Level::Rack};
    std::vector<SiteRule> rules;
    for (const bool by_speed : {false, true}) {
      std::size_t before = 0;
      for (const Level level : kLevelsTried) {
        const SiteRule rule{level, by_speed};
        const std::size_t sites = SitePlanner(space_, rule).count();
        const bool same_as_without =
            by_speed && sites == SitePlanner(space_, SiteRule{level, false}).count();
        if (!rules.empty() && (sites == before || sites > kMostSites || same_as_without)) continue;
        before = sites;
        rules.push_back(rule);
      }
    }
    return rules;
  }

  void add(const HierarchicalShape& shape) {
    Plan plan = plan_hierarchical(space_, shape);
    Prediction prediction = predict(plan, space_.demand(), space_.router());
    candidates_.push_back({std::move(plan), std::move(prediction)});
  }

  [[nodiscard]] double makespan(std::size_t k) const {
    return candidates_[k].prediction.makespan.seconds();
  }
  [[nodiscard]] std::size_t fastest() const {
    std::size_t best = 0;
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      if (makespan(k) < makespan(best)) best = k;
    }
    return best;
  }

  // Takes links out that keep the rest from the goal; the goal is raised as long as that helps.
  void try_exceptions(const std::vector<SiteRule>& rules, std::size_t best, double floor) {
    HierarchicalShape shape{rules[best], SlowLinks(space_), 0};
    const Prediction& base = candidates_[best].prediction;
    std::vector<double> times = times_of(base);
    const Topology& topology = space_.topology();
    double slowest = 0;  // what may be taken out
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (touches_host(topology, topology.links()[i])) {
        slowest = std::max(slowest, times[i]);
      } else if (topology.links()[i].kind == LinkKind::Wan) {
        floor = std::max(floor, times[i]);  // other links of the fabric can be avoided
      }
    }
    // What is much slower than most may be out of the trees before it is too slow for the goal: it
    // would not hold up the last block, but each of its hops fills slowly.
    double best_part = 1;
    double best_time = makespan(best);
    // Each costs as much as planning without exceptions, and more.
    constexpr std::size_t kWorkersPlanned = 80'000;
    constexpr std::size_t kLeastTried = 6;
    const std::size_t most_tried =
        std::max(kLeastTried, kWorkersPlanned / space_.demand().workers.size());
    const auto try_goal = [&](double goal, double part) {
      if (candidates_.size() >= most_tried) return false;
      if (!try_cutoff(shape, times, goal, goal * part)) return false;
      const double time = makespan(candidates_.size() - 1);
      if (time >= best_time) return true;
      best_time = time;
      best_part = part;
      return true;
    };
    // The best sites without exceptions need not be the best with them.
    SiteRule best_rule = rules[best];
    double best_of_rules = std::numeric_limits<double>::infinity();
    for (const SiteRule& rule : rules) {
      shape.sites = rule;
      if (!try_goal(floor * 1.02, 1)) continue;
      const double time = makespan(candidates_.size() - 1);
      if (time >= best_of_rules) continue;
      best_of_rules = time;
      best_rule = rule;
    }
    shape.sites = best_rule;
    for (const double part : {0.7, 0.5, 0.35, 0.25}) try_goal(floor * 1.02, part);
    for (const double above : {1.005, 1.05, 1.1, 1.2, 1.4, 1.8}) {
      if (best_time <= floor * kGoodEnough || floor * above >= slowest) break;
      try_goal(floor * above, best_part);
    }
  }

  // False if no link is slower than the cutoff, or too many are.
  bool try_cutoff(HierarchicalShape& shape, const std::vector<double>& times, double goal,
                  double cutoff) {
    const Topology& topology = space_.topology();
    std::vector<bool> slow(times.size(), false);
    std::size_t count = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      slow[i] = times[i] > cutoff && touches_host(topology, topology.links()[i]);
      count += slow[i] ? 1U : 0U;
    }
    constexpr std::size_t kMostSlow = 4;  // one in so many: beyond that nothing is an exception
    if (count == 0 || count * kMostSlow > times.size()) return false;
    shape.slow = SlowLinks(space_, std::move(slow));
    constexpr double kComfort = 0.85;  // ways are loaded evenly beyond this part of the goal
    shape.goal = goal * kComfort;
    add(shape);
    return true;
  }

  // Seconds that each link takes for what the plan sends over it, by link.
  [[nodiscard]] std::vector<double> times_of(const Prediction& prediction) const {
    const Topology& topology = space_.topology();
    std::vector<double> times(topology.links().size(), 0);
    for (std::size_t c = 0; c < prediction.carried.size(); ++c) {
      const Link& link = topology.links()[c / 2];
      times[c / 2] = std::max(times[c / 2],
                              seconds_for(prediction.carried[c],
                                          static_cast<double>(link.capacity.bytes_per_second())));
    }
    return times;
  }

  const PlanSpace& space_;
  std::vector<CandidatePlan> candidates_;
};

}  // namespace

std::vector<CandidatePlan> hierarchical_candidates(const PlanSpace& space) {
  return Search(space).run();
}

}  // namespace holdfast
