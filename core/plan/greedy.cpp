#include "core/plan/greedy.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/plan/plan_builder.hpp"

namespace holdfast {
namespace {

constexpr std::array kInnermostFirst{Level::Host, Level::Rack, Level::Pod, Level::Datacenter};

}  // namespace

BlockSelection greedy_piece(const Demand& demand, ClassId block_class, std::uint32_t piece) {
  const std::uint32_t blocks = block_count(demand.classes[block_class.index()]);
  const std::uint32_t first = piece * kGreedyPiece;
  return {first, 1, first + std::min(kGreedyPiece, blocks - first)};
}

std::uint32_t greedy_pieces(const Demand& demand, ClassId block_class) {
  const std::uint32_t blocks = block_count(demand.classes[block_class.index()]);
  return blocks / kGreedyPiece + (blocks % kGreedyPiece == 0 ? 0 : 1);
}

Plan greedy_outline(const Topology& topology, const Demand& demand) {
  Plan plan;
  plan.topology = topology.hash();
  plan.demand = hash_of(demand);
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    for (std::uint32_t k = 0; k < greedy_pieces(demand, ClassId(c)); ++k) {
      plan.stripes.push_back({ClassId(c), greedy_piece(demand, ClassId(c), k), {}});
    }
  }
  return plan;
}

GreedyPolicy::GreedyPolicy(const PlanSpace& space, std::optional<std::uint32_t> cap)
    : space_(space),
      cap_(cap),
      wants_(space.demand().workers.size()),
      readers_(space.demand().workers.size(), 0),
      open_(space.demand().workers.size()) {
  const std::vector<BlockClass>& classes = space.demand().classes;
  classes_.reserve(classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) add_class(ClassId(c), classes[c]);
}

void GreedyPolicy::add_class(ClassId block_class, const BlockClass& c) {
  Members& members = classes_.emplace_back();
  members.pieces = greedy_pieces(space_.demand(), block_class);
  members.workers = serving_holders(space_, c);
  const std::vector<WorkerId> holders = members.workers;
  members.workers.insert(members.workers.end(), c.receivers.begin(), c.receivers.end());
  space_.sort_by_rank(members.workers);
  members.given.assign(members.workers.size(), 0);
  for (std::uint32_t i = 0; i < members.workers.size(); ++i) {
    const WorkerId w = members.workers[i];
    if (std::binary_search(c.holders.begin(), c.holders.end(), w)) {
      members.given[i] = members.pieces;
    } else {
      wants_[w.index()].push_back({block_class, i});
      missing_ += members.pieces;
    }
  }
  find_ranges(members);
}

// In domain order the members of a domain stand side by side, since domains are nested.
void GreedyPolicy::find_ranges(Members& members) const {
  const auto count = static_cast<std::uint32_t>(members.workers.size());
  for (std::size_t d = 0; d < kInnermostFirst.size(); ++d) {
    members.first[d].resize(count);
    members.end[d].resize(count);
    for (std::uint32_t i = 0; i < count;) {
      const DomainId domain = space_.around(members.workers[i], kInnermostFirst[d]);
      std::uint32_t end = i + 1;
      while (end < count && domain.valid() &&
             space_.around(members.workers[end], kInnermostFirst[d]) == domain) {
        ++end;
      }
      // Outside all domains of this level nobody is nearer than at the level before.
      const bool alone = !domain.valid() && d > 0;
      for (std::uint32_t k = i; k < end; ++k) {
        members.first[d][k] = alone ? members.first[d - 1][k] : i;
        members.end[d][k] = alone ? members.end[d - 1][k] : end;
      }
      i = end;
    }
  }
}

bool GreedyPolicy::is_free(WorkerId source) const {
  return !cap_ || readers_[source.index()] < *cap_;
}

bool GreedyPolicy::joined(WorkerId source, WorkerId reader) const {
  if (local_path(space_, source, reader)) return true;
  for (const NodeId from : space_.nics(source)) {
    for (const NodeId to : space_.nics(reader)) {
      if (space_.router().choices(from, to) != 0) return true;
    }
  }
  return false;
}

