// Carries a plan out block by block, without time: an edge delivers its next block whenever its
// parent has it. What a worker has only grows, so that the order of deliveries does not matter for
// where it ends. Knows nothing of trees or cycles: it notices that nothing moves any more.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/check_internal.hpp"

namespace holdfast::checking {
namespace {

// Receivers x blocks of all classes, or one more than `most`.
std::uint64_t wanted_deliveries(const Subject& subject, std::uint64_t most) {
  std::uint64_t deliveries = 0;
  for (std::size_t c = 0; c < subject.demand.classes.size(); ++c) {
    deliveries +=
        std::uint64_t{subject.class_blocks[c]} * subject.demand.classes[c].receivers.size();
    if (deliveries > most) return most + 1;
  }
  return deliveries;
}

std::uint64_t planned_deliveries(const Subject& subject, std::uint64_t most) {
  std::uint64_t deliveries = 0;
  for (std::size_t s = 0; s < subject.plan.stripes.size(); ++s) {
    const Stripe& stripe = subject.plan.stripes[s];
    if (!subject.well_formed[s]) continue;
    deliveries += std::uint64_t{stripe.blocks.count()} * stripe.edges.size();
    if (deliveries > most) return most + 1;
  }
  return deliveries;
}

class Execution {
 public:
  explicit Execution(const Subject& subject)
      : subject_(subject),
        row_(subject.demand.workers.size(), kNone),
        holds_(subject.demand.workers.size(), 0),
        listeners_(subject.demand.workers.size(), kNone) {}

  void run(Report& report) {
    for (std::size_t c = 0; c < subject_.demand.classes.size(); ++c) block_class(c);
    if (missing_ + repeated_ == 0) return;
    report.add(
        ViolationCode::NotExecutable, [] { return std::string("/plan"); },
        [&] {
          return fmt::format(
              "carried out block by block it ends with {} blocks missing and {} delivered again; "
              "the first: block {} at '{}'",
              missing_, repeated_, first_block_.value(), subject_.name(first_worker_));
        });
  }

 private:
  void block_class(std::size_t c);
  void stripe(const Stripe& stripe);
  void advance(const Stripe& stripe, std::uint32_t e);
  void judge(std::size_t c);

  [[nodiscard]] char& count(WorkerId w, std::uint32_t block) {
    return counts_[std::size_t{row_[w.index()]} * blocks_ + block];
  }
  [[nodiscard]] bool has(WorkerId w, std::uint32_t block) {
    return holds_[w.index()] != 0 || (row_[w.index()] != kNone && count(w, block) != 0) ||
           started_with(w, block);
  }
  [[nodiscard]] bool started_with(WorkerId w, std::uint32_t block) const {
    return subject_.start != nullptr &&
           subject_.start->has(w, block_at(subject_.demand.classes[class_], block));
  }

  const Subject& subject_;
  std::size_t class_ = 0;
  std::uint32_t blocks_ = 0;
  std::vector<std::uint32_t> row_;        // by worker: which receiver of the class it is
  std::vector<char> holds_;               // by worker
  std::vector<char> counts_;              // by receiver and block: how often it came, 2 for more
  std::vector<std::uint32_t> listeners_;  // by worker: first edge of the stripe that reads from it
  std::vector<std::uint32_t> next_listener_;  // by edge
  std::vector<std::uint32_t> delivered_;      // by edge
  std::vector<std::uint32_t> ready_;
  std::vector<char> is_ready_;  // by edge
  std::uint64_t missing_ = 0;
  std::uint64_t repeated_ = 0;
  BlockId first_block_;
  WorkerId first_worker_;
};

void Execution::block_class(std::size_t c) {
  const BlockClass& block_class = subject_.demand.classes[c];
  class_ = c;
  blocks_ = subject_.class_blocks[c];
  counts_.assign(block_class.receivers.size() * blocks_, 0);
  for (const WorkerId w : block_class.holders) holds_[w.index()] = 1;
  for (std::uint32_t r = 0; r < block_class.receivers.size(); ++r) {
    row_[block_class.receivers[r].index()] = r;
    for (std::uint32_t k = 0; subject_.start != nullptr && k < blocks_; ++k) {
      count(block_class.receivers[r], k) = started_with(block_class.receivers[r], k) ? 1 : 0;
    }
  }
  for (std::uint32_t i = subject_.first_stripe[c]; i < subject_.first_stripe[c + 1]; ++i) {
    const std::uint32_t s = subject_.stripes[i];
    if (subject_.well_formed[s]) stripe(subject_.plan.stripes[s]);
  }
  judge(c);
  for (const WorkerId w : block_class.holders) holds_[w.index()] = 0;
  for (const WorkerId w : block_class.receivers) row_[w.index()] = kNone;
}

// Stripes of a class do not feed each other, so that each runs to its own end.
void Execution::stripe(const Stripe& stripe) {
  const auto edges = static_cast<std::uint32_t>(stripe.edges.size());
  next_listener_.assign(edges, kNone);
  delivered_.assign(edges, 0);
  is_ready_.assign(edges, 1);
  ready_.clear();
  for (std::uint32_t e = 0; e < edges; ++e) {
    const Edge& edge = stripe.edges[e];
    if (!subject_.known(edge.child) || !subject_.known(edge.parent)) continue;
    next_listener_[e] = listeners_[edge.parent.index()];
    listeners_[edge.parent.index()] = e;
    ready_.push_back(e);
  }
  while (!ready_.empty()) {
    const std::uint32_t e = ready_.back();
    ready_.pop_back();
    is_ready_[e] = 0;
    advance(stripe, e);
  }
  for (const Edge& edge : stripe.edges) {
    if (subject_.known(edge.parent)) listeners_[edge.parent.index()] = kNone;
  }
}

// Delivers on one edge all that its parent has, in order, and wakes those who read from the child.
void Execution::advance(const Stripe& stripe, std::uint32_t e) {
  const auto& [child, parent, alternate, path, window] = stripe.edges[e];
  const std::uint32_t total = stripe.blocks.count();
  bool grew = false;  // waking for a repeated delivery would let a hostile plan cost edges squared
  while (delivered_[e] < total && has(parent, stripe.blocks.at(delivered_[e]))) {
    const std::uint32_t block = stripe.blocks.at(delivered_[e]++);
    // What it has verified is not read again.
    if (row_[child.index()] == kNone || started_with(child, block)) continue;
    char& times = count(child, block);
    grew = grew || times == 0;
    times = static_cast<char>(std::min(times + 1, 2));
  }
  if (!grew) return;
  for (std::uint32_t l = listeners_[child.index()]; l != kNone; l = next_listener_[l]) {
    if (is_ready_[l] != 0) continue;
    is_ready_[l] = 1;
    ready_.push_back(l);
  }
}

void Execution::judge(std::size_t c) {
  const BlockClass& block_class = subject_.demand.classes[c];
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 1) continue;
    if (missing_ + repeated_ == 0) {
      first_block_ = block_at(block_class, static_cast<std::uint32_t>(i % blocks_));
      first_worker_ = block_class.receivers[i / blocks_];
    }
    ++(counts_[i] == 0 ? missing_ : repeated_);
  }
}

}  // namespace

void check_execution(const Subject& subject, std::uint64_t most, Report& report) {
  // Both are bounded: a plan of few edges for a huge demand needs room for the demand.
  if (wanted_deliveries(subject, most) > most || planned_deliveries(subject, most) > most) return;
  Execution(subject).run(report);
}

}  // namespace holdfast::checking
