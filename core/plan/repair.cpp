#include "core/plan/repair.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/plan/alternates.hpp"

namespace holdfast {
namespace {

// Routes are looked up for so many of the best candidates at most.
constexpr std::size_t kTries = 16;

bool in(const std::vector<WorkerId>& ascending, WorkerId worker) {
  return std::binary_search(ascending.begin(), ascending.end(), worker);
}

class Mender {
 public:
  Mender(const Router& router, const Demand& demand, const Plan& plan, const RepairTask& task)
      : router_(router), demand_(demand), plan_(plan), task_(task) {}

  Repair run() {
    measure_load();
    std::map<StripeId, std::vector<std::pair<WorkerId, WorkerId>>> orphans;  // child, from
    for (std::uint32_t s = 0; s < plan_.stripes.size(); ++s) {
      for (const Edge& edge : plan_.stripes[s].edges) {
        if (in(task_.readers, edge.child) && in(task_.lost, edge.parent)) {
          orphans[StripeId(s)].emplace_back(edge.child, edge.parent);
        }
      }
    }
    for (const LostEdge& orphan : task_.orphans) {
      if (in(task_.readers, orphan.child)) {
        orphans[orphan.stripe].emplace_back(orphan.child, orphan.from);
      }
    }
    std::set<WorkerId> unmended;
    for (auto& [stripe, children] : orphans) {
      std::sort(children.begin(), children.end());
      children.erase(std::unique(children.begin(), children.end(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; }),
                     children.end());
      mend_stripe(stripe, children, unmended);
    }
    spread_slow();
    std::sort(repair_.edges.begin(), repair_.edges.end(),
              [](const MendedEdge& a, const MendedEdge& b) {
                return a.stripe != b.stripe ? a.stripe < b.stripe : a.edge.child < b.edge.child;
              });
    repair_.unmended.assign(unmended.begin(), unmended.end());
    return std::move(repair_);
  }

 private:
  struct Node {
    WorkerId parent;  // invalid: none that counts
    bool root = false;
    bool rooted = false;
    bool visited = false;
    bool waits = false;           // for the child in hand, by whatever way
    std::vector<WorkerId> feeds;  // who reads from it, or would turn to it
  };
  using Tree = std::map<WorkerId, Node>;

  [[nodiscard]] NodeId node(WorkerId worker) const { return demand_.workers[worker.index()].node; }

  [[nodiscard]] Bytes bytes_of_stripe(StripeId stripe) const {
    Bytes bytes;
    for (const BlockId block : blocks_of(demand_, plan_.stripes[stripe.index()])) {
      bytes += demand_.block_bytes[block.index()];
    }
    return bytes;
  }

  // What leaves each port for those who still receive.
  void measure_load() {
    for (std::uint32_t s = 0; s < plan_.stripes.size(); ++s) {
      const Bytes bytes = bytes_of_stripe(StripeId(s));
      for (const Edge& edge : plan_.stripes[s].edges) {
        if (in(task_.readers, edge.child) && !in(task_.lost, edge.parent)) {
          load_[edge.path.source_port] += bytes;
        }
      }
    }
  }

  // The stripe's tree as it is without the lost and without the orphans' edges.
  Tree tree_of(StripeId stripe, const std::set<WorkerId>& orphans) const {
    const Stripe& s = plan_.stripes[stripe.index()];
    const BlockClass& block_class = demand_.classes[s.block_class.index()];
    Tree tree;
    for (const WorkerId holder : block_class.holders) {
      if (!in(task_.lost, holder)) tree[holder].root = true;
    }
    for (const Edge& edge : s.edges) {
      if (in(task_.lost, edge.child)) continue;
      Node& child = tree[edge.child];
      if (in(task_.complete, edge.child)) child.root = true;
      if (!child.root && !orphans.contains(edge.child) && !in(task_.lost, edge.parent)) {
        child.parent = edge.parent;
        for (const WorkerId w : {edge.parent, edge.alternate}) {
          if (w.valid() && !in(task_.lost, w)) tree[w].feeds.push_back(edge.child);
        }
      }
    }
    for (const MendedEdge& mended : repair_.edges) {
      if (mended.stripe != stripe || orphans.contains(mended.edge.child)) continue;
      tree[mended.edge.child].parent = mended.edge.parent;
    }
    for (auto& [worker, at] : tree) find_root(tree, worker);
    return tree;
  }

