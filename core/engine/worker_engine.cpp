#include "core/engine/worker_engine.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace holdfast {
namespace {

constexpr Time kLongAgo(std::numeric_limits<std::int64_t>::min());
constexpr std::uint32_t kWordBits = 64;

std::uint32_t words_for(std::uint32_t blocks) {
  return (blocks + kWordBits - 1) / kWordBits;
}

bool test_bit(std::span<const std::uint64_t> words, std::uint32_t index) {
  return ((words[index / kWordBits] >> (index % kWordBits)) & 1U) != 0;
}

}  // namespace

WorkerEngine::WorkerEngine(std::shared_ptr<const UpdateTables> tables, WorkerId worker,
                           const EngineConfig& config)
    : tables_(std::move(tables)), worker_(worker), config_(config) {
  const auto in = tables_->in_edges(worker);
  const auto out = tables_->out_edges(worker);
  std::size_t words = 0;
  for (const std::uint32_t number : in) {
    const StripeId stripe = tables_->edges()[number].stripe;
    words += 2 * words_for(static_cast<std::uint32_t>(tables_->blocks(stripe).size()));
  }
  std::size_t told = 0;  // children that need to be told
  for (const std::uint32_t number : out) {
    if (!tables_->edges()[number].from_holder) ++told;
  }
  edges_.reserve(in.size());
  stripes_.reserve(in.size());
  by_stripe_.reserve(in.size());
  bits_.reserve(words);
  children_.reserve(told);
  due_.reserve(told);
  for (const std::uint32_t number : in) {
    const TableEdge& edge = tables_->edges()[number];
    assign({edge.stripe, edge.parent, 0,
            static_cast<std::uint32_t>(tables_->blocks(edge.stripe).size()), edge.window,
            edge.from_holder, edge.path, edge.have_interval, edge.block_time});
  }
  for (const std::uint32_t number : out) {
    const TableEdge& edge = tables_->edges()[number];
    if (!edge.from_holder) add_child({edge.stripe, edge.child, edge.path, edge.have_interval});
  }
  // The first step begins everything: no list is needed.
  for (InEdge& edge : edges_) edge.fresh = false;
  for (StripeState& stripe : stripes_) stripe.planned_over = false;
  fresh_edges_ = {};
  fresh_children_ = {};
}

std::uint32_t WorkerEngine::find_stripe(StripeId stripe) const {
  const auto found =
      std::lower_bound(by_stripe_.begin(), by_stripe_.end(), stripe,
                       [&](std::uint32_t k, StripeId id) { return stripes_[k].id < id; });
  return found != by_stripe_.end() && stripes_[*found].id == stripe ? *found : kNone;
}

std::uint32_t WorkerEngine::stripe_state(StripeId stripe) {
  if (const std::uint32_t known = find_stripe(stripe); known != kNone) return known;
  StripeState state;
  state.id = stripe;
  state.blocks = static_cast<std::uint32_t>(tables_->blocks(stripe).size());
  if (!tables_->holds(worker_, stripe)) {
    state.first_word = static_cast<std::uint32_t>(bits_.size());
    bits_.resize(bits_.size() + 2 * words_for(state.blocks));
  }
  const auto number = static_cast<std::uint32_t>(stripes_.size());
  stripes_.push_back(state);
  const auto at =
      std::lower_bound(by_stripe_.begin(), by_stripe_.end(), stripe,
                       [&](std::uint32_t k, StripeId id) { return stripes_[k].id < id; });
  by_stripe_.insert(at, number);
  return number;
}