// The best source for the next piece of a member of the class.
std::optional<WorkerId> GreedyPolicy::choose(const Members& members, std::uint32_t member) const {
  const std::uint32_t piece = members.given[member];
  WorkerId best;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  const auto look = [&](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      if (members.given[i] <= piece) continue;
      const WorkerId w = members.workers[i];
      const std::uint32_t readers = readers_[w.index()];
      if (readers > least || (readers == least && w > best)) continue;
      if (!space_.may_serve(w) || !is_free(w) || !joined(w, members.workers[member])) continue;
      best = w;
      least = readers;
    }
  };
  std::uint32_t first = member;  // looked at so far
  std::uint32_t end = member;
  for (std::size_t d = 0; d <= kInnermostFirst.size(); ++d) {
    const bool all = d == kInnermostFirst.size();
    const std::uint32_t from = all ? 0 : members.first[d][member];
    const std::uint32_t to =
        all ? static_cast<std::uint32_t>(members.workers.size()) : members.end[d][member];
    look(from, first);
    look(end, to);
    if (best.valid()) return best;
    first = from;
    end = to;
  }
  return std::nullopt;
}

// Gives the reader its next request if there is a source for it.
bool GreedyPolicy::ask(WorkerId reader, std::vector<GreedyRequest>& out) {
  for (const Want& want : wants_[reader.index()]) {
    Members& members = classes_[want.block_class.index()];
    std::uint32_t& given = members.given[want.member];
    if (given == members.pieces) continue;
    const auto source = choose(members, want.member);
    if (!source) continue;
    const Open& above = open_[source->index()];
    const bool reads_it_too = above.running && above.request.block_class == want.block_class &&
                              above.request.piece == given;
    const GreedyRequest request{reader, *source, want.block_class, given, !reads_it_too};
    open_[reader.index()] = {request, want.member, true};
    ++readers_[source->index()];
    ++given;
    if (cap_ && space_.may_serve(reader)) news_.push_back(reader);
    out.push_back(request);
    return true;
  }
  return false;
}

// Those who wait had no source when all were tried the last time: only news can help them.
bool GreedyPolicy::may_profit(WorkerId reader) const {
  for (const Want& want : wants_[reader.index()]) {
    const Members& members = classes_[want.block_class.index()];
    const std::uint32_t piece = members.given[want.member];
    if (piece == members.pieces) continue;
    for (const WorkerId source : news_) {
      if (!is_free(source)) continue;
      const auto place =
          std::lower_bound(members.workers.begin(), members.workers.end(), source,
                           [&](WorkerId a, WorkerId b) { return space_.rank(a) < space_.rank(b); });
      if (place == members.workers.end() || *place != source) continue;
      if (members.given[static_cast<std::size_t>(place - members.workers.begin())] > piece) {
        return true;
      }
    }
  }
  return false;
}

void GreedyPolicy::serve_waiting(std::vector<GreedyRequest>& out) {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (may_profit(waiting_[i]) && ask(waiting_[i], out)) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    } else {
      ++i;
    }
  }
  news_.clear();
}

std::vector<GreedyRequest> GreedyPolicy::start() {
  std::vector<GreedyRequest> out;
  for (std::size_t w = 0; w < wants_.size(); ++w) {
    if (wants_[w].empty() || ask(WorkerId(w), out)) continue;
    waiting_.emplace_back(w);
  }
  serve_waiting(out);
  return out;
}

std::vector<GreedyRequest> GreedyPolicy::finished(WorkerId reader) {
  Open& open = open_[reader.index()];
  open.running = false;
  --missing_;
  --readers_[open.request.source.index()];
  std::vector<GreedyRequest> out;
  const auto misses = [&](const Want& want) {
    const Members& members = classes_[want.block_class.index()];
    return members.given[want.member] < members.pieces;
  };
  const std::vector<Want>& wants = wants_[reader.index()];
  const bool more = std::any_of(wants.begin(), wants.end(), misses);
  if (!cap_) {
    if (more) ask(reader, out);
    return out;
  }
  news_.push_back(open.request.source);
  serve_waiting(out);
  if (more && !ask(reader, out)) waiting_.push_back(reader);
  serve_waiting(out);
  return out;
}

}  // namespace holdfast
