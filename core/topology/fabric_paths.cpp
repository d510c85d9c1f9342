#include "core/topology/fabric_paths.hpp"

#include <algorithm>
#include <limits>

namespace holdfast {
namespace {

constexpr std::uint32_t kNoSwitch = 0xFFFF'FFFF;

std::uint32_t saturated(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, FabricPaths::kMostChoices));
}

}  // namespace

FabricPaths::FabricPaths(const Topology& topology)
    : topology_(&topology), switch_of_(topology.nodes().size(), kNoSwitch) {
  std::vector<NodeId> switches;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    if (is_inside_host(topology.nodes()[i].kind)) continue;
    switch_of_[i] = static_cast<std::uint32_t>(switches.size());
    switches.push_back(NodeId(i));
  }
  first_.reserve(switches.size() + 1);
  for (const NodeId from : switches) {
    first_.push_back(static_cast<std::uint32_t>(hops_out_.size()));
    for (const Neighbour& neighbour : topology.neighbours(from)) {
      const std::uint32_t to = switch_of_[neighbour.node.index()];
      if (to == kNoSwitch || !crosses(neighbour.link)) continue;
      hops_out_.push_back({outward(from, neighbour.link), to});
    }
  }
  first_.push_back(static_cast<std::uint32_t>(hops_out_.size()));
  distances_.resize(switches.size());
  counts_.resize(switches.size());
}

std::uint32_t FabricPaths::append(NodeId source, NodeId destination, std::uint32_t stream,
                                  std::vector<ChannelId>& channels) {
  std::uint64_t period = 1;
  const auto take = [&]() -> const Hop& {
    const auto n = static_cast<std::uint32_t>(hops_.size());
    const Hop& chosen = hops_[stream % n];
    stream /= n;
    period = std::min<std::uint64_t>(period * n, std::numeric_limits<std::uint32_t>::max());
    channels.push_back(chosen.channel);
    return chosen;
  };
  find_direct(source, destination);
  if (!hops_.empty()) {
    take();
    return static_cast<std::uint32_t>(period);
  }
  find_entries(destination);
  find_first_hops(source);
  if (hops_.empty()) return 0;
  std::uint32_t at = take().to;
  for (std::uint16_t left = rest(at); left > 0; --left) {
    hops_.clear();
    for (const Hop& hop : out(at)) {
      if (rest(hop.to) == left - 1) hops_.push_back(hop);
    }
    at = take().to;
  }
  hops_.clear();
  for (const Hop& entry : entries_) {
    if (entry.to == at) hops_.push_back(entry);
  }
  take();
  return static_cast<std::uint32_t>(period);
}

std::uint32_t FabricPaths::choices(NodeId source, NodeId destination) {
  find_direct(source, destination);
  if (!hops_.empty()) return saturated(hops_.size());
  find_entries(destination);
  find_first_hops(source);
  std::uint64_t paths = 0;
  for (const Hop& hop : hops_) {
    const std::uint16_t left = rest(hop.to);
    // A shortest path ends with exactly one of the entries, so that their counts add up.
    for (const Hop& entry : entries_) {
      if (distances(entry.to)[hop.to] == left) paths += counts(entry.to)[hop.to];
      if (paths >= kMostChoices) return kMostChoices;
    }
  }
  return saturated(paths);
}

std::span<const FabricPaths::Hop> FabricPaths::out(std::uint32_t from) const {
  return std::span(hops_out_).subspan(first_[from], first_[from + 1] - first_[from]);
}

const std::vector<std::uint16_t>& FabricPaths::distances(std::uint32_t to) {
  std::vector<std::uint16_t>& table = distances_[to];
  if (!table.empty()) return table;
  table.assign(distances_.size(), kFar);
  table[to] = 0;
  // Links are full duplex and up both ways or not at all: distance to equals distance from.
  std::vector<std::uint32_t> queue{to};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint16_t beyond = static_cast<std::uint16_t>(table[queue[i]] + 1);
    if (beyond == kFar) break;
    for (const Hop& hop : out(queue[i])) {
      if (table[hop.to] != kFar) continue;
      table[hop.to] = beyond;
      queue.push_back(hop.to);
    }
  }
  return table;
}

const std::vector<std::uint32_t>& FabricPaths::counts(std::uint32_t to) {
  std::vector<std::uint32_t>& table = counts_[to];
  if (!table.empty()) return table;
  const std::vector<std::uint16_t>& away = distances(to);
  table.assign(away.size(), 0);
  table[to] = 1;
  std::vector<std::uint32_t> order;
  for (std::uint32_t s = 0; s < away.size(); ++s) {
    if (away[s] != kFar && s != to) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return away[a] < away[b]; });
  for (const std::uint32_t s : order) {
    std::uint64_t paths = 0;
    for (const Hop& hop : out(s)) {
      if (away[hop.to] + 1 == away[s]) paths += table[hop.to];
    }
    table[s] = saturated(paths);
  }
  return table;
}

void FabricPaths::find_entries(NodeId destination) {
  entries_.clear();
  for (const Neighbour& neighbour : topology_->neighbours(destination)) {
    const std::uint32_t from = switch_of_[neighbour.node.index()];
    if (from == kNoSwitch || !crosses(neighbour.link)) continue;
    entries_.push_back({outward(neighbour.node, neighbour.link), from});
  }
}

std::uint16_t FabricPaths::rest(std::uint32_t from) {
  std::uint16_t least = kFar;
  for (const Hop& entry : entries_) least = std::min(least, distances(entry.to)[from]);
  return least;
}

void FabricPaths::find_first_hops(NodeId source) {
  hops_.clear();
  std::uint16_t least = kFar;
  for (const Neighbour& neighbour : topology_->neighbours(source)) {
    const std::uint32_t to = switch_of_[neighbour.node.index()];
    if (to == kNoSwitch || !crosses(neighbour.link)) continue;
    const std::uint16_t left = rest(to);
    if (left < least) hops_.clear();
    least = std::min(least, left);
    if (left != kFar && left == least) hops_.push_back({outward(source, neighbour.link), to});
  }
}

void FabricPaths::find_direct(NodeId source, NodeId destination) {
  hops_.clear();
  for (const Neighbour& neighbour : topology_->neighbours(source)) {
    if (neighbour.node == destination && crosses(neighbour.link)) {
      hops_.push_back({outward(source, neighbour.link), kNoSwitch});
    }
  }
}

ChannelId FabricPaths::outward(NodeId from, LinkId link) const {
  return ChannelId(link, topology_->link(link).b == from);
}

bool FabricPaths::crosses(LinkId link) const {
  const LinkKind kind = topology_->link(link).kind;
  return (kind == LinkKind::Fabric || kind == LinkKind::Wan) && topology_->usable(link);
}

}  // namespace holdfast
