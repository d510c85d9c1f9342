#include "core/plan/path_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kMostCompared = 16;

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

std::optional<Path> local_path(const PlanSpace& space, WorkerId parent, WorkerId child) {
  const DomainId host = space.host(parent);
  if (!host.valid() || host != space.host(child)) return std::nullopt;
  const Path path{space.node(parent), space.node(child), 0};
  if (!space.router().route(path.source_port, path.destination_port, path)) return std::nullopt;
  return path;
}

PathChooser::Best PathChooser::least_loaded(NodeId parent_nic, NodeId child_nic, Bytes bytes) {
  const NodeId from = first_hop(space_.topology(), parent_nic);
  const NodeId to = first_hop(space_.topology(), child_nic);
  const auto [known, is_new] = choices_.emplace(pair_key(from, to), 0);
  if (is_new) known->second = space_.router().choices(parent_nic, child_nic);
  Best best{known->second, 0, std::numeric_limits<double>::infinity()};
  const std::uint32_t turn = turns_[from];
  const std::uint32_t compared = std::min(best.choices, kMostCompared);
  for (std::uint32_t k = 0; k < compared; ++k) {
    // Evenly over all of them, beginning elsewhere each time. A choice's last digits are those of
    // the first switch: stepping by a multiple of its ways alone would always leave over one.
    const auto step = static_cast<std::uint32_t>(std::uint64_t{k} * best.choices / compared);
    const std::uint32_t choice = (turn + step + (best.choices > compared ? k : 0)) % best.choices;
    const Route route = space_.router().between(parent_nic, child_nic, choice);
    const double time = load_.time_with(route, bytes);
    if (time >= best.time) continue;
    best.choice = choice;
    best.time = time;
  }
  return best;
}

std::optional<double> PathChooser::least_time(NodeId parent_nic, NodeId child_nic, Bytes bytes) {
  const Best best = least_loaded(parent_nic, child_nic, bytes);
  if (best.choices == 0) return std::nullopt;
  return best.time;
}

std::optional<Path> PathChooser::fabric(NodeId parent_nic, NodeId child_nic, Bytes bytes) {
  const Best best = least_loaded(parent_nic, child_nic, bytes);
  if (best.choices == 0) return std::nullopt;
  ++turns_[first_hop(space_.topology(), parent_nic)];
  // Streams of one pair of ports are numbered apart; adding a multiple of the period keeps the
  // route.
  const std::uint32_t again = streams_[pair_key(parent_nic, child_nic)]++;
  const std::uint32_t period = space_.router().period(parent_nic, child_nic, best.choice);
  return Path{parent_nic, child_nic, best.choice % period + again * period};
}

Path PathChooser::any(WorkerId parent, WorkerId child, Bytes bytes) {
  if (const auto path = local_path(space_, parent, child)) return *path;
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

Path PathChooser::lay(WorkerId parent, WorkerId child, Bytes bytes) {
  const Path path = any(parent, child, bytes);
  charge(parent, child, path, bytes);
  return path;
}

void PathChooser::charge(WorkerId parent, WorkerId child, const Path& path, Bytes bytes) {
  const auto route = space_.router().route(space_.node(parent), space_.node(child), path);
  if (route) load_.add(*route, bytes);
}

}  // namespace holdfast
