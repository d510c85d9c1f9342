#include "sim/route_table.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace holdfast::sim {
namespace {

// What a link carries is the sum of what its routes carry. If each of them also takes one of a few
// stronger links that together are not wider, the link's constraint follows from theirs. Three ways
// to choose those: one that all routes share; on each route the narrowest, nearest to the source;
// the same, nearest to the destination. "Stronger" is a strict order, so that no two links are left
// out because of each other: a link's constraint follows from stronger ones, and theirs, where they
// are left out too, from still stronger ones.
class RedundantLinks {
 public:
  RedundantLinks(std::vector<Rate> capacity, std::span<const std::uint32_t> all_uses)
      : capacity_(std::move(capacity)),
        uses_(capacity_.size()),
        seen_(capacity_.size(), false),
        alone_(capacity_.size(), false),
        shared_(capacity_.size()),
        first_(capacity_.size()),
        last_(capacity_.size()) {
    for (const std::uint32_t link : all_uses) ++uses_[link];
  }

  void add(std::span<const std::uint32_t> route) {
    for (const std::uint32_t link : route) {
      std::optional<std::uint32_t> first;
      std::optional<std::uint32_t> last;
      for (const std::uint32_t other : route) {
        if (!stronger(other, link)) continue;
        if (!first || capacity_[other] < capacity_[*first]) first = other;
        if (!last || capacity_[other] <= capacity_[*last]) last = other;
      }
      narrow_shared(link, route);
      if (!first) {
        alone_[link] = true;
        continue;
      }
      first_[link].add(*first, capacity_);
      last_[link].add(*last, capacity_);
    }
  }

  [[nodiscard]] std::vector<bool> result() const {
    std::vector<bool> redundant(capacity_.size());
    for (std::size_t link = 0; link < redundant.size(); ++link) {
      redundant[link] = !shared_[link].empty() ||
                        (seen_[link] && !alone_[link] &&
                         std::min(first_[link].sum, last_[link].sum) <= capacity_[link]);
    }
    return redundant;
  }

 private:
  // Distinct links, as long as they may together be narrow enough, and their sum.
  struct Group {
    std::vector<std::uint32_t> links;  // ascending
    Rate sum;

    void add(std::uint32_t link, const std::vector<Rate>& capacity) {
      constexpr std::size_t kMost = 256;
      if (links.size() == kMost) {
        sum = Rate(std::numeric_limits<std::uint64_t>::max());
        return;
      }
      const auto at = std::lower_bound(links.begin(), links.end(), link);
      if (at != links.end() && *at == link) return;
      links.insert(at, link);
      sum += capacity[link];
    }
  };

  [[nodiscard]] bool stronger(std::uint32_t a, std::uint32_t b) const {
    if (capacity_[a] != capacity_[b]) return capacity_[a] < capacity_[b];
    if (uses_[a] != uses_[b]) return uses_[a] > uses_[b];
    return a < b;
  }

  void narrow_shared(std::uint32_t link, std::span<const std::uint32_t> route) {
    if (seen_[link]) {
      std::erase_if(shared_[link], [&](std::uint32_t other) {
        return std::find(route.begin(), route.end(), other) == route.end();
      });
      return;
    }
    seen_[link] = true;
    for (const std::uint32_t other : route) {
      if (stronger(other, link)) shared_[link].push_back(other);
    }
  }

  std::vector<Rate> capacity_;
  std::vector<std::uint32_t> uses_;
  std::vector<bool> seen_;
  std::vector<bool> alone_;  // some route has nothing stronger
  std::vector<std::vector<std::uint32_t>> shared_;
  std::vector<Group> first_;
  std::vector<Group> last_;
};

}  // namespace

std::size_t RouteTable::PathHash::operator()(const DataPath& path) const noexcept {
  std::uint64_t hash = (std::uint64_t{path.source.value()} << 32) | path.destination.value();
  const std::uint64_t ports =
      (std::uint64_t{path.path.source_port.value()} << 32) | path.path.destination_port.value();
  hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15U + ports;
  hash = (hash ^ (hash >> 31)) * 0xbf58476d1ce4e5b9U + path.path.stream;
  return static_cast<std::size_t>((hash ^ (hash >> 30)) * 0x94d049bb133111ebU >> 8);
}

std::uint32_t RouteTable::number_of(ChannelId channel) {
  link_of_channel_.resize(router_->topology().channels());
  std::uint32_t& known = link_of_channel_[channel.index()];
  if (known == 0) {
    channels_.push_back(channel);
    known = static_cast<std::uint32_t>(channels_.size());
  }
  return known - 1;
}

void RouteTable::add_all_links() {
  has_all_links_ = true;
  const Topology& topology = router_->topology();
  for (std::size_t c = 0; c < topology.channels(); ++c) {
    const ChannelId channel(static_cast<std::uint32_t>(c));
    if (topology.usable(channel.link())) number_of(channel);
  }
}

