#include "core/plan/route_smoother.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace holdfast {
namespace {

constexpr std::uint32_t kMostCompared = 64;
constexpr double kAlike = 1.0005;
constexpr double kSlack = 1.004;  // what the smallest classes add here and there is no excess

// A link of the fabric that other routes may avoid.
bool between_switches(const Topology& topology, ChannelId channel) {
  const Link& link = topology.link(channel.link());
  return link.kind == LinkKind::Fabric && !is_inside_host(topology.node(link.a).kind) &&
         !is_inside_host(topology.node(link.b).kind);
}

// The planner has shared out what crosses a WAN: an edge stays on its line.
bool on_same_lines(const Topology& topology, const Route& a, const Route& b) {
  const auto not_wan = [&](ChannelId channel) {
    return topology.link(channel.link()).kind != LinkKind::Wan;
  };
  auto in_a = std::find_if_not(a.begin(), a.end(), not_wan);
  auto in_b = std::find_if_not(b.begin(), b.end(), not_wan);
  while (in_a != a.end() && in_b != b.end() && *in_a == *in_b) {
    in_a = std::find_if_not(in_a + 1, a.end(), not_wan);
    in_b = std::find_if_not(in_b + 1, b.end(), not_wan);
  }
  return in_a == a.end() && in_b == b.end();
}

// Links that lead from one domain's switches to another's, side by side.
using Bundle = std::tuple<DomainId, NodeKind, DomainId, NodeKind>;

Bundle bundle_of(const Topology& topology, ChannelId channel) {
  const Node& tail = topology.node(topology.tail(channel));
  const Node& head = topology.node(topology.head(channel));
  return {tail.domain, tail.kind, head.domain, head.kind};
}

}  // namespace

void RouteSmoother::set_limits(const std::vector<RoutedEdge>& edges) {
  double nic = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Route& route = ways_[e].route;
    if (route.empty()) continue;
    nic = std::max({nic, load_.time(route.front()), load_.time(route.back())});
  }
  struct Sum {
    double time = 0;
    std::size_t links = 0;
  };
  const Topology& topology = space_.topology();
  std::map<Bundle, Sum> bundles;
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    const ChannelId channel(c);
    if (!topology.usable(channel.link()) || !between_switches(topology, channel)) continue;
    Sum& sum = bundles[bundle_of(topology, channel)];
    sum.time += load_.time(channel);
    ++sum.links;
  }
  limits_.assign(topology.channels(), std::numeric_limits<double>::infinity());
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    const ChannelId channel(c);
    if (!topology.usable(channel.link()) || !between_switches(topology, channel)) continue;
    const Sum& sum = bundles[bundle_of(topology, channel)];
    limits_[c] = kSlack * std::max(nic, sum.time / static_cast<double>(sum.links));
  }
}

bool RouteSmoother::too_busy(ChannelId channel, Bytes more) const {
  return load_.time(channel) + load_.seconds(channel, more) > limits_[channel.index()];
}

void RouteSmoother::place(std::uint32_t edge, const RoutedEdge& routed) {
  load_.add(ways_[edge].route, routed.bytes);
  for (const ChannelId channel : ways_[edge].route) {
    if (between_switches(space_.topology(), channel)) users_[channel].push_back(edge);
  }
}

