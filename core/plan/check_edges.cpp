// Checks each edge on its own (workers, path, window) and within the tree of its stripe (parents
// that have the blocks, no cycles, alternates that do not wait for their own child).
//
// The edges of a stripe are the nodes of a forest: an edge hangs below the edge that brings the
// blocks to its parent, and is a root where the parent holds them. An edge that no root reaches is
// on a cycle or below one. Numbering the forest depth first answers "is one below the other?" by
// comparing two intervals.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/check_internal.hpp"

namespace holdfast::checking {
namespace {

constexpr std::uint32_t kMostWindow = 4'096;

class EdgeChecker {
 public:
  EdgeChecker(const Subject& subject, Report& report)
      : subject_(subject),
        report_(report),
        holder_of_(subject.demand.workers.size()),
        receiver_of_(subject.demand.workers.size()),
        arrival_(subject.demand.workers.size()),
        complete_(subject.start == nullptr ? 0 : subject.demand.workers.size(), kNone) {}

  void run();

 private:
  // The edge that brings the current stripe's blocks to a worker.
  struct Arrival {
    std::uint32_t stripe = kNone;
    std::uint32_t edge = kNone;
  };

  void stripe(std::uint32_t s);
  void find_complete();
  void collect();
  void ends(std::uint32_t e);
  void parent(std::uint32_t e);
  void path(std::uint32_t e);
  void alternate(std::uint32_t e);
  void grow_forest();
  void cycles();

  // Has the stripe's blocks from the start.
  [[nodiscard]] bool holds(WorkerId w) const {
    return holder_of_[w.index()] == class_ ||
           (subject_.start != nullptr && complete_[w.index()] == stripe_);
  }
  // The first edge of the current stripe with this child, or kNone.
  [[nodiscard]] std::uint32_t arrival(WorkerId w) const {
    const Arrival& a = arrival_[w.index()];
    return a.stripe == stripe_ ? a.edge : kNone;
  }
  [[nodiscard]] bool serves(WorkerId w) const {
    return subject_.demand.workers[w.index()].may_serve;
  }
  [[nodiscard]] const Edge& edge(std::uint32_t e) const {
    return subject_.plan.stripes[stripe_].edges[e];
  }
  // The edge that this one waits for, or kNone.
  [[nodiscard]] std::uint32_t above(std::uint32_t e) const;

  template <class Message>
  void violation(ViolationCode code, std::uint32_t e, const char* member, Message&& message) {
    report_.add(
        code, [&] { return fmt::format("/plan/stripes/{}/edges/{}{}", stripe_, e, member); },
        std::forward<Message>(message));
  }

