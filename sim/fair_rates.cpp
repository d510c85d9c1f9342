#include "sim/fair_rates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace holdfast::sim {
namespace {

constexpr double kClose = 1e-10;
// A change below this is rounding: the flow keeps its rate, and its end stays where it was.
constexpr double kSame = 1e-13;

bool reaches(double value, double limit) {
  return value >= limit * (1 - kClose);
}

}  // namespace

FairRates::FairRates(std::span<const double> capacities) : links_(capacities.size()) {
  for (std::size_t l = 0; l < links_.size(); ++l) links_[l].capacity = capacities[l];
}

void FairRates::touch(std::uint32_t link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_.push_back(link);
}

void FairRates::add(std::uint32_t number, std::span<const std::uint32_t> links, double cap) {
  if (flows_.size() <= number) flows_.resize(std::max<std::size_t>(number + 1, 2 * flows_.size()));
  Flow& flow = flows_[number];
  flow.links.clear();
  flow.rate = 0;
  flow.cap = cap;
  for (const std::uint32_t link : links) {
    const auto place = static_cast<std::uint32_t>(links_[link].users.size());
    links_[link].users.push_back({number, static_cast<std::uint32_t>(flow.links.size())});
    flow.links.emplace_back(link, place);
  }
  ++live_;
  take(number);
}

void FairRates::remove(std::uint32_t number) {
  Flow& flow = flows_[number];
  for (const auto& [link, place] : flow.links) {
    std::vector<User>& users = links_[link].users;
    users[place] = users.back();
    flows_[users[place].flow].links[users[place].link_number].second = place;
    users.pop_back();
    touch(link);
  }
  flow.links.clear();
  flow.rate = 0;
  if (flow.in_region) {
    std::erase(region_, number);
    flow.in_region = false;
  }
  --live_;
}

// All of its flows come into the region: where it has become narrower nobody may be content with
// it, and where it has become wider who was is not any more.
void FairRates::set_capacity(std::uint32_t number, double capacity) {
  Link& link = links_[number];
  link.capacity = capacity;
  touch(number);
  for (const User& user : link.users) {
    if (!flows_[user.flow].in_region) take(user.flow);
  }
}

void FairRates::measure(Link& link) const {
  double load = 0;
  link.top = 0;
  for (const User& user : link.users) {
    const double rate = flows_[user.flow].rate;
    load += rate;
    link.top = std::max(link.top, rate);
  }
  link.full = reaches(load, link.capacity);
}

double FairRates::lend(std::uint32_t number) {
  Flow& flow = flows_[number];
  double most = flow.cap;
  for (const auto& [l, place] : flow.links) {
    double left = links_[l].capacity;
    for (const User& user : links_[l].users) left -= flows_[user.flow].rate;
    most = std::min(most, left);
  }
  flow.rate = std::max(most, 0.0);
  return flow.rate;
}

bool FairRates::content(const Flow& flow) const {
  if (reaches(flow.rate, flow.cap)) return true;
  return std::any_of(flow.links.begin(), flow.links.end(), [&](const auto& at) {
    const Link& link = links_[at.first];
    return link.full && reaches(flow.rate, link.top);
  });
}

void FairRates::take(std::uint32_t number) {
  Flow& flow = flows_[number];
  flow.in_region = true;
  flow.old_rate = flow.rate;
  region_.push_back(number);
}

bool FairRates::take_discontent_users(const Link& link) {
  const std::size_t before = region_.size();
  for (const User& user : link.users) {
    const Flow& flow = flows_[user.flow];
    if (!flow.in_region && !content(flow)) take(user.flow);
  }
  return region_.size() != before;
}

// On the full links of a flow that others keep down: those others.
bool FairRates::take_what_is_faster(const Flow& flow) {
  const std::size_t before = region_.size();
  for (const auto& [number, place] : flow.links) {
    const Link& link = links_[number];
    if (!link.full) continue;
    for (const User& user : link.users) {
      const Flow& other = flows_[user.flow];
      if (!other.in_region && !reaches(flow.rate, other.rate)) take(user.flow);
    }
  }
  return region_.size() != before;
}

