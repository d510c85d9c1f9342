// How a WorkerEngine changes parents, and how it judges them.
#include <algorithm>

#include "core/engine/worker_engine.hpp"
#include "core/mutant.hpp"

namespace holdfast {
namespace {

// A source is slow when nothing came for so many planned block times ...
constexpr std::int64_t kSlowBlocks = 4;
// ... and no more when so many blocks came within twice as many.
constexpr std::uint8_t kPacedBlocks = 4;
constexpr std::int64_t kPacedTimes = 8;

}  // namespace

void WorkerEngine::add_alternate(StripeId stripe, WorkerId worker, const Path& path, bool has_all) {
  std::erase(lost_, worker);
  std::erase_if(alternates_, [&](const Alternate& known) {
    return known.stripe == stripe && known.worker == worker;
  });
  alternates_.push_back({stripe, worker, path, has_all});
  const std::uint32_t number = find_stripe(stripe);
  if (number == kNone) return;
  for (EdgeNumber e = stripes_[number].first_edge; e != kNone; e = edges_[e].next_edge) {
    InEdge& edge = edges_[e];
    if (edge.state != EdgeState::Wanted || edge.fresh) continue;
    edge.fresh = true;
    fresh_edges_.push_back(e);
    fresh_ = true;
  }
}

std::uint32_t WorkerEngine::first_missing(const InEdge& edge) const {
  std::uint32_t index = edge.from;
  while (index < edge.to && verified(stripes_[edge.stripe], index)) ++index;
  return index;
}

std::optional<WorkerEngine::Alternate> WorkerEngine::next_alternate(const InEdge& edge) const {
  const StripeState& stripe = stripes_[edge.stripe];
  const auto may = [&](WorkerId worker) {
    return worker.valid() && worker != worker_ &&
           !std::binary_search(lost_.begin(), lost_.end(), worker);
  };
  const TableEdge* planned = tables_->edge(stripe.id, worker_);
  if (planned != nullptr && !stripe.planned_over && may(planned->alternate)) {
    return Alternate{stripe.id, planned->alternate, planned->alternate_path,
                     tables_->holds(planned->alternate, stripe.id)};
  }
  const auto found = std::find_if(
      alternates_.begin(), alternates_.end(),
      [&](const Alternate& other) { return other.stripe == stripe.id && may(other.worker); });
  if (found == alternates_.end()) return std::nullopt;
  return *found;
}

// Whoever was given up for a stripe is not turned to again unless it is named again.
void WorkerEngine::give_up_parent(EdgeNumber number, FailureKind cause, const EngineFailure& detail,
                                  std::uint32_t index) {
  InEdge& edge = edges_[number];
  StripeState& stripe = stripes_[edge.stripe];
  const TableEdge* planned = tables_->edge(stripe.id, worker_);
  if (planned != nullptr && planned->alternate == edge.parent) stripe.planned_over = true;
  std::erase_if(alternates_, [&](const Alternate& known) {
    return known.stripe == stripe.id && known.worker == edge.parent;
  });
  const auto to = next_alternate(edge);
  if (!to && !config_.await_parent) return fail(cause, number, index, detail);
  if (!edge.held) edge.former = edge.parent;
  edge.held = true;
  if (edge.blocked) --blocked_;
  edge.blocked = false;
  edge.slow = false;
  if (edge.open != 0) out_->push_back(CancelReads{number});
  edge.cause = cause;
  if (to) {
    out_->push_back(Reparented{stripe.id, edge.parent, to->worker, cause, detail.status});
    return turn_to(number, *to);
  }
  edge.state = EdgeState::Wanted;
  out_->push_back(NeedParent{stripe.id, first_missing(edge), edge.parent, cause, detail.status});
}

void WorkerEngine::turn_to(EdgeNumber number, const Alternate& to) {
  InEdge& edge = edges_[number];
  if (edge.state == EdgeState::Wanted) {
    out_->push_back(
        Reparented{stripes_[edge.stripe].id, edge.parent, to.worker, edge.cause, ReadStatus::Ok});
  }
  edge.state = EdgeState::Active;
  edge.parent = to.worker;
  edge.path = to.path;
  edge.parent_has_all = to.has_all;
  edge.asks = 0;
  progress_ = now_;
  forget_offers(edge);
  if (!edge.parent_has_all) {
    ask(number);
    edge.ask_at = after(now_, ask_wait(edge));
    ask_check_ = std::min(ask_check_, edge.ask_at);
  }
  drained(number);
}

// No read or digest of the range is open any more.
bool WorkerEngine::may_start(EdgeNumber number) const {
  if (mutated(Mutant::ReaskBeforeCompletion)) return true;
  const InEdge& edge = edges_[number];
  for (EdgeNumber e = stripes_[edge.stripe].first_edge; e != kNone; e = edges_[e].next_edge) {
    const InEdge& other = edges_[e];
    if (other.open == 0 && other.digesting == 0) continue;
    if (e == number || (other.from < edge.to && edge.from < other.to)) return false;
  }
  return true;
}

// Something of an edge that was given up or dropped is done: others may have waited for it.
void WorkerEngine::drained(EdgeNumber number) {
  const InEdge& edge = edges_[number];
  if (failed_ || edge.open != 0 || edge.digesting != 0) return;
  if (edge.held || edge.state != EdgeState::Active) start_held(edge.stripe);
}

void WorkerEngine::start_held(std::uint32_t stripe) {
  for (EdgeNumber e = stripes_[stripe].first_edge; e != kNone; e = edges_[e].next_edge) {
    InEdge& edge = edges_[e];
    if (!edge.held || edge.state != EdgeState::Active || !may_start(e)) continue;
    edge.held = false;
    edge.next = edge.from;
    post(e);
  }
}

Time WorkerEngine::slow_after(const InEdge& edge) const {
  return std::max(edge.block_time * kSlowBlocks, config_.least_slow_time);
}

// A block came.
void WorkerEngine::pace(InEdge& edge) {
  if (edge.slow) {
    if (++edge.paced < kPacedBlocks) return;
    if (now_ - edge.pace_from <= edge.block_time * kPacedTimes) {
      edge.slow = false;
      slow_check_ = std::min(slow_check_, after(now_, slow_after(edge)));
    }
  }
  edge.paced = 0;
  edge.pace_from = now_;
}

void WorkerEngine::check_pace() {
  Time next = Time::never();
  for (InEdge& edge : edges_) {
    const bool judged = edge.open != 0 && !edge.held && edge.state == EdgeState::Active &&
                        !edge.slow && edge.block_time > Time{};
    if (!judged) continue;
    const Time at = after(edge.pace_from, slow_after(edge));
    if (at > now_) {
      next = std::min(next, at);
      continue;
    }
    edge.slow = true;
    edge.paced = 0;
    edge.pace_from = now_;
    out_->push_back(SlowSource{stripes_[edge.stripe].id, edge.parent});
  }
  slow_check_ = next;
}

}  // namespace holdfast
