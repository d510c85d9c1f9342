// What a WorkerEngine does when something happens.
#include <algorithm>

#include "core/engine/worker_engine.hpp"
#include "core/mutant.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kWordBits = 64;
constexpr std::uint32_t kWordMask = kWordBits - 1;

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
    if (slow_check_ <= now_) check_pace();
    check_progress();
  }
  out_ = nullptr;
  return failed_ ? Time::never() : next_deadline();
}

Time WorkerEngine::next_deadline() const {
  Time next = std::min({ask_check_, retry_at_, slow_check_});
  if (!due_.empty()) next = std::min(next, due_.front().at);
  if (missing_ != 0) next = std::min(next, after(progress_, config_.no_progress));
  return next;
}

// Acts on what was given after the last step; at first on the whole plan.
void WorkerEngine::begin_fresh() {
  fresh_ = false;
  if (!started_) {
    started_ = true;
    fresh_edges_.clear();
    fresh_children_.clear();
    progress_ = now_;
    for (EdgeNumber e = 0; e < edges_.size(); ++e) begin(e);
    for (std::uint32_t c = 0; c < children_.size(); ++c) introduce(c);
    return;
  }
  // Cancellations first, then what waits for them.
  for (const EdgeNumber e : fresh_edges_) {
    if (edges_[e].state == EdgeState::Dropped) begin(e);
  }
  for (const EdgeNumber e : fresh_edges_) {
    const InEdge& edge = edges_[e];
    if (edge.state == EdgeState::Dropped) continue;
    begin(e);
    // The parent may have told us before we knew it for a parent.
    if (edge.state == EdgeState::Active && !edge.parent_has_all && edge.left != 0) ask(e);
  }
  fresh_edges_.clear();
  for (const std::uint32_t c : fresh_children_) introduce(c);
  fresh_children_.clear();
}

void WorkerEngine::begin(EdgeNumber number) {
  InEdge& edge = edges_[number];
  edge.fresh = false;
  if (edge.state == EdgeState::Dropped) {
    if (edge.open != 0) out_->push_back(CancelReads{number});
    return;
  }
  progress_ = now_;
  if (edge.state == EdgeState::Wanted) {
    if (const auto to = next_alternate(edge)) turn_to(number, *to);
    return;
  }
  edge.ask_at = after(now_, ask_wait(edge));
  if (!edge.parent_has_all) ask_check_ = std::min(ask_check_, edge.ask_at);
  edge.held = !may_start(number);
  post(number);
}

// Tells a new child what is there.
void WorkerEngine::introduce(std::uint32_t child) {
  const StripeState& stripe = stripes_[children_[child].stripe];
  std::uint32_t low = 0;
  std::uint32_t high = stripe.blocks;
  while (low < high && !verified(stripe, low)) ++low;
  while (high > low && !verified(stripe, high - 1)) --high;
  if (low < high) offer(child, low, high - 1);
}

// Posts what the edge's window, its parent's word and the budgets allow, in ascending order.
void WorkerEngine::post(EdgeNumber number) {
  InEdge& edge = edges_[number];
  if (edge.held || edge.state != EdgeState::Active) return;
  const StripeState& stripe = stripes_[edge.stripe];
  while (!edge.blocked && edge.open < edge.window && edge.next < edge.to) {
    if (!verified(stripe, edge.next)) {
      if (!edge.parent_has_all && !offered(stripe, edge.next)) return;
      if (over_budget(edge)) return block_edge(edge);
      const EdgeBlock at{number, edge.next};
      out_->push_back(ReadBlock{at, block(at), after(now_, config_.read_deadline)});
      if (edge.open++ == 0) {
        edge.pace_from = now_;
        edge.paced = 0;
        if (edge.block_time > Time{} && !edge.slow) {
          slow_check_ = std::min(slow_check_, after(now_, slow_after(edge)));
        }
      }
    }
    ++edge.next;
  }
}