std::uint32_t RouteTable::insert(const DataPath& path, bool with_links) {
  const auto number = static_cast<std::uint32_t>(entries_.size());
  Entry entry;
  entry.first = static_cast<std::uint32_t>(links_.size());
  const auto route = router_->route(path.source, path.destination, path.path);
  if (route) {
    const Topology& topology = router_->topology();
    entry.up = true;
    entry.latency = router_->latency(*route);
    for (const ChannelId channel : *route) {
      const Link& link = topology.link(channel.link());
      if (link.stream_cap) {
        entry.stream_cap =
            entry.stream_cap ? std::min(*entry.stream_cap, *link.stream_cap) : *link.stream_cap;
      }
      if (link.kind == LinkKind::Wan) ++entry.wan;
      entry.over_nic |= topology.node(topology.head(channel)).kind == NodeKind::Nic &&
                        !is_inside_host(topology.node(topology.tail(channel)).kind);
      if (with_links) links_.push_back(number_of(channel));
    }
    entry.count = static_cast<std::uint32_t>(links_.size()) - entry.first;
    if (has_all_links_) {
      entry.flow_first = static_cast<std::uint32_t>(flow_links_.size());
      entry.flow_count = entry.count;
      flow_links_.insert(flow_links_.end(), links_.begin() + entry.first, links_.end());
    }
  }
  entries_.push_back(entry);
  return number;
}

std::uint32_t RouteTable::add(const DataPath& path) {
  const auto [at, is_new] = routes_.try_emplace(path, 0);
  if (is_new) at->second = insert(path, true);
  return at->second;
}

std::optional<std::uint32_t> RouteTable::find(const DataPath& path) const {
  const auto at = routes_.find(path);
  if (at == routes_.end()) return std::nullopt;
  return at->second;
}

std::uint32_t RouteTable::find_for_messages(const DataPath& path) {
  if (const auto same = find(path)) return *same;
  const DataPath reverse{path.destination,
                         path.source,
                         {path.path.destination_port, path.path.source_port, path.path.stream}};
  if (const auto back = find(reverse)) return *back;
  const auto at = routes_.try_emplace(path, insert(path, false)).first;
  return at->second;
}

std::optional<std::uint32_t> RouteTable::find_link(ChannelId channel) const {
  if (channel.index() >= link_of_channel_.size() || link_of_channel_[channel.index()] == 0) {
    return std::nullopt;
  }
  return link_of_channel_[channel.index()] - 1;
}

Rate RouteTable::capacity(std::uint32_t link) const {
  return router_->topology().link(channels_[link].link()).capacity;
}

std::vector<Rate> RouteTable::capacities() const {
  std::vector<Rate> result;
  result.reserve(channels_.size());
  for (std::uint32_t link = 0; link < channels_.size(); ++link) result.push_back(capacity(link));
  return result;
}

void RouteTable::drop_redundant_links() {
  RedundantLinks search(capacities(), links_);
  for (std::uint32_t route = 0; route < entries_.size(); ++route) search.add(links(route));
  const std::vector<bool> redundant = search.result();
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    entries_[route].flow_first = static_cast<std::uint32_t>(flow_links_.size());
    for (const std::uint32_t link : links(route)) {
      if (!redundant[link]) flow_links_.push_back(link);
    }
    entries_[route].flow_count =
        static_cast<std::uint32_t>(flow_links_.size()) - entries_[route].flow_first;
  }
}

std::size_t RouteTable::most_coupled() const {
  std::vector<std::uint32_t> root(channels_.size());  // of the set that a link is in
  for (std::uint32_t link = 0; link < root.size(); ++link) root[link] = link;
  const auto find = [&](std::uint32_t link) {
    while (root[link] != link) link = root[link] = root[root[link]];
    return link;
  };
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    const auto links = flow_links(route);
    for (const std::uint32_t link : links) root[find(link)] = find(links.front());
  }
  std::vector<std::size_t> routes(channels_.size());
  std::size_t most = 0;
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    const auto links = flow_links(route);
    if (!links.empty()) most = std::max(most, ++routes[find(links.front())]);
  }
  return most;
}

Rate RouteTable::widest_between_hosts() const {
  const std::vector<Rate> capacity = capacities();
  Rate between;
  Rate any;
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    const Entry& entry = entries_[route];
    if (entry.count == 0) continue;
    Rate narrowest = entry.stream_cap.value_or(Rate(std::numeric_limits<std::uint64_t>::max()));
    for (const std::uint32_t link : links(route)) narrowest = std::min(narrowest, capacity[link]);
    any = std::max(any, narrowest);
    if (entry.over_nic) between = std::max(between, narrowest);
  }
  return between == Rate(0) ? any : between;
}

}  // namespace holdfast::sim