  const Subject& subject_;
  Report& report_;
  std::vector<ClassId> holder_of_;       // by worker: the class being looked at, if it holds that
  std::vector<ClassId> receiver_of_;     // likewise
  std::vector<Arrival> arrival_;         // by worker
  std::vector<std::uint32_t> complete_;  // by worker: the stripe, if it had all of it at the start
  ClassId class_;
  std::uint32_t stripe_ = kNone;
  // By edge of the stripe.
  std::vector<std::uint32_t> first_below_;
  std::vector<std::uint32_t> next_sibling_;
  std::vector<std::uint32_t> enter_;
  std::vector<std::uint32_t> leave_;
  std::vector<std::uint32_t> walk_;
  std::vector<std::uint32_t> stack_;
};

void EdgeChecker::run() {
  for (std::size_t c = 0; c < subject_.demand.classes.size(); ++c) {
    class_ = ClassId(c);
    for (const WorkerId w : subject_.demand.classes[c].holders) holder_of_[w.index()] = class_;
    for (const WorkerId w : subject_.demand.classes[c].receivers) receiver_of_[w.index()] = class_;
    for (std::uint32_t i = subject_.first_stripe[c]; i < subject_.first_stripe[c + 1]; ++i) {
      stripe(subject_.stripes[i]);
    }
  }
}

void EdgeChecker::stripe(std::uint32_t s) {
  stripe_ = s;
  find_complete();
  collect();
  grow_forest();
  const auto edges = static_cast<std::uint32_t>(subject_.plan.stripes[s].edges.size());
  for (std::uint32_t e = 0; e < edges; ++e) {
    const Edge& it = edge(e);
    if (it.window < 1 || it.window > kMostWindow) {
      violation(ViolationCode::BadWindow, e, "/window", [&] {
        return fmt::format("a window of {}; write 1 to {}", it.window, kMostWindow);
      });
    }
    ends(e);
    if (!subject_.known(it.child) || !subject_.known(it.parent)) continue;
    parent(e);
    if (it.child != it.parent) path(e);
    alternate(e);
  }
  cycles();
}

// Looks at those who are read from, or could be.
void EdgeChecker::find_complete() {
  if (subject_.start == nullptr || !subject_.well_formed[stripe_]) return;
  const Stripe& stripe = subject_.plan.stripes[stripe_];
  std::vector<WorkerId> sources;
  for (const Edge& edge : stripe.edges) {
    for (const WorkerId w : {edge.parent, edge.alternate}) {
      if (subject_.known(w)) sources.push_back(w);
    }
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  for (const WorkerId w : sources) {
    if (subject_.starts_with(w, stripe)) complete_[w.index()] = stripe_;
  }
}

// Finds each worker's arrival; says where a child comes twice or out of order.
void EdgeChecker::collect() {
  const std::vector<Edge>& edges = subject_.plan.stripes[stripe_].edges;
  for (std::uint32_t e = 0; e < edges.size(); ++e) {
    const WorkerId child = edges[e].child;
    if (!subject_.known(child)) continue;
    const std::uint32_t before = arrival(child);
    if (before != kNone) {
      violation(ViolationCode::DuplicateBlock, e, "/child", [&] {
        return fmt::format("'{}' gets the stripe's blocks by edge {} too", subject_.name(child),
                           before);
      });
      continue;
    }
    arrival_[child.index()] = {stripe_, e};
    if (e > 0 && child < edges[e - 1].child && subject_.known(edges[e - 1].child)) {
      violation(ViolationCode::BadStripe, e, "/child", [&] {
        return fmt::format("worker {} after worker {}; edges ascend by child", child.value(),
                           edges[e - 1].child.value());
      });
    }
  }
}

void EdgeChecker::ends(std::uint32_t e) {
  const Edge& it = edge(e);
  const auto unknown = [&](WorkerId worker, const char* member) {
    violation(ViolationCode::UnknownWorker, e, member, [&] {
      return fmt::format("worker {} is not there; the demand has {} workers", worker.value(),
                         subject_.demand.workers.size());
    });
  };
  if (!subject_.known(it.parent)) unknown(it.parent, "/parent");
  if (it.alternate.valid() && !subject_.known(it.alternate)) unknown(it.alternate, "/alternate");
  if (!subject_.known(it.child)) {
    unknown(it.child, "/child");
  } else if (receiver_of_[it.child.index()] != class_) {
    violation(ViolationCode::UnwantedBlock, e, "/child", [&] {
      return fmt::format("'{}' is not a receiver of class {}", subject_.name(it.child),
                         class_.value());
    });
  }
}

void EdgeChecker::parent(std::uint32_t e) {
  const Edge& it = edge(e);
  if (it.child == it.parent) {
    violation(ViolationCode::SelfRead, e, "/parent",
              [&] { return fmt::format("'{}' reads from itself", subject_.name(it.child)); });
    return;
  }
  if (!holds(it.parent) && arrival(it.parent) == kNone) {
    violation(ViolationCode::NeverHeld, e, "/parent", [&] {
      return fmt::format("'{}' neither holds class {} nor receives it in this stripe",
                         subject_.name(it.parent), class_.value());
    });
  }
  if (!serves(it.parent)) {
    violation(ViolationCode::ForbiddenSource, e, "/parent", [&] {
      return fmt::format("'{}' may not serve; read from another holder", subject_.name(it.parent));
    });
  }
}

void EdgeChecker::path(std::uint32_t e) {
  const Edge& it = edge(e);
  const auto nodes = subject_.router.topology().nodes().size();
  for (const NodeId port : {it.path.source_port, it.path.destination_port}) {
    if (port.index() < nodes) continue;
    violation(ViolationCode::NoPath, e, "/path", [&] {
      return fmt::format("port {} is not there; the topology has nodes 0 to {}", port.value(),
                         nodes - 1);
    });
    return;
  }
  const auto route = subject_.router.route(subject_.demand.workers[it.parent.index()].node,
                                           subject_.demand.workers[it.child.index()].node, it.path);
  if (!route) violation(ViolationCode::NoPath, e, "/path", [&] { return route.error(); });
}

void EdgeChecker::alternate(std::uint32_t e) {
  const Edge& it = edge(e);
  if (!it.alternate.valid() || !subject_.known(it.alternate)) return;
  const auto bad = [&](const char* why) {
    violation(ViolationCode::BadAlternate, e, "/alternate", [&] {
      return fmt::format("'{}' cannot stand in for '{}': it {}", subject_.name(it.alternate),
                         subject_.name(it.parent), why);
    });
  };
  const std::uint32_t brought_by = arrival(it.alternate);
  if (it.alternate == it.parent) return bad("is the parent");
  if (it.alternate == it.child) return bad("is the child");
  if (!serves(it.alternate)) return bad("may not serve");
  if (holds(it.alternate)) return;
  if (brought_by == kNone) return bad("neither holds the blocks nor receives them in this stripe");
  if (enter_[e] == kNone || enter_[brought_by] == kNone) return;  // a cycle: said elsewhere
  if (enter_[e] <= enter_[brought_by] && enter_[brought_by] < leave_[e]) {
    bad("gets the blocks by way of the child");
  }
}

std::uint32_t EdgeChecker::above(std::uint32_t e) const {
  const Edge& it = edge(e);
  if (!subject_.known(it.parent) || it.parent == it.child || holds(it.parent)) return kNone;
  return arrival(it.parent);
}

// Numbers what the roots reach; the rest keeps kNone.
void EdgeChecker::grow_forest() {
  const auto edges = static_cast<std::uint32_t>(subject_.plan.stripes[stripe_].edges.size());
  first_below_.assign(edges, kNone);
  next_sibling_.assign(edges, kNone);
  enter_.assign(edges, kNone);
  leave_.assign(edges, kNone);
  stack_.clear();
  for (std::uint32_t e = edges; e-- > 0;) {
    const std::uint32_t up = above(e);
    if (up == kNone) {
      stack_.push_back(e);
    } else {
      next_sibling_[e] = first_below_[up];
      first_below_[up] = e;
    }
  }
  std::uint32_t clock = 0;
  while (!stack_.empty()) {
    const std::uint32_t e = stack_.back();
    if (enter_[e] == kNone) {
      enter_[e] = clock++;
      for (std::uint32_t b = first_below_[e]; b != kNone; b = next_sibling_[b]) stack_.push_back(b);
    } else {
      leave_[e] = clock;
      stack_.pop_back();
    }
  }
}

// Every edge that no root reaches waits, in the end, for a cycle: each cycle is said once.
void EdgeChecker::cycles() {
  constexpr std::size_t kNamed = 6;
  const auto edges = static_cast<std::uint32_t>(enter_.size());
  walk_.assign(edges, kNone);  // by edge: the edge at which the walk that passed it began
  for (std::uint32_t begin = 0; begin < edges; ++begin) {
    if (enter_[begin] != kNone) continue;
    std::uint32_t e = begin;
    while (walk_[e] == kNone) {
      walk_[e] = begin;
      e = above(e);
    }
    if (walk_[e] != begin) continue;
    violation(ViolationCode::WaitCycle, e, "", [&] {
      std::string names = fmt::format("'{}'", subject_.name(edge(e).child));
      std::size_t length = 1;
      for (std::uint32_t at = above(e); at != e; at = above(at), ++length) {
        if (length < kNamed) names += fmt::format(", '{}'", subject_.name(edge(at).child));
      }
      return fmt::format("{}{} wait for each other ({} workers): no holder feeds them", names,
                         length > kNamed ? ", ..." : "", length);
    });
  }
}

}  // namespace

void check_edges(const Subject& subject, Report& report) {
  EdgeChecker(subject, report).run();
}

}  // namespace holdfast::checking