EdgeNumber WorkerEngine::assign(const Assignment& assignment) {
  const std::uint32_t number = stripe_state(assignment.stripe);
  stripes_[number].planned_over = true;
  std::erase(lost_, assignment.parent);
  EdgeNumber place = kNone;
  for (EdgeNumber e = stripes_[number].first_edge; e != kNone; e = edges_[e].next_edge) {
    const InEdge& other = edges_[e];
    if (other.left != 0 && other.from < assignment.to && assignment.from < other.to) close(e);
    const bool over = other.left == 0 && other.open == 0 && other.digesting == 0 && !other.fresh;
    if (over) place = e;
  }
  if (place == kNone) {
    place = static_cast<EdgeNumber>(edges_.size());
    InEdge& added = edges_.emplace_back();
    added.next_edge = stripes_[number].first_edge;
    windows_ += added.window;
    stripes_[number].first_edge = place;
  }
  InEdge& edge = edges_[place];
  const std::uint32_t next_edge = edge.next_edge;
  windows_ -= edge.window;
  edge = InEdge{};
  edge.next_edge = next_edge;
  edge.parent = assignment.parent;
  edge.stripe = number;
  edge.from = assignment.from;
  edge.to = std::max(assignment.from, assignment.to);
  edge.next = assignment.from;
  edge.window = std::max(assignment.window, 1U);
  edge.parent_has_all = assignment.parent_has_all;
  edge.path = assignment.path;
  edge.have_interval = assignment.have_interval;
  edge.block_time = assignment.block_time;
  for (std::uint32_t i = edge.from; i < edge.to; ++i) {
    edge.left += verified(stripes_[number], i) ? 0U : 1U;
  }
  forget_offers(edge);
  windows_ += edge.window;
  missing_ += edge.left;
  edge.fresh = true;
  fresh_edges_.push_back(place);
  fresh_ = true;
  return place;
}

void WorkerEngine::drop(StripeId stripe) {
  const std::uint32_t number = find_stripe(stripe);
  std::erase_if(alternates_, [&](const Alternate& known) { return known.stripe == stripe; });
  if (number == kNone) return;
  stripes_[number].planned_over = true;
  for (EdgeNumber e = stripes_[number].first_edge; e != kNone; e = edges_[e].next_edge) {
    if (edges_[e].left != 0) close(e);
  }
}

// Wants nothing any more; the next step cancels what is open.
void WorkerEngine::close(EdgeNumber number) {
  InEdge& edge = edges_[number];
  missing_ -= edge.left;
  edge.left = 0;
  edge.state = EdgeState::Dropped;
  if (edge.blocked) --blocked_;
  edge.blocked = false;
  if (!edge.fresh) fresh_edges_.push_back(number);
  edge.fresh = true;
  fresh_ = true;
}

// A holder keeps no bits.
void WorkerEngine::forget_offers(const InEdge& edge) {
  const StripeState& stripe = stripes_[edge.stripe];
  if (stripe.first_word == kNone || edge.parent_has_all) return;
  const std::uint32_t first = stripe.first_word + words_for(stripe.blocks);
  for (std::uint32_t i = edge.from; i < edge.to;) {
    const std::uint32_t end = std::min(edge.to, (i / kWordBits + 1) * kWordBits);
    const std::uint64_t up_to_end =
        end % kWordBits == 0 ? ~std::uint64_t{0} : (1ULL << (end % kWordBits)) - 1;
    const std::uint64_t before = (1ULL << (i % kWordBits)) - 1;
    bits_[first + i / kWordBits] &= ~(up_to_end & ~before);
    i = end;
  }
}

std::uint32_t WorkerEngine::find_child(std::uint32_t stripe, WorkerId worker) const {
  std::uint32_t c = stripes_[stripe].first_child;
  while (c != kNone && children_[c].worker != worker) c = children_[c].next_child;
  return c;
}

void WorkerEngine::add_child(const Child& child) {
  const std::uint32_t place = child_place(child);
  children_[place].gone = false;
  fresh_children_.push_back(place);
  fresh_ = true;
}

void WorkerEngine::expect_child(const Child& child) {
  const std::uint32_t number = stripe_state(child.stripe);
  const std::uint32_t known = find_child(number, child.worker);
  if (known != kNone && !children_[known].gone) return;
  ChildState& state = children_[child_place(child)];
  state.gone = true;
  state.expected = true;
}