// The links of the region, and what of their capacity is not given to flows outside.
void FairRates::prepare() {
  ++mark_;
  region_links_.clear();
  for (const std::uint32_t number : region_) {
    flows_[number].fixed = false;
    for (const auto& [l, place] : flows_[number].links) {
      Link& link = links_[l];
      if (link.mark != mark_) {
        link.mark = mark_;
        link.open = 0;
        region_links_.push_back(l);
      }
      ++link.open;
    }
  }
  for (const std::uint32_t l : region_links_) {
    Link& link = links_[l];
    link.left = link.capacity;
    if (link.open == link.users.size()) continue;
    for (const User& user : link.users) {
      if (!flows_[user.flow].in_region) link.left -= flows_[user.flow].rate;
    }
    link.left = std::max(link.left, 0.0);
  }
}

void FairRates::fix(std::uint32_t number, double rate) {
  Flow& flow = flows_[number];
  flow.rate = rate;
  flow.fixed = true;
  --unfixed_;
  for (const auto& [l, place] : flow.links) {
    Link& link = links_[l];
    link.left = std::max(link.left - rate, 0.0);
    --link.open;
  }
}

// Shares only rise while flows are fixed at the least one: a link whose share has risen since it
// was put on the heap goes back with the new one.
void FairRates::solve() {
  prepare();
  work_ += region_.size();
  const auto links = static_cast<std::uint32_t>(links_.size());
  heap_.clear();
  for (const std::uint32_t l : region_links_) {
    heap_.emplace_back(links_[l].left / links_[l].open, l);
  }
  for (const std::uint32_t f : region_) {
    if (flows_[f].cap != kNoCap) heap_.emplace_back(flows_[f].cap, links + f);
  }
  const std::greater<> later;
  std::make_heap(heap_.begin(), heap_.end(), later);
  unfixed_ = region_.size();
  while (unfixed_ != 0) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto [share, number] = heap_.back();
    heap_.pop_back();
    if (number >= links) {
      if (!flows_[number - links].fixed) fix(number - links, share);
      continue;
    }
    const Link& link = links_[number];
    if (link.open == 0) continue;
    const double now = link.left / link.open;
    if (now > share * (1 + kSame)) {
      heap_.emplace_back(now, number);
      std::push_heap(heap_.begin(), heap_.end(), later);
      continue;
    }
    for (const User& user : link.users) {
      const Flow& flow = flows_[user.flow];
      if (flow.in_region && !flow.fixed) fix(user.flow, now);
    }
  }
}

std::span<const std::uint32_t> FairRates::settle() {
  changed_.clear();
  for (const std::uint32_t l : dirty_) {
    Link& link = links_[l];
    link.dirty = false;
    const bool was_full = link.full;
    measure(link);
    // Whoever is content with another link, or with this one because it is still full, stays so.
    if (was_full && !link.full) take_discontent_users(link);
  }
  dirty_.clear();
  for (bool grown = !region_.empty(); grown;) {
    solve();
    grown = false;
    for (const std::uint32_t l : region_links_) {
      Link& link = links_[l];
      const bool was_full = link.full;
      measure(link);
      link.watched = was_full || link.full;  // somebody may be, or may have been, content with it
    }
    const std::size_t size = region_.size();
    for (const std::uint32_t l : region_links_) {
      if (links_[l].watched && take_discontent_users(links_[l])) grown = true;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const Flow& flow = flows_[region_[i]];
      if (!content(flow) && take_what_is_faster(flow)) grown = true;
    }
  }
  for (const std::uint32_t number : region_) {
    Flow& flow = flows_[number];
    flow.in_region = false;
    if (std::abs(flow.rate - flow.old_rate) <= kSame * flow.rate) {
      flow.rate = flow.old_rate;
    } else {
      changed_.push_back(number);
    }
  }
  region_.clear();
  return changed_;
}

}  // namespace holdfast::sim
