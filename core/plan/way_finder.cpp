#include "core/plan/way_finder.hpp"

#include <algorithm>
#include <limits>

namespace holdfast {
namespace {

// So many ports of either side are tried against each other.
constexpr std::size_t kSourcesTried = 6;
constexpr std::size_t kTargetsTried = 4;

std::uint64_t pair_key(std::uint32_t a, std::uint32_t b) {
  return (std::uint64_t{a} << 32) | b;
}

}  // namespace

const Route& WayFinder::ends(const Port& port, Direction direction) {
  const bool out = direction == Direction::Out;
  auto& known = out ? out_ : in_;
  const auto [found, is_new] =
      known.emplace(pair_key(port.worker.value(), port.nic.value()), Route{});
  Route& route = found->second;
  if (!is_new) return route;
  const NodeId node = space_.node(port.worker);
  route = out ? space_.router().inside(node, port.nic) : space_.router().inside(port.nic, node);
  const Topology& topology = space_.topology();
  for (const Neighbour& next : topology.neighbours(port.nic)) {
    if (topology.link(next.link).kind != LinkKind::Fabric || !topology.usable(next.link)) continue;
    const bool from_b = (topology.link(next.link).b == port.nic) == out;
    route.push_back(ChannelId(next.link, from_b));
    break;  // where a NIC has several links the route decides; the first stands for them here
  }
  return route;
}

std::vector<WayFinder::Ranked> WayFinder::best_ports(std::span<const Port> ports,
                                                     Direction direction, std::size_t most,
                                                     Bytes bytes) {
  std::vector<Ranked> ranked;
  ranked.reserve(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!ports[i].nic.valid()) continue;
    ranked.push_back({beyond_goal(paths_.load().time_with(ends(ports[i], direction), bytes)), i});
  }
  const std::size_t kept = std::min(most, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept),
                    ranked.end());
  ranked.resize(kept);
  return ranked;
}

Path WayFinder::path_between(const Port& source, const Port& target, Bytes bytes) {
  auto& shared = shared_[pair_key(source.nic.value(), target.nic.value())];
  for (const auto& [parent, child, path] : shared) {
    if (parent == source.worker && child == target.worker) return path;
  }
  const Path path = *paths_.fabric(source.nic, target.nic, bytes);
  shared.emplace_back(source.worker, target.worker, path);
  return path;
}

std::optional<Way> WayFinder::find(std::span<const WorkerId> insiders,
                                   std::span<const Port> sources, std::span<const Port> targets,
                                   Bytes bytes) {
  std::optional<Way> best;
  double best_cost = std::numeric_limits<double>::infinity();
  std::vector<WorkerId> receivers;
  for (const Port& target : targets) {
    if (std::find(receivers.begin(), receivers.end(), target.worker) == receivers.end()) {
      receivers.push_back(target.worker);
    }
  }
  for (const WorkerId receiver : receivers) {
    for (const WorkerId insider : insiders) {
      if (insider == receiver) continue;
      const auto path = local_path(space_, insider, receiver);
      if (!path) continue;
      const auto route = space_.router().route(space_.node(insider), space_.node(receiver), *path);
      const double cost = beyond_goal(paths_.load().time_with(*route, bytes));
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = Way{insider, receiver, *path};
    }
  }
  if (best && best_cost <= goal_) return best;
  const auto outs = best_ports(sources, Direction::Out, kSourcesTried, bytes);
  const auto ins = best_ports(targets, Direction::In, kTargetsTried, bytes);
  std::optional<std::pair<Port, Port>> ports;
  for (const Ranked& out : outs) {
    for (const Ranked& in : ins) {
      const double ends = std::max(out.cost, in.cost);
      if (ends >= best_cost) continue;
      const Port& source = sources[out.place];
      const Port& target = targets[in.place];
      if (source.nic == target.nic || source.worker == target.worker) continue;
      const auto middle = paths_.least_time(source.nic, target.nic, bytes);
      if (!middle) continue;
      const double cost = std::max(ends, *middle);
      if (cost >= best_cost) continue;
      best_cost = cost;
      ports.emplace(source, target);
    }
  }
  if (!ports) return best;
  return Way{ports->first.worker, ports->second.worker,
             path_between(ports->first, ports->second, bytes)};
}

}  // namespace holdfast