// The child's own place, that of one that is gone for good, or a new one.
std::uint32_t WorkerEngine::child_place(const Child& child) {
  const std::uint32_t number = stripe_state(child.stripe);
  std::uint32_t place = find_child(number, child.worker);
  for (std::uint32_t c = stripes_[number].first_child; c != kNone && place == kNone;
       c = children_[c].next_child) {
    if (children_[c].gone && !children_[c].expected) place = c;
  }
  if (place == kNone) {
    place = static_cast<std::uint32_t>(children_.size());
    children_.emplace_back().next_child = stripes_[number].first_child;
    stripes_[number].first_child = place;
  }
  ChildState& state = children_[place];
  state.worker = child.worker;
  state.stripe = number;
  state.expected = false;
  state.low = kNone;
  state.high = 0;
  state.path = child.path;
  state.have_interval = std::max(child.have_interval, config_.least_have_interval);
  state.quiet_until = kLongAgo;
  return place;
}

void WorkerEngine::remove_child(StripeId stripe, WorkerId worker) {
  const std::uint32_t number = find_stripe(stripe);
  if (number == kNone) return;
  const std::uint32_t c = find_child(number, worker);
  if (c == kNone) return;
  children_[c].gone = true;
  children_[c].expected = false;
}

bool WorkerEngine::verified(const StripeState& stripe, std::uint32_t index) const {
  return stripe.first_word == kNone || test_bit(std::span(bits_).subspan(stripe.first_word), index);
}

bool WorkerEngine::offered(const StripeState& stripe, std::uint32_t index) const {
  const std::uint32_t first = stripe.first_word + words_for(stripe.blocks);
  return test_bit(std::span(bits_).subspan(first), index);
}

bool WorkerEngine::has(StripeId stripe, std::uint32_t index) const {
  const std::uint32_t number = find_stripe(stripe);
  return number == kNone ? tables_->holds(worker_, stripe) : verified(stripes_[number], index);
}

Assignment WorkerEngine::assignment(EdgeNumber edge) const {
  const InEdge& in = edges_[edge];
  return {stripes_[in.stripe].id, in.parent, in.from,          in.to,        in.window,
          in.parent_has_all,      in.path,   in.have_interval, in.block_time};
}

BlockId WorkerEngine::block(EdgeBlock at) const {
  return tables_->blocks(stripes_[edges_[at.edge].stripe].id)[at.index];
}

Child WorkerEngine::child(std::size_t number) const {
  const ChildState& state = children_[number];
  return {stripes_[state.stripe].id, state.worker, state.path, state.have_interval};
}

std::uint32_t WorkerEngine::first_missing(StripeId stripe) const {
  const auto blocks = static_cast<std::uint32_t>(tables_->blocks(stripe).size());
  std::uint32_t index = 0;
  while (index < blocks && has(stripe, index)) ++index;
  return index;
}

std::uint32_t WorkerEngine::open_work() const {
  std::uint32_t open = 0;
  for (const InEdge& edge : edges_) open += edge.open + edge.digesting;
  return open;
}

WorkerId WorkerEngine::source(EdgeNumber edge) const {
  const InEdge& in = edges_[edge];
  return in.held && in.former.valid() ? in.former : in.parent;
}

std::size_t WorkerEngine::write_message(const SendMessage& message,
                                        std::span<std::byte> out) const {
  const MessageSubject about{tables_->version(), tables_->transfer(), message.stripe};
  if (message.ask) return encode_ask(about, message.first, out);
  const std::uint32_t number = find_stripe(message.stripe);
  if (number == kNone || stripes_[number].first_word == kNone) {
    static constexpr auto kAll = [] {
      std::array<std::uint64_t, kMaxHaveBlocks / kWordBits> words{};
      for (std::uint64_t& word : words) word = ~std::uint64_t{0};
      return words;
    }();
    return encode_have(about, message.first, message.count, kAll, out);
  }
  const auto words =
      std::span(bits_).subspan(stripes_[number].first_word + message.first / kWordBits);
  return encode_have(about, message.first, message.count, words, out);
}

std::size_t WorkerEngine::memory_bytes() const {
  return sizeof *this + edges_.capacity() * sizeof(InEdge) +
         children_.capacity() * sizeof(ChildState) + stripes_.capacity() * sizeof(StripeState) +
         by_stripe_.capacity() * sizeof(std::uint32_t) + bits_.capacity() * sizeof(std::uint64_t) +
         due_.capacity() * sizeof(Due) + alternates_.capacity() * sizeof(Alternate) +
         lost_.capacity() * sizeof(WorkerId) +
         (fresh_edges_.capacity() + fresh_children_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace holdfast