  static void find_root(Tree& tree, WorkerId from) {
    std::vector<WorkerId> way;
    WorkerId at = from;
    bool rooted = false;
    for (;;) {
      const auto found = tree.find(at);
      if (found == tree.end()) break;
      Node& here = found->second;
      if (here.visited || here.root) {
        rooted = here.root || here.rooted;
        break;
      }
      here.visited = true;
      way.push_back(at);
      if (!here.parent.valid()) break;
      at = here.parent;
    }
    for (const WorkerId passed : way) tree[passed].rooted = rooted;
    if (tree[from].root) tree[from].rooted = true;
  }

  // Who hangs below `top`, itself included, leads to a root from now on.
  static void root_below(Tree& tree, WorkerId top) {
    std::vector<WorkerId> open{top};
    while (!open.empty()) {
      const WorkerId worker = open.back();
      open.pop_back();
      tree[worker].rooted = true;
      for (const WorkerId child : tree[worker].feeds) {
        const Node& below = tree[child];
        if (below.parent == worker && !below.rooted) open.push_back(child);
      }
    }
  }

  // Marks who may come to wait for `top` if workers turn to their alternates, in any number: none
  // of them can be its parent, or they could wait for each other. Returns them.
  static std::vector<WorkerId> mark_waiting(Tree& tree, WorkerId top) {
    std::vector<WorkerId> waiting{top};
    tree[top].waits = true;
    for (std::size_t k = 0; k < waiting.size(); ++k) {
      for (const WorkerId fed : tree[waiting[k]].feeds) {
        Node& node = tree[fed];
        if (node.waits || node.root) continue;
        node.waits = true;
        waiting.push_back(fed);
      }
    }
    return waiting;
  }

  // How far apart: the number of levels up to the innermost common domain.
  [[nodiscard]] std::size_t distance(NodeId a, NodeId b) const {
    const Topology& topology = router_.topology();
    for (std::size_t level = 0; level < kLevels; ++level) {
      const DomainId domain = topology.around(a, static_cast<Level>(level));
      if (domain.valid() && domain == topology.around(b, static_cast<Level>(level))) return level;
    }
    return kLevels;
  }

  struct Candidate {
    bool beyond = false;  // in another datacenter
    std::uint64_t load = 0;
    std::size_t distance = 0;
    WorkerId worker;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };

  [[nodiscard]] std::uint64_t load_of(NodeId port) const {
    const auto found = load_.find(port);
    return found == load_.end() ? 0 : found->second.count();
  }

  // Those who could be the child's parent, best first.
  std::vector<Candidate> candidates(Tree& tree, WorkerId child, WorkerId from) const {
    const std::vector<WorkerId> waiting = mark_waiting(tree, child);
    std::vector<Candidate> found;
    for (const auto& [worker, at] : tree) {
      if (!at.rooted || at.waits || worker == from || in(task_.closed, worker) ||
          !demand_.workers[worker.index()].may_serve) {
        continue;
      }
      const std::size_t far = distance(node(worker), node(child));
      std::uint64_t load = load_of(node(worker));
      if (far != 0) {
        load = ~std::uint64_t{0};
        for (const NodeId nic : router_.nics(node(worker))) load = std::min(load, load_of(nic));
      }
      found.push_back({far == kLevels, load, far, worker});
    }
    for (const WorkerId w : waiting) tree[w].waits = false;
    std::sort(found.begin(), found.end());
    return found;
  }

  // A path from `parent` to the child, into the port that it reads through now if it can be.
  [[nodiscard]] Path path_from(WorkerId parent, WorkerId child, const Path& planned) const {
    return path_to_alternate(router_, node(parent), node(child), planned);
  }

