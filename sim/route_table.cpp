#include "sim/route_table.hpp"

#include <algorithm>

namespace holdfast::sim {

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

std::vector<Rate> RouteTable::capacities() const {
  std::vector<Rate> result;
  result.reserve(channels_.size());
  for (const ChannelId channel : channels_) {
    result.push_back(router_->topology().link(channel.link()).capacity);
  }
  return result;
}

std::vector<bool> RouteTable::redundant_links() const {
  const std::vector<Rate> capacity = capacities();
  std::vector<std::uint32_t> uses(channels_.size());
  for (const std::uint32_t link : links_) ++uses[link];
  // A strict order, so that no two links are left out because of each other.
  const auto stronger = [&](std::uint32_t a, std::uint32_t b) {
    if (capacity[a] != capacity[b]) return capacity[a] < capacity[b];
    if (uses[a] != uses[b]) return uses[a] > uses[b];
    return a < b;
  };
  // By link: the stronger ones that all its routes so far take too.
  std::vector<std::vector<std::uint32_t>> companions(channels_.size());
  std::vector<bool> seen(channels_.size(), false);
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    const auto on_route = links(route);
    for (const std::uint32_t link : on_route) {
      if (seen[link]) {
        std::erase_if(companions[link], [&](std::uint32_t other) {
          return std::find(on_route.begin(), on_route.end(), other) == on_route.end();
        });
        continue;
      }
      seen[link] = true;
      for (const std::uint32_t other : on_route) {
        if (stronger(other, link)) companions[link].push_back(other);
      }
    }
  }
  std::vector<bool> redundant(channels_.size());
  for (std::size_t link = 0; link < redundant.size(); ++link) {
    redundant[link] = !companions[link].empty();
  }
  return redundant;
}

void RouteTable::drop_redundant_links() {
  const std::vector<bool> redundant = redundant_links();
  for (std::uint32_t route = 0; route < entries_.size(); ++route) {
    entries_[route].flow_first = static_cast<std::uint32_t>(flow_links_.size());
    for (const std::uint32_t link : links(route)) {
      if (!redundant[link]) flow_links_.push_back(link);
    }
    entries_[route].flow_count =
        static_cast<std::uint32_t>(flow_links_.size()) - entries_[route].flow_first;
  }
}

}  // namespace holdfast::sim
