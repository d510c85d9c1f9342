#include "core/plan/path_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kMostCompared = 64;

std::uint64_t pair_key(NodeId a, NodeId b) {
  return (std::uint64_t{a.value()} << 32) | b.value();
}

// The switch (or, cabled back to back, the NIC) that a NIC's traffic meets first.
NodeId first_hop(const Topology& topology, NodeId nic) {
  const DomainId host = topology.around(nic, Level::Host);
  for (const Neighbour& next : topology.neighbours(nic)) {
    if (topology.usable(next.link) && topology.around(next.node, Level::Host) != host) {
      return next.node;
    }
  }
  return nic;
}

}  // namespace

std::optional<Path> PathChooser::local(WorkerId parent, WorkerId child) const {
  const DomainId host = space_.host(parent);
  if (!host.valid() || host != space_.host(child)) return std::nullopt;
  const Path path{space_.node(parent), space_.node(child), 0};
  if (!space_.router().route(path.source_port, path.destination_port, path)) return std::nullopt;
  return path;
}

PathChooser::Between& PathChooser::between(NodeId from, NodeId to, NodeId parent_nic,
                                           NodeId child_nic) {
  const auto [known, is_new] = between_.emplace(pair_key(from, to), Between{});
  Between& found = known->second;
  if (!is_new) return found;
  found.choices = space_.router().choices(parent_nic, child_nic);
  if (load_ == nullptr) return found;
  for (std::uint32_t k = 0; k < std::min(found.choices, kMostCompared); ++k) {
    Route route = space_.router().between(parent_nic, child_nic, k);
    if (route.size() >= 2) {
      route.erase(route.begin());
      route.pop_back();
    }
    found.middles.push_back(std::move(route));
  }
  return found;
}

std::uint32_t PathChooser::least_used(NodeId from_switch, NodeId to_switch, std::uint32_t choices) {
  const auto key = [](NodeId node, bool down, std::uint32_t choice) {
    return (std::uint64_t{node.value()} << 32) | (down ? 1ULL << 31 : 0) | choice;
  };
  std::uint32_t best = 0;
  std::uint32_t best_load = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t k = 0; k < std::min(choices, kMostCompared); ++k) {
    const std::uint32_t load =
        std::max(used_[key(from_switch, false, k)], used_[key(to_switch, true, k)]);
    if (load < best_load) {
      best = k;
      best_load = load;
    }
  }
  ++used_[key(from_switch, false, best)];
  ++used_[key(to_switch, true, best)];
  return best;
}

std::uint32_t PathChooser::least_loaded(const Between& between, Bytes bytes) const {
  std::uint32_t best = 0;
  double best_time = std::numeric_limits<double>::infinity();
  for (std::uint32_t k = 0; k < between.middles.size(); ++k) {
    const double time = load_->time_with(between.middles[k], bytes);
    if (time >= best_time) continue;
    best = k;
    best_time = time;
  }
  return best;
}

std::optional<double> PathChooser::least_time(NodeId parent_nic, NodeId child_nic, Bytes bytes) {
  const NodeId from = first_hop(space_.topology(), parent_nic);
  const NodeId to = first_hop(space_.topology(), child_nic);
  const Between& ways = between(from, to, parent_nic, child_nic);
  if (ways.choices == 0) return std::nullopt;
  return load_->time_with(ways.middles[least_loaded(ways, bytes)], bytes);
}

std::optional<Path> PathChooser::fabric(NodeId parent_nic, NodeId child_nic, Bytes bytes) {
  const NodeId from = first_hop(space_.topology(), parent_nic);
  const NodeId to = first_hop(space_.topology(), child_nic);
  const Between& ways = between(from, to, parent_nic, child_nic);
  if (ways.choices == 0) return std::nullopt;
  std::uint32_t choice = 0;
  if (ways.choices > 1) {
    choice = load_ == nullptr ? least_used(from, to, ways.choices) : least_loaded(ways, bytes);
  }
  // Streams of one pair of ports are numbered apart; adding a multiple of `choices` keeps the
  // route.
  const std::uint32_t again = streams_[pair_key(parent_nic, child_nic)]++;
  return Path{parent_nic, child_nic, choice + again * ways.choices};
}

Path PathChooser::any(WorkerId parent, WorkerId child, Bytes bytes) {
  if (const auto path = local(parent, child)) return *path;
  const auto sources = space_.nics(parent);
  const auto targets = space_.nics(child);
  for (const bool same_rail : {true, false}) {
    for (const NodeId source : sources) {
      for (const NodeId target : targets) {
        if ((space_.rail(source) == space_.rail(target)) != same_rail) continue;
        if (const auto path = fabric(source, target, bytes)) return *path;
      }
    }
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("no path joins {} to {}: their NICs are down or not connected",
                          space_.topology().node(space_.node(parent)).name,
                          space_.topology().node(space_.node(child)).name));
}

void PathChooser::charge(WorkerId parent, WorkerId child, const Path& path, Bytes bytes) {
  if (load_ == nullptr) return;
  const auto route = space_.router().route(space_.node(parent), space_.node(child), path);
  if (route) load_->add(*route, bytes);
}

}  // namespace holdfast