bool RouteSmoother::move(std::uint32_t edge, RoutedEdge& routed, ChannelId away) {
  Way& way = ways_[edge];
  load_.remove(way.route, routed.bytes);
  const std::uint32_t now = routed.path.stream % way.choices;
  std::uint32_t best = now;
  auto best_cost =
      std::pair(std::numeric_limits<std::ptrdiff_t>::max(), 0.0);  // links too busy; busiest
  Route best_route;
  const std::uint32_t compared = std::min(way.choices, kMostCompared);
  ++turn_;
  for (std::uint32_t k = 0; k < compared; ++k) {
    ++effort_;
    const auto step = static_cast<std::uint32_t>(std::uint64_t{k} * way.choices / compared);
    const std::uint32_t choice =
        (now + turn_ + step + (way.choices > compared ? k : 0)) % way.choices;
    Route route =
        space_.router().between(routed.path.source_port, routed.path.destination_port, choice);
    if (std::find(route.begin(), route.end(), away) != route.end()) continue;
    if (!on_same_lines(space_.topology(), route, way.route)) continue;
    // One end free is worth more than both nearly so: at the other end, too, somebody then has just
    // one way to give in, and the chain of moves that makes ends where there is room.
    const auto busy = std::count_if(route.begin(), route.end(), [&](ChannelId channel) {
      return too_busy(channel, routed.bytes);
    });
    const auto cost = std::pair(busy, load_.time_with(route, routed.bytes));
    if (cost >= best_cost) continue;
    best = choice;
    best_cost = cost;
    best_route = std::move(route);
    if (busy == 0) break;
  }
  // The excess may go elsewhere, but never grows.
  const double before = load_.time(away) + load_.seconds(away, routed.bytes);
  if (best_route.empty() || best_cost.second > before * kAlike) {
    load_.add(way.route, routed.bytes);
    return false;
  }
  for (const ChannelId channel : way.route) {
    const auto users = users_.find(channel);
    if (users != users_.end()) std::erase(users->second, edge);
  }
  way.route = std::move(best_route);
  const std::uint32_t period =
      space_.router().period(routed.path.source_port, routed.path.destination_port, best);
  routed.path.stream = best % period + way.again * period;
  place(edge, routed);
  for (const ChannelId channel : way.route) {
    if (too_busy(channel, Bytes())) busy_.push_back(channel);
  }
  return true;
}

void RouteSmoother::smooth(std::vector<RoutedEdge>& edges) {
  ways_.resize(edges.size());
  for (std::uint32_t e = 0; e < edges.size(); ++e) {
    const Path& path = edges[e].path;
    Way& way = ways_[e];
    way.route = space_.router().between(path.source_port, path.destination_port, path.stream);
    way.choices = way.route.size() <= 2
                      ? 1
                      : space_.router().choices(path.source_port, path.destination_port);
    if (way.choices <= 1) continue;
    way.again =
        path.stream / space_.router().period(path.source_port, path.destination_port, path.stream);
    for (const ChannelId channel : way.route) {
      if (between_switches(space_.topology(), channel)) users_[channel].push_back(e);
    }
  }
  set_limits(edges);
  for (const auto& [channel, users] : users_) {
    if (too_busy(channel, Bytes())) busy_.push_back(channel);
  }
  std::sort(busy_.begin(), busy_.end());
  std::vector<std::uint32_t> moved_at(edges.size(), 0);
  constexpr std::uint32_t kRest = 24;  // moves for which a moved edge stays where it is
  constexpr std::size_t kRoutesAnEdge = 100;
  const std::size_t most_effort = (edges.size() + 1000) * kRoutesAnEdge;
  std::uint32_t moves = kRest;
  std::vector<ChannelId> later;  // whose edges all rest
  while (effort_ < most_effort) {
    if (busy_.empty()) {
      if (later.empty()) break;
      busy_.swap(later);
      ++moves;
      ++effort_;
    }
    const ChannelId channel = busy_.back();
    busy_.pop_back();
    const std::vector<std::uint32_t> users = users_[channel];
    for (std::size_t i = 0; i < users.size() && too_busy(channel, Bytes()); ++i) {
      const std::uint32_t edge = users[(i + turn_) % users.size()];
      if (moved_at[edge] != 0 && moved_at[edge] + kRest > moves) continue;
      if (!move(edge, edges[edge], channel)) continue;
      moved_at[edge] = ++moves;
    }
    if (too_busy(channel, Bytes())) later.push_back(channel);
  }
}

}  // namespace holdfast
