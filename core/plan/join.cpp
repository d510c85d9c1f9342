#include "core/plan/join.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/plan/alternates.hpp"
#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {
namespace {

// How many of the best candidates are looked at for a path and an alternate.
constexpr std::size_t kTries = 8;

bool in(std::span<const WorkerId> ascending, WorkerId worker) {
  return std::binary_search(ascending.begin(), ascending.end(), worker);
}

class Joining {
 public:
  Joining(const Router& router, const Demand& demand, const Plan& plan, const JoinTask& task,
          const Holdings& verified)
      : router_(router),
        demand_(demand),
        plan_(plan),
        task_(task),
        verified_(verified),
        space_(router, demand),
        paths_(space_),
        sends_(router.topology().nodes().size(), 0),
        receives_(router.topology().nodes().size(), 0) {
    stripe_bytes_.reserve(plan.stripes.size());
    for (const Stripe& stripe : plan.stripes) stripe_bytes_.push_back(bytes_of_stripe(stripe));
  }

  Joined run() {
    measure();
    std::set<WorkerId> unplaced;
    std::vector<Joiner> placed;
    // Stripe by stripe would load the same parents first: joiner by joiner spreads.
    for (const Joiner& joiner : task_.joiners) {
      if (place(joiner)) {
        placed.push_back(joiner);
      } else {
        unplaced.insert(joiner.worker);
      }
    }
    Joined joined;
    joined.demand = mended_demand(demand_, {}, placed);
    joined.unplaced.assign(unplaced.begin(), unplaced.end());
    auto delta = make_delta(joined.demand, plan_, {}, std::move(adds_));
    if (delta) joined.delta = *std::move(delta);
    return joined;
  }

 private:
  // Somebody who could serve a stripe, with the load that its port had when it was put there.
  struct Candidate {
    double load = 0;
    WorkerId worker;
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.load != b.load ? a.load > b.load : a.worker > b.worker;
    }
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;
  struct Sources {
    std::map<DomainId, Queue> by_datacenter;
    std::map<DomainId, std::vector<WorkerId>> by_host;
  };

  [[nodiscard]] Bytes bytes_of_stripe(const Stripe& stripe) const {
    Bytes bytes;
    for (const BlockId block : blocks_of(demand_, stripe)) {
      bytes += demand_.block_bytes[block.index()];
    }
    return bytes;
  }

  // Seconds that a port takes for `bytes`: the narrowest link at it counts.
  [[nodiscard]] double seconds(NodeId port, Bytes bytes) const {
    std::uint64_t rate = 0;
    for (const Neighbour& next : space_.topology().neighbours(port)) {
      const Link& link = space_.topology().link(next.link);
      const bool counts = space_.topology().node(port).kind != NodeKind::Nic ||
                          link.kind == LinkKind::Fabric || link.kind == LinkKind::Wan;
      if (counts && space_.topology().usable(next.link)) {
        rate += link.capacity.bytes_per_second();
      }
    }
    return rate == 0 ? 1e9 : static_cast<double>(bytes.count()) / static_cast<double>(rate);
  }

  void measure();
  Sources& sources(std::uint32_t stripe);
  void offer(Sources& sources, WorkerId worker);
  [[nodiscard]] double load_outside(WorkerId worker) const;
  [[nodiscard]] std::optional<WorkerId> in_host(const Sources& sources, WorkerId joiner) const;
  std::vector<WorkerId> least_loaded(Sources& sources, WorkerId joiner);
  [[nodiscard]] std::optional<Path> path_between(WorkerId parent, WorkerId joiner, Bytes bytes);
  bool place(const Joiner& joiner);
  std::optional<EdgeAdd> place_stripe(std::uint32_t stripe, WorkerId joiner);

