// What a WorkerEngine does when something happens.
#include <algorithm>

#include "core/engine/worker_engine.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kWordBits = 64;
constexpr std::uint32_t kWordMask = kWordBits - 1;

// Saturates, so that "no deadline" settings stay never().
Time after(Time now, Time wait) {
  return wait >= Time::never() - now ? Time::never() : now + wait;
}

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.at != b.at ? a.at > b.at : a.child > b.child;
};

}  // namespace

Time WorkerEngine::step(const EngineEvent& event, Time now, std::vector<EngineCommand>& out) {
  if (failed_) return Time::never();
  now_ = now;
  out_ = &out;
  if (fresh_) begin_fresh();
  std::visit([this](const auto& e) { on(e); }, event);
  if (!failed_) {
    fire_due();
    if (retry_at_ <= now_) unblock();
    if (ask_check_ <= now_) ask_again();
    check_progress();
  }
  out_ = nullptr;
  return failed_ ? Time::never() : next_deadline();
}

Time WorkerEngine::next_deadline() const {
  Time next = std::min(ask_check_, retry_at_);
  if (!due_.empty()) next = std::min(next, due_.front().at);
  if (missing_ != 0) next = std::min(next, after(progress_, config_.no_progress));
  return next;
}

// Acts on what was assigned after the last step.
void WorkerEngine::begin_fresh() {
  fresh_ = false;
  for (; first_fresh_edge_ < edges_.size(); ++first_fresh_edge_) {
    InEdge& edge = edges_[first_fresh_edge_];
    progress_ = now_;
    edge.ask_wait = usual_ask_wait(edge);
    edge.ask_at = after(now_, edge.ask_wait);
    if (!edge.parent_has_all) ask_check_ = std::min(ask_check_, edge.ask_at);
    post(first_fresh_edge_);
  }
  for (; first_fresh_child_ < children_.size(); ++first_fresh_child_) {
    const StripeState& stripe = stripes_[children_[first_fresh_child_].stripe];
    std::uint32_t low = 0;
    std::uint32_t high = stripe.blocks;
    while (low < high && !verified(stripe, low)) ++low;
    while (high > low && !verified(stripe, high - 1)) --high;
    if (low < high) offer(first_fresh_child_, low, high - 1);
  }
}

// Posts what the edge's window and its parent's word allow, in ascending order.
void WorkerEngine::post(EdgeNumber number) {
  InEdge& edge = edges_[number];
  const StripeState& stripe = stripes_[edge.stripe];
  while (!edge.blocked && edge.open < edge.window && edge.next < edge.to) {
    if (!verified(stripe, edge.next)) {
      if (!edge.parent_has_all && !offered(stripe, edge.next)) return;
      const EdgeBlock at{number, edge.next};
      out_->push_back(ReadBlock{at, block(at), after(now_, config_.read_deadline)});
      ++edge.open;
    }
    ++edge.next;
  }
}

void WorkerEngine::unblock() {
  retry_at_ = Time::never();
  blocked_ = 0;
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    if (!edges_[e].blocked) continue;
    edges_[e].blocked = false;
    post(e);
  }
}

void WorkerEngine::on(const BlockRead& event) {
  InEdge& edge = edges_[event.at.edge];
  --edge.open;
  if (event.status != ReadStatus::Ok) {
    EngineFailure detail;
    detail.status = event.status;
    return fail(FailureKind::ReadFailed, event.at.edge, event.at.index, detail);
  }
  progress_ = now_;
  if (blocked_ != 0) unblock();
  post(event.at.edge);
  if (tables_->verify()) {
    out_->push_back(DigestBlock{event.at, block(event.at)});
  } else {
    count(event.at);
  }
}

void WorkerEngine::on(const BlockDigested& event) {
  const std::uint64_t expected = tables_->digest(block(event.at));
  if (event.digest != expected) {
    EngineFailure detail;
    detail.expected = expected;
    detail.found = event.digest;
    return fail(FailureKind::DigestMismatch, event.at.edge, event.at.index, detail);
  }
  count(event.at);
}

// The refused reads of an edge are those that were posted last: the edge goes back to the first.
void WorkerEngine::on(const PostRefused& event) {
  InEdge& edge = edges_[event.at.edge];
  --edge.open;
  if (event.reason == Posted::PeerGone) {
    return fail(FailureKind::SourceLost, event.at.edge, event.at.index, {});
  }
  edge.next = std::min(edge.next, event.at.index);
  if (!edge.blocked) ++blocked_;
  edge.blocked = true;
  retry_at_ = std::min(retry_at_, after(now_, config_.retry_interval));
}