  void mend_stripe(StripeId stripe, const std::vector<std::pair<WorkerId, WorkerId>>& children,
                   std::set<WorkerId>& unmended) {
    std::set<WorkerId> orphans;
    for (const auto& [child, from] : children) orphans.insert(child);
    Tree tree = tree_of(stripe, orphans);
    for (const auto& [child, from] : children) {
      if (!attach(tree, stripe, child, from)) unmended.insert(child);
    }
  }

  bool attach(Tree& tree, StripeId stripe, WorkerId child, WorkerId from) {
    const Path planned = planned_path(stripe, child);
    std::optional<MendedEdge> mended;
    std::size_t tries = 0;
    for (const Candidate& candidate : candidates(tree, child, from)) {
      if (++tries > kTries && !mended) tries = 1;  // none joined so far: go on
      if (tries > kTries) break;
      const Path path = path_from(candidate.worker, child, planned);
      if (!path.source_port.valid()) continue;
      if (!mended) {
        mended = edge_to(stripe, child, candidate.worker, path);
        mended->parent_has_all = tree[candidate.worker].root;
      } else if (distance(node(candidate.worker), node(mended->edge.parent)) != 0) {
        mended->edge.alternate = candidate.worker;
        mended->alternate_path = path;
        mended->alternate_has_all = tree[candidate.worker].root;
        break;
      }
    }
    if (!mended) return false;
    load_[mended->edge.path.source_port] += bytes_of_stripe(stripe);
    tree[child].parent = mended->edge.parent;
    for (const WorkerId w : {mended->edge.parent, mended->edge.alternate}) {
      if (w.valid()) tree[w].feeds.push_back(child);
    }
    root_below(tree, child);
    repair_.edges.push_back(*mended);
    return true;
  }

  [[nodiscard]] Path planned_path(StripeId stripe, WorkerId child) const {
    const auto& edges = plan_.stripes[stripe.index()].edges;
    const auto at = std::lower_bound(edges.begin(), edges.end(), child,
                                     [](const Edge& e, WorkerId id) { return e.child < id; });
    return at != edges.end() && at->child == child ? at->path : Path{};
  }

  [[nodiscard]] MendedEdge edge_to(StripeId stripe, WorkerId child, WorkerId parent,
                                   const Path& path) const {
    MendedEdge mended;
    mended.stripe = stripe;
    mended.edge.child = child;
    mended.edge.parent = parent;
    mended.edge.path = path;
    if (const auto route = router_.route(node(parent), node(child), path)) {
      mended.edge.window =
          window_for(router_.latency(*route) * 2, router_.bottleneck(*route), demand_.block_size);
    }
    return mended;
  }

  // Every second child of a slow parent, as long as somebody's port is loaded less.
  void spread_slow() {
    for (std::uint32_t s = 0; s < plan_.stripes.size() && !task_.slow.empty(); ++s) {
      std::vector<WorkerId> leaving;
      bool second = false;
      for (const Edge& edge : plan_.stripes[s].edges) {
        if (!in(task_.slow, edge.parent) || !in(task_.readers, edge.child)) continue;
        if (std::any_of(repair_.edges.begin(), repair_.edges.end(), [&](const MendedEdge& m) {
              return m.stripe == StripeId(s) && m.edge.child == edge.child;
            })) {
          continue;
        }
        second = !second;
        if (second) leaving.push_back(edge.child);
      }
      if (leaving.empty()) continue;
      Tree tree = tree_of(StripeId(s), {leaving.begin(), leaving.end()});
      for (auto& [worker, at] : tree) {
        if (in(task_.slow, worker)) at.rooted = false;
      }
      for (const WorkerId child : leaving) attach(tree, StripeId(s), child, WorkerId());
    }
  }

  const Router& router_;
  const Demand& demand_;
  const Plan& plan_;
  const RepairTask& task_;
  std::map<NodeId, Bytes> load_;  // by port
  Repair repair_;
};

}  // namespace

Repair mend(const Router& router, const Demand& demand, const Plan& plan, const RepairTask& task) {
  return Mender(router, demand, plan, task).run();
}

}  // namespace holdfast
