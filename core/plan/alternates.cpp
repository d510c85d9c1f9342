#include "core/plan/alternates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace holdfast {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kAnywhere = 6;  // candidates looked at beside the near ones

class AlternateChooser {
 public:
  AlternateChooser(const Demand& demand, const Topology& topology)
      : demand_(demand),
        around_(demand.workers.size()),
        place_(demand.workers.size()),
        chosen_(demand.workers.size(), 0),
        last_(topology.domains().size()),
        first_child_(demand.workers.size(), kNone) {
    for (std::size_t w = 0; w < around_.size(); ++w) {
      for (std::size_t level = 0; level < kLevels; ++level) {
        around_[w][level] = topology.around(demand.workers[w].node, static_cast<Level>(level));
      }
    }
  }

  void run(Stripe& stripe) {
    ++stamp_;
    line_up(stripe);
    for (std::uint32_t at = 0; at < line_.size(); ++at) {
      const std::uint32_t e = line_[at].edge;
      if (e != kNone) stripe.edges[e].alternate = best_before(at, stripe);
      come(line_[at].worker);
    }
  }

 private:
  struct Place {
    std::uint32_t stamp = 0;
    std::uint32_t at = kNone;  // in the line
  };
  struct InLine {
    WorkerId worker;
    std::uint32_t edge = kNone;   // through which it gets the stripe; none: a holder
    std::uint32_t above = kNone;  // place of its parent
  };
  struct Last {
    std::uint32_t stamp = 0;
    WorkerId worker;
  };

  [[nodiscard]] std::uint32_t place(WorkerId w) const {
    return place_[w.index()].stamp == stamp_ ? place_[w.index()].at : kNone;
  }
  [[nodiscard]] bool same(WorkerId a, WorkerId b, Level level) const {
    const DomainId domain = around_[a.index()][static_cast<std::size_t>(level)];
    return domain.valid() && domain == around_[b.index()][static_cast<std::size_t>(level)];
  }

  void line_up(const Stripe& stripe);
  void come(WorkerId worker);
  [[nodiscard]] WorkerId best_before(std::uint32_t at, const Stripe& stripe);
  [[nodiscard]] bool fed_by(std::uint32_t at, std::uint32_t source) const;

  const Demand& demand_;
  std::vector<std::array<DomainId, kLevels>> around_;  // by worker
  std::vector<Place> place_;                           // by worker
  std::vector<std::uint32_t> chosen_;                  // by worker: how often
  std::vector<Last> last_;                             // by domain: who came last
  std::vector<std::uint32_t> first_child_;             // by worker: an edge; none between stripes
  std::vector<InLine> line_;
  std::vector<std::uint32_t> next_child_;  // by edge
  std::uint32_t stamp_ = 0;
};

void AlternateChooser::line_up(const Stripe& stripe) {
  const auto edges = static_cast<std::uint32_t>(stripe.edges.size());
  line_.clear();
  for (const WorkerId holder : demand_.classes[stripe.block_class.index()].holders) {
    place_[holder.index()] = {stamp_, static_cast<std::uint32_t>(line_.size())};
    line_.push_back({holder, kNone, kNone});
  }
  // Children of each worker, by its own edge or as a holder.
  next_child_.assign(edges, kNone);
  for (std::uint32_t e = edges; e-- > 0;) {
    std::uint32_t& first = first_child_[stripe.edges[e].parent.index()];
    next_child_[e] = first;
    first = e;
  }
  for (std::uint32_t at = 0; at < line_.size(); ++at) {
    const WorkerId parent = line_[at].worker;
    for (std::uint32_t e = first_child_[parent.index()]; e != kNone; e = next_child_[e]) {
      const WorkerId child = stripe.edges[e].child;
      if (place(child) != kNone) continue;
      place_[child.index()] = {stamp_, static_cast<std::uint32_t>(line_.size())};
      line_.push_back({child, e, at});
    }
  }
  for (const Edge& edge : stripe.edges) first_child_[edge.parent.index()] = kNone;
}

// From now on it is one of those who came before.
void AlternateChooser::come(WorkerId worker) {
  if (!demand_.workers[worker.index()].may_serve) return;
  for (const DomainId domain : around_[worker.index()]) {
    if (domain.valid()) last_[domain.index()] = {stamp_, worker};
  }
}

// A few steps up are enough: who is farther below the source is rarely looked at.
bool AlternateChooser::fed_by(std::uint32_t at, std::uint32_t source) const {
  constexpr int kSteps = 8;
  for (int step = 0; step < kSteps && at != kNone && at >= source; ++step) {
    if (at == source) return true;
    at = line_[at].above;
  }
  return false;
}

WorkerId AlternateChooser::best_before(std::uint32_t at, const Stripe& stripe) {
  const WorkerId child = line_[at].worker;
  const std::uint32_t parent_at = line_[at].above;
  const WorkerId parent = stripe.edges[line_[at].edge].parent;
  using Rank = std::tuple<bool, bool, bool, bool, std::uint32_t, std::uint32_t, std::uint32_t>;
  Rank best;
  WorkerId found;
  const auto look_at = [&](WorkerId w) {
    if (w == parent || w == child || !demand_.workers[w.index()].may_serve) return;
    const std::uint32_t there = place(w);
    std::uint32_t far = 0;
    while (far < kLevels && !same(w, child, static_cast<Level>(far))) ++far;
    const Rank rank{same(w, parent, Level::Host),
                    far == kLevels,
                    fed_by(there, parent_at),
                    same(w, parent, Level::Rack),
                    chosen_[w.index()],
                    far,
                    there};
    if (found.valid() && best <= rank) return;
    best = rank;
    found = w;
  };
  if (line_[parent_at].above != kNone) look_at(line_[line_[parent_at].above].worker);
  for (const DomainId domain : around_[child.index()]) {
    if (!domain.valid() || last_[domain.index()].stamp != stamp_) continue;
    look_at(last_[domain.index()].worker);
  }
  // Evenly over all who came before, elsewhere for each child.
  const std::uint32_t looks = std::min(at, kAnywhere);
  for (std::uint32_t k = 0; k < looks; ++k) {
    const std::uint64_t step = std::uint64_t{k} * at / looks + std::uint64_t{at} * 7;
    look_at(line_[step % at].worker);
  }
  if (found.valid()) ++chosen_[found.index()];
  return found;
}

}  // namespace

void choose_alternates(Plan& plan, const Demand& demand, const Topology& topology) {
  AlternateChooser chooser(demand, topology);
  for (Stripe& stripe : plan.stripes) chooser.run(stripe);
}

Path path_to_alternate(const Router& router, NodeId alternate, NodeId child, const Path& planned) {
  const Topology& topology = router.topology();
  const DomainId host = topology.around(child, Level::Host);
  if (host.valid() && host == topology.around(alternate, Level::Host)) {
    const Path path{alternate, child, 0};
    if (router.route(alternate, child, path)) return path;
  }
  const auto into = [&](NodeId nic) {
    for (const NodeId from : router.nics(alternate)) {
      if (from == nic) continue;
      if (!router.between(from, nic, planned.stream).empty()) {
        return Path{from, nic, planned.stream};
      }
    }
    return Path{};
  };
  const NodeId port = planned.destination_port;
  if (port.valid() && topology.node(port).kind == NodeKind::Nic) {
    const Path path = into(port);
    if (path.source_port.valid()) return path;
  }
  for (const NodeId nic : router.nics(child)) {
    const Path path = into(nic);
    if (path.source_port.valid()) return path;
  }
  return {};
}

}  // namespace holdfast