// Nothing to count where all windows together stay within every budget.
bool WorkerEngine::over_budget(const InEdge& edge) const {
  const std::uint64_t block = std::max<std::uint64_t>(tables_->largest_block().count(), 1);
  const std::uint64_t most = std::min<std::uint64_t>(
      {config_.peer_reads, config_.port_reads, config_.port_bytes.count() / block});
  if (windows_ <= most) return false;
  std::uint64_t at_peer = 0;
  std::uint64_t at_port = 0;
  for (const InEdge& other : edges_) {
    if (other.open == 0) continue;
    const WorkerId source = other.held && other.former.valid() ? other.former : other.parent;
    if (source == edge.parent) at_peer += other.open;
    if (other.path.destination_port == edge.path.destination_port) at_port += other.open;
  }
  if (at_peer != 0 && at_peer >= config_.peer_reads) return true;
  return at_port != 0 &&
         (at_port >= config_.port_reads || (at_port + 1) * block > config_.port_bytes.count());
}

void WorkerEngine::block_edge(InEdge& edge) {
  if (!edge.blocked) ++blocked_;
  edge.blocked = true;
}

// Begins with another edge each time that a budget is used up, so that they take turns.
void WorkerEngine::unblock() {
  retry_at_ = Time::never();
  blocked_ = 0;
  const auto edges = static_cast<EdgeNumber>(edges_.size());
  const EdgeNumber first = turn_ % std::max(edges, 1U);
  for (EdgeNumber k = 0; k < edges; ++k) {
    const EdgeNumber e = (first + k) % edges;
    if (!edges_[e].blocked) continue;
    edges_[e].blocked = false;
    const std::uint32_t open = edges_[e].open;
    post(e);
    if (edges_[e].blocked && edges_[e].open != open) turn_ = e + 1;
  }
}

// Reads that were posted together run out together: that counts once.
void WorkerEngine::be_patient() {
  if (now_ < patient_from_) return;
  const Time most = std::max(config_.read_deadline, config_.no_progress / 2);
  config_.read_deadline = std::min(config_.read_deadline * 2, most);
  patient_from_ = after(now_, config_.read_deadline);
}

void WorkerEngine::on(const BlockRead& event) {
  InEdge& edge = edges_[event.at.edge];
  --edge.open;
  const bool over = edge.held || edge.state != EdgeState::Active;
  if (event.status == ReadStatus::Ok) {
    progress_ = now_;
    if (!over) pace(edge);
  }
  if (event.status == ReadStatus::DeadlineExceeded) be_patient();
  if (blocked_ != 0) unblock();
  if (event.status == ReadStatus::Ok) {
    if (!over) post(event.at.edge);
    if (mutated(Mutant::ServeUnverified)) count(event.at);
    if (tables_->verify()) {
      ++edge.digesting;
      out_->push_back(DigestBlock{event.at, block(event.at)});
    } else {
      count(event.at);
    }
  } else if (!over) {
    EngineFailure detail;
    detail.status = event.status;
    give_up_parent(event.at.edge, FailureKind::ReadFailed, detail, event.at.index);
  }
  drained(event.at.edge);
}

void WorkerEngine::on(const BlockDigested& event) {
  const std::uint64_t expected = tables_->digest(block(event.at));
  InEdge& edge = edges_[event.at.edge];
  --edge.digesting;
  if (event.digest == expected) {
    count(event.at);
  } else {
    EngineFailure detail;
    detail.expected = expected;
    detail.found = event.digest;
    out_->push_back(
        BadDigest{event.at, block(event.at), source(event.at.edge), expected, event.digest});
    if (!edge.held && edge.state == EdgeState::Active) {
      give_up_parent(event.at.edge, FailureKind::DigestMismatch, detail, event.at.index);
    }
  }
  drained(event.at.edge);
}