  const Router& router_;
  const Demand& demand_;
  const Plan& plan_;
  const JoinTask& task_;
  const Holdings& verified_;
  PlanSpace space_;
  PathChooser paths_;
  std::vector<Bytes> stripe_bytes_;
  std::vector<double> sends_;     // by port: seconds that it is busy with those who still receive
  std::vector<double> receives_;  // by port, joiners only
  std::map<std::uint32_t, Sources> sources_;  // by stripe
  std::vector<EdgeAdd> adds_;
};

void Joining::measure() {
  for (std::size_t s = 0; s < plan_.stripes.size(); ++s) {
    for (const Edge& edge : plan_.stripes[s].edges) {
      if (!in(task_.receiving, edge.child)) continue;
      sends_[edge.path.source_port.index()] += seconds(edge.path.source_port, stripe_bytes_[s]);
    }
  }
}

void Joining::offer(Sources& sources, WorkerId worker) {
  if (in(task_.closed, worker) || !space_.may_serve(worker)) return;
  sources.by_host[space_.host(worker)].push_back(worker);
  sources.by_datacenter[space_.around(worker, Level::Datacenter)].push(
      {load_outside(worker), worker});
}

// Everybody who has the stripe or gets it.
Joining::Sources& Joining::sources(std::uint32_t stripe) {
  const auto [at, is_new] = sources_.try_emplace(stripe);
  if (!is_new) return at->second;
  const Stripe& s = plan_.stripes[stripe];
  for (const WorkerId holder : demand_.classes[s.block_class.index()].holders) {
    offer(at->second, holder);
  }
  for (const Edge& edge : s.edges) offer(at->second, edge.child);
  return at->second;
}

double Joining::load_outside(WorkerId worker) const {
  double least = 1e9;
  for (const NodeId nic : space_.nics(worker)) least = std::min(least, sends_[nic.index()]);
  return least;
}

// The one of the joiner's host that sends least inside it.
std::optional<WorkerId> Joining::in_host(const Sources& sources, WorkerId joiner) const {
  const DomainId host = space_.host(joiner);
  const auto mates = sources.by_host.find(host);
  if (!host.valid() || mates == sources.by_host.end()) return std::nullopt;
  std::optional<WorkerId> best;
  for (const WorkerId mate : mates->second) {
    if (mate == joiner || !local_path(space_, mate, joiner)) continue;
    const double load = sends_[space_.node(mate).index()];
    if (!best || load < sends_[space_.node(*best).index()]) best = mate;
  }
  return best;
}

// Up to kTries candidates, least loaded first; those of the joiner's datacenter before all others.
std::vector<WorkerId> Joining::least_loaded(Sources& sources, WorkerId joiner) {
  const DomainId home = space_.around(joiner, Level::Datacenter);
  std::vector<std::tuple<bool, double, std::uint32_t, WorkerId>> found;
  for (auto& [datacenter, queue] : sources.by_datacenter) {
    if (datacenter != home && sources.by_datacenter.contains(home)) continue;
    std::vector<Candidate> taken;
    while (!queue.empty() && taken.size() < kTries) {
      Candidate top = queue.top();
      queue.pop();
      // Loads only grow: one that is out of date goes back.
      if (const double now = load_outside(top.worker); now > top.load) {
        queue.push({now, top.worker});
        continue;
      }
      taken.push_back(top);
    }
    for (const Candidate& one : taken) {
      queue.push(one);
      if (one.worker == joiner) continue;
      found.emplace_back(datacenter != home, one.load, space_.distance(one.worker, joiner),
                         one.worker);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<WorkerId> workers;
  for (const auto& one : found) workers.push_back(std::get<WorkerId>(one));
  return workers;
}

// From the parent's port that sends least into the joiner's port that receives least.
std::optional<Path> Joining::path_between(WorkerId parent, WorkerId joiner, Bytes bytes) {
  if (const auto local = local_path(space_, parent, joiner)) return local;
  std::vector<std::pair<double, std::pair<NodeId, NodeId>>> pairs;
  for (const NodeId from : space_.nics(parent)) {
    for (const NodeId to : space_.nics(joiner)) {
      pairs.push_back({std::max(sends_[from.index()], receives_[to.index()]), {from, to}});
    }
  }
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [load, ports] : pairs) {
    if (const auto path = paths_.fabric(ports.first, ports.second, bytes)) return path;
  }
  return std::nullopt;
}

std::optional<EdgeAdd> Joining::place_stripe(std::uint32_t stripe, WorkerId joiner) {
  Sources& from = sources(stripe);
  std::vector<WorkerId> candidates = least_loaded(from, joiner);
  if (const auto mate = in_host(from, joiner)) candidates.insert(candidates.begin(), *mate);
  std::optional<EdgeAdd> add;
  for (const WorkerId candidate : candidates) {
    if (add) {
      if (space_.host(candidate) == space_.host(add->parent) || candidate == add->parent) continue;
      add->alternate = candidate;
      break;
    }
    const auto path = path_between(candidate, joiner, stripe_bytes_[stripe]);
    if (!path) continue;
    add = EdgeAdd{};
    add->child = joiner;
    add->stripe = StripeId(stripe);
    add->parent = candidate;
    add->path = *path;
  }
  if (!add) return std::nullopt;
  const Stripe& planned = plan_.stripes[stripe];
  add->from_block = first_missing(verified_, demand_, planned, joiner);
  if (const auto route = router_.route(space_.node(add->parent), space_.node(joiner), add->path)) {
    add->window =
        window_for(router_.latency(*route) * 2, router_.bottleneck(*route), demand_.block_size);
  }
  return add;
}

// All of the joiner's stripes, or none.
bool Joining::place(const Joiner& joiner) {
  const std::size_t before = adds_.size();
  std::vector<std::uint32_t> stripes;
  for (std::uint32_t s = 0; s < plan_.stripes.size(); ++s) {
    const ClassId id = plan_.stripes[s].block_class;
    const BlockClass& c = demand_.classes[id.index()];
    const bool wanted = std::binary_search(joiner.classes.begin(), joiner.classes.end(), id) &&
                        !in(c.receivers, joiner.worker) && !in(c.holders, joiner.worker);
    if (wanted) stripes.push_back(s);
  }
  for (const std::uint32_t s : stripes) {
    const auto add = place_stripe(s, joiner.worker);
    if (!add) {
      adds_.resize(before);
      return false;
    }
    const Bytes bytes = stripe_bytes_[s];
    sends_[add->path.source_port.index()] += seconds(add->path.source_port, bytes);
    receives_[add->path.destination_port.index()] += seconds(add->path.destination_port, bytes);
    paths_.charge(add->parent, joiner.worker, add->path, bytes);
    adds_.push_back(*add);
  }
  for (const std::uint32_t s : stripes) offer(sources(s), joiner.worker);
  return true;
}

}  // namespace

Joined join(const Router& router, const Demand& demand, const Plan& plan, const JoinTask& task,
            const Holdings& verified) {
  return Joining(router, demand, plan, task, verified).run();
}

}  // namespace holdfast
