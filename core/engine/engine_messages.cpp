// What a WorkerEngine does with messages and with workers that are lost.
#include <algorithm>

#include "core/engine/worker_engine.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kWordBits = 64;

// Bits from .. to - 1 of word number `word` of a bitmap.
std::uint64_t range_mask(std::uint32_t word, std::uint32_t from, std::uint32_t to) {
  const std::uint64_t begin = std::uint64_t{word} * kWordBits;
  const std::uint64_t low = std::clamp<std::uint64_t>(from, begin, begin + kWordBits) - begin;
  const std::uint64_t high = std::clamp<std::uint64_t>(to, begin, begin + kWordBits) - begin;
  if (low >= high) return 0;
  const std::uint64_t below_high = high == kWordBits ? ~std::uint64_t{0} : (1ULL << high) - 1;
  return below_high & ~((1ULL << low) - 1);
}

}  // namespace

void WorkerEngine::on(const MessageFrom& event) {
  const auto message = decode_message(event.payload);
  bool useful = false;
  if (message) {
    const Have* have = std::get_if<Have>(&*message);
    useful = have != nullptr ? on_have(event.worker, *have)
                             : on_ask(event.worker, std::get<Ask>(*message));
  }
  if (!useful) ++ignored_;
}

bool WorkerEngine::ours(const MessageSubject& about) const {
  return about.version == tables_->version() && about.transfer == tables_->transfer() &&
         about.stripe.index() < tables_->stripes();
}

bool WorkerEngine::on_have(WorkerId from, const Have& have) {
  if (!ours(have.about)) return false;
  const std::uint32_t number = find_stripe(have.about.stripe);
  if (number == kNone) return false;
  const StripeState& stripe = stripes_[number];
  if (have.first > stripe.blocks || have.count > stripe.blocks - have.first) return false;
  bool expected = false;
  for (EdgeNumber e = stripe.first_edge; e != kNone; e = edges_[e].next_edge) {
    InEdge& edge = edges_[e];
    expected = expected || edge.parent == from || edge.former == from;
    if (edge.parent != from || edge.state != EdgeState::Active) continue;
    if (edge.left == 0 || edge.parent_has_all || !take_offer(edge, have)) continue;
    progress_ = now_;
    edge.asks = 0;
    edge.ask_at = after(now_, ask_wait(edge));
    ask_check_ = std::min(ask_check_, edge.ask_at);
    post(e);
  }
  return expected;
}

// Adds the parent's word for the edge's own blocks; true if it was news.
bool WorkerEngine::take_offer(InEdge& edge, const Have& have) {
  const StripeState& stripe = stripes_[edge.stripe];
  const std::uint32_t offered = stripe.first_word + (stripe.blocks + kWordBits - 1) / kWordBits;
  const std::uint32_t first = have.first / kWordBits;
  bool news = false;
  for (std::uint32_t k = 0; k * kWordBits < have.count; ++k) {
    const std::uint64_t word = have.word(k) & range_mask(first + k, edge.from, edge.to);
    std::uint64_t& known = bits_[offered + first + k];
    news = news || (word & ~known) != 0;
    known |= word;
  }
  return news;
}

bool WorkerEngine::on_ask(WorkerId from, const Ask& ask) {
  if (!ours(ask.about)) return false;
  const StripeId stripe = ask.about.stripe;
  const auto blocks = static_cast<std::uint32_t>(tables_->blocks(stripe).size());
  if (ask.first >= blocks) return false;
  const std::uint32_t end = ask.first + std::min(blocks - ask.first, kMaxHaveBlocks);
  const std::uint32_t number = find_stripe(stripe);
  std::uint32_t c = number == kNone ? kNone : find_child(number, from);
  if (c != kNone && children_[c].gone && children_[c].expected) {
    children_[c].gone = false;
    children_[c].expected = false;
  }
  if (c != kNone && children_[c].gone) c = kNone;
  if (c == kNone) {
    // A holder keeps no state of the plan's children, nor anybody of those whose alternate it is.
    const TableEdge* edge = tables_->edge(stripe, from);
    if (edge == nullptr || (edge->parent != worker_ && edge->alternate != worker_)) return false;
    const bool holder = tables_->holds(worker_, stripe);
    if (!holder && (number == kNone || edge->alternate != worker_)) return false;
    if (!holder) {
      add_child({stripe, from, edge->alternate_path, edge->have_interval});
      c = fresh_children_.back();
      fresh_children_.pop_back();
      fresh_ = !fresh_edges_.empty() || !fresh_children_.empty();
    }
  }
  if (c != kNone) children_[c].quiet_until = now_ + children_[c].have_interval;
  send_have(from, stripe, ask.first, end);
  return true;
}

void WorkerEngine::on(const WorkerLost& event) {
  for (ChildState& child : children_) {
    if (child.worker == event.worker) child.gone = true;
  }
  const auto at = std::lower_bound(lost_.begin(), lost_.end(), event.worker);
  if (at == lost_.end() || *at != event.worker) lost_.insert(at, event.worker);
  for (EdgeNumber e = 0; e < edges_.size() && !failed_; ++e) {
    const InEdge& edge = edges_[e];
    if (edge.parent != event.worker || edge.left == 0 || edge.state != EdgeState::Active) continue;
    give_up_parent(e, FailureKind::SourceLost, {}, first_missing(edge));
  }
}

}  // namespace holdfast