void WorkerEngine::count(EdgeBlock at) {
  InEdge& edge = edges_[at.edge];
  StripeState& stripe = stripes_[edge.stripe];
  if (verified(stripe, at.index)) return;
  bits_[stripe.first_word + at.index / kWordBits] |= 1ULL << (at.index & kWordMask);
  --edge.left;
  --missing_;
  progress_ = now_;
  out_->push_back(BlockVerified{at, block(at)});
  for (std::uint32_t c = stripe.first_child; c != kNone; c = children_[c].next_child) {
    offer(c, at.index, at.index);
  }
  if (missing_ == 0) out_->push_back(Completed{});
}

// Adds from .. to to a child's news and tells it now or when its interval is over.
void WorkerEngine::offer(std::uint32_t child, std::uint32_t from, std::uint32_t to) {
  ChildState& state = children_[child];
  if (state.gone) return;
  state.low = std::min(state.low, from);
  state.high = std::max(state.high, to);
  if (state.quiet_until <= now_) return tell(state);
  if (state.due) return;
  state.due = true;
  due_.push_back({state.quiet_until, child});
  std::push_heap(due_.begin(), due_.end(), kLater);
}

// Repeats the block words before the news too, so that one lost message is made up by the next.
void WorkerEngine::tell(ChildState& child) {
  if (child.low == kNone) return;
  std::uint32_t first = child.low & ~kWordMask;
  if (first != 0) first -= kWordBits;
  send_have(child.worker, stripes_[child.stripe].id, first, child.high + 1);
  child.low = kNone;
  child.high = 0;
  child.quiet_until = after(now_, child.have_interval);
}

void WorkerEngine::send_have(WorkerId to, StripeId stripe, std::uint32_t first, std::uint32_t end) {
  do {
    const std::uint32_t count = std::min(kMaxHaveBlocks, end - first);
    out_->push_back(SendMessage{to, stripe, first, count, false, 0});
    first += count;
  } while (first < end);
}

void WorkerEngine::fire_due() {
  while (!due_.empty() && due_.front().at <= now_) {
    std::pop_heap(due_.begin(), due_.end(), kLater);
    ChildState& child = children_[due_.back().child];
    due_.pop_back();
    child.due = false;
    if (!child.gone) tell(child);
  }
}

Time WorkerEngine::usual_ask_wait(const InEdge& edge) const {
  constexpr std::int64_t kIntervals = 16;
  return std::max(config_.ask_interval, edge.have_interval * kIntervals);
}

// Asks the parents of edges that wait for word for too long.
void WorkerEngine::ask_again() {
  ask_check_ = Time::never();
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    InEdge& edge = edges_[e];
    if (edge.parent_has_all || edge.left == 0) continue;
    const bool waits = !edge.blocked && edge.open < edge.window && edge.next < edge.to;
    if (edge.ask_at <= now_) {
      if (waits) {
        out_->push_back(
            SendMessage{edge.parent, stripes_[edge.stripe].id, edge.next & ~kWordMask, 0, true, e});
        edge.ask_wait =
            std::min(edge.ask_wait * 2, std::max(config_.ask_interval_most, usual_ask_wait(edge)));
      }
      edge.ask_at = after(now_, edge.ask_wait);
    }
    ask_check_ = std::min(ask_check_, edge.ask_at);
  }
}

void WorkerEngine::check_progress() {
  if (missing_ == 0 || now_ < after(progress_, config_.no_progress)) return;
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    if (edges_[e].left == 0) continue;
    std::uint32_t index = edges_[e].from;
    while (verified(stripes_[edges_[e].stripe], index)) ++index;
    EngineFailure detail;
    detail.waited = now_ - progress_;
    return fail(FailureKind::NoProgress, e, index, detail);
  }
}

void WorkerEngine::fail(FailureKind kind, EdgeNumber edge, std::uint32_t index,
                        EngineFailure detail) {
  detail.kind = kind;
  detail.worker = worker_;
  detail.source = edges_[edge].parent;
  detail.stripe = stripes_[edges_[edge].stripe].id;
  detail.block = block({edge, index});
  failed_ = true;
  out_->push_back(Failed{detail});
}

}  // namespace holdfast
