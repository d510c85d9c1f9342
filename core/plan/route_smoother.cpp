#include "core/plan/route_smoother.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace holdfast {
namespace {

constexpr std::uint32_t kMostCompared = 64;
constexpr double kAlike = 1.0005;
constexpr double kSlack = 1.004;  // what the smallest classes add here and there is no excess

bool between_switches(const Topology& topology, ChannelId channel) {
  const Link& link = topology.link(channel.link());
  return !is_inside_host(topology.node(link.a).kind) && !is_inside_host(topology.node(link.b).kind);
}

}  // namespace

// What the busiest link at a NIC takes.
double RouteSmoother::limit(const std::vector<RoutedEdge>& edges) const {
  double most = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Route& route = ways_[e].route;
    if (route.empty()) continue;
    most = std::max({most, load_.time(route.front()), load_.time(route.back())});
  }
  return most;
}

void RouteSmoother::place(std::uint32_t edge, const RoutedEdge& routed) {
  load_.add(ways_[edge].route, routed.bytes);
  for (const ChannelId channel : ways_[edge].route) {
    if (between_switches(space_.topology(), channel)) users_[channel].push_back(edge);
  }
}

bool RouteSmoother::move(std::uint32_t edge, RoutedEdge& routed, ChannelId away, double limit) {
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
    const auto step = static_cast<std::uint32_t>(std::uint64_t{k} * way.choices / compared);
    const std::uint32_t choice =
        (now + turn_ + step + (way.choices > compared ? k : 0)) % way.choices;
    Route route =
        space_.router().between(routed.path.source_port, routed.path.destination_port, choice);
    if (std::find(route.begin(), route.end(), away) != route.end()) continue;
    // One end free is worth more than both nearly so: at the other end, too, somebody then has just
    // one way to give in, and the chain of moves that makes ends where there is room.
    const auto too_busy = std::count_if(route.begin(), route.end(), [&](ChannelId channel) {
      return load_.time(channel) + load_.seconds(channel, routed.bytes) > limit;
    });
    const auto cost = std::pair(too_busy, load_.time_with(route, routed.bytes));
    if (cost >= best_cost) continue;
    best = choice;
    best_cost = cost;
    best_route = std::move(route);
    if (too_busy == 0) break;
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
  routed.path.stream = best + way.again * way.choices;
  place(edge, routed);
  for (const ChannelId channel : way.route) {
    if (users_.contains(channel) && load_.time(channel) > limit) busy_.push_back(channel);
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
    way.again = path.stream / way.choices;
    for (const ChannelId channel : way.route) {
      if (between_switches(space_.topology(), channel)) users_[channel].push_back(e);
    }
  }
  const double limit = this->limit(edges) * kSlack;
  for (const auto& [channel, users] : users_) {
    if (load_.time(channel) > limit) busy_.push_back(channel);
  }
  std::sort(busy_.begin(), busy_.end());
  std::vector<std::uint32_t> moved_at(edges.size(), 0);
  constexpr std::uint32_t kRest = 24;  // moves for which a moved edge stays where it is
  constexpr std::size_t kMovesAnEdge = 8;
  std::uint32_t moves = kRest;
  const std::size_t most_moves = edges.size() * kMovesAnEdge + kRest;
  std::vector<ChannelId> later;  // whose edges all rest
  while (moves < most_moves) {
    if (busy_.empty()) {
      if (later.empty()) break;
      busy_.swap(later);
      ++moves;
    }
    const ChannelId channel = busy_.back();
    busy_.pop_back();
    const std::vector<std::uint32_t> users = users_[channel];
    for (std::size_t i = 0; i < users.size() && load_.time(channel) > limit; ++i) {
      const std::uint32_t edge = users[(i + turn_) % users.size()];
      if (moved_at[edge] != 0 && moved_at[edge] + kRest > moves) continue;
      if (!move(edge, edges[edge], channel, limit)) continue;
      moved_at[edge] = ++moves;
    }
    if (load_.time(channel) > limit) later.push_back(channel);
  }
}

}  // namespace holdfast