// The refused reads of an edge are those that were posted last: the edge goes back to the first.
void WorkerEngine::on(const PostRefused& event) {
  InEdge& edge = edges_[event.at.edge];
  --edge.open;
  if (!edge.held && edge.state == EdgeState::Active) {
    if (event.reason == Posted::PeerGone) {
      give_up_parent(event.at.edge, FailureKind::SourceLost, {}, event.at.index);
    } else {
      edge.next = std::min(edge.next, event.at.index);
      block_edge(edge);
      retry_at_ = std::min(retry_at_, after(now_, config_.retry_interval));
    }
  }
  drained(event.at.edge);
}

void WorkerEngine::count(EdgeBlock at) {
  StripeState& stripe = stripes_[edges_[at.edge].stripe];
  if (verified(stripe, at.index)) return;
  bits_[stripe.first_word + at.index / kWordBits] |= 1ULL << (at.index & kWordMask);
  // A read that an earlier assignment had open counts for the one that wants the block now.
  const auto wants = [&](EdgeNumber e) {
    return edges_[e].left != 0 && edges_[e].from <= at.index && at.index < edges_[e].to;
  };
  EdgeNumber wanted = wants(at.edge) ? at.edge : stripe.first_edge;
  while (wanted != kNone && !wants(wanted)) wanted = edges_[wanted].next_edge;
  if (wanted != kNone) {
    --edges_[wanted].left;
    --missing_;
  }
  progress_ = now_;
  out_->push_back(BlockVerified{at, block(at)});
  for (std::uint32_t c = stripe.first_child; c != kNone; c = children_[c].next_child) {
    offer(c, at.index, at.index);
  }
  if (wanted != kNone && missing_ == 0) out_->push_back(Completed{});
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

Time WorkerEngine::ask_wait(const InEdge& edge) const {
  const Time usual = usual_ask_wait(edge);
  const Time most = std::max(config_.ask_interval_most, usual);
  Time wait = usual;
  for (std::uint8_t k = 0; k < edge.asks && wait < most; ++k) wait = std::min(wait * 2, most);
  return wait;
}

void WorkerEngine::ask(EdgeNumber number) {
  const InEdge& edge = edges_[number];
  const std::uint32_t first = edge.held ? first_missing(edge) : edge.next;
  out_->push_back(
      SendMessage{edge.parent, stripes_[edge.stripe].id, first & ~kWordMask, 0, true, number});
}

// Asks the parents of edges that wait for word for too long.
void WorkerEngine::ask_again() {
  ask_check_ = Time::never();
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    InEdge& edge = edges_[e];
    if (edge.parent_has_all || edge.left == 0 || edge.state != EdgeState::Active) continue;
    const bool waits =
        edge.held || (!edge.blocked && edge.open < edge.window && edge.next < edge.to);
    if (edge.ask_at <= now_) {
      if (waits) {
        ask(e);
        edge.asks = static_cast<std::uint8_t>(std::min(edge.asks + 1, 32));
      }
      edge.ask_at = after(now_, ask_wait(edge));
    }
    ask_check_ = std::min(ask_check_, edge.ask_at);
  }
}

void WorkerEngine::check_progress() {
  if (missing_ == 0 || now_ < after(progress_, config_.no_progress)) return;
  if (config_.await_parent) return give_up_all();
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    if (edges_[e].left == 0) continue;
    EngineFailure detail;
    detail.waited = now_ - progress_;
    return fail(FailureKind::NoProgress, e, first_missing(edges_[e]), detail);
  }
}

// Whoever gives out parents hears that these bring nothing; its last word may have been lost.
void WorkerEngine::give_up_all() {
  EngineFailure detail;
  detail.waited = now_ - progress_;
  progress_ = now_;
  for (EdgeNumber e = 0; e < edges_.size(); ++e) {
    const InEdge& edge = edges_[e];
    if (edge.left == 0) continue;
    if (edge.state == EdgeState::Wanted) {
      out_->push_back(NeedParent{stripes_[edge.stripe].id, first_missing(edge), edge.parent,
                                 edge.cause, ReadStatus::Ok});
    } else if (edge.state == EdgeState::Active && !edge.held) {
      give_up_parent(e, FailureKind::NoProgress, detail, first_missing(edge));
    }
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
