#include "core/topology/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/topology/fabric_paths.hpp"
#include "core/topology/host_paths.hpp"

namespace holdfast {

struct Router::Tables {
  explicit Tables(const Topology& t)
      : topology(&t),
        pcie(t, HostPaths::Over::Pcie),
        nvlink(t, HostPaths::Over::NvLink),
        fabric(t),
        nics(t.nodes().size()),
        nics_known(t.nodes().size()) {}

  const Topology* topology;
  HostPaths pcie;
  HostPaths nvlink;
  FabricPaths fabric;
  std::vector<std::vector<NodeId>> nics;  // by endpoint
  std::vector<bool> nics_known;
};

namespace {

// What a path's end looks like to someone who reads why there is no route.
std::string quoted(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  return fmt::format("{} '{}'{}", to_string(node.kind), node.name, node.up ? "" : " (down)");
}

tl::unexpected<std::string> no_route(std::string why) {
  return tl::unexpected(std::move(why));
}

}  // namespace

Router::Router(const Topology& topology) : tables_(std::make_unique<Tables>(topology)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

const Topology& Router::topology() const {
  return *tables_->topology;
}

Parsed<Route> Router::route(NodeId source, NodeId destination, const Path& path) const {
  const Topology& t = *tables_->topology;
  for (const NodeId id : {source, destination, path.source_port, path.destination_port}) {
    if (!id.valid() || id.index() >= t.nodes().size()) {
      return no_route("a node that the topology does not have");
    }
  }
  for (const NodeId end : {source, destination}) {
    if (!is_endpoint(t.node(end).kind)) {
      return no_route(
          fmt::format("{} holds no weights: a route joins gpu and host_memory", quoted(t, end)));
    }
  }
  if (source == destination) {
    return no_route(fmt::format("{} is both source and destination", quoted(t, source)));
  }
  Route route;
  const bool from_nic = t.node(path.source_port).kind == NodeKind::Nic;
  const bool to_nic = t.node(path.destination_port).kind == NodeKind::Nic;
  if (from_nic != to_nic) {
    return no_route(fmt::format("one port is a NIC ({}), the other is not ({})",
                                quoted(t, from_nic ? path.source_port : path.destination_port),
                                quoted(t, from_nic ? path.destination_port : path.source_port)));
  }
  if (from_nic) {
    if (path.source_port == path.destination_port) {
      return no_route(fmt::format("{} is both ports", quoted(t, path.source_port)));
    }
    if (!tables_->pcie.append(source, path.source_port, route)) {
      return no_route(fmt::format("{} does not reach {} over PCIe", quoted(t, source),
                                  quoted(t, path.source_port)));
    }
    if (tables_->fabric.append(path.source_port, path.destination_port, path.stream, route) == 0) {
      return no_route(fmt::format("nothing in the fabric that is up joins {} and {}",
                                  quoted(t, path.source_port), quoted(t, path.destination_port)));
    }
    if (!tables_->pcie.append(path.destination_port, destination, route)) {
      return no_route(fmt::format("{} does not reach {} over PCIe",
                                  quoted(t, path.destination_port), quoted(t, destination)));
    }
    return route;
  }
  for (const auto& [end, port] :
       {std::pair(source, path.source_port), std::pair(destination, path.destination_port)}) {
    if (end != port) {
      return no_route(fmt::format("{} has no port {}; inside a host its port is itself",
                                  quoted(t, end), quoted(t, port)));
    }
  }
  if (tables_->nvlink.append(source, destination, route)) return route;
  if (tables_->pcie.append(source, destination, route)) return route;
  return no_route(fmt::format("nothing inside a host that is up joins {} and {}", quoted(t, source),
                              quoted(t, destination)));
}

std::span<const NodeId> Router::nics(NodeId endpoint) const {
  Tables& tables = *tables_;
  std::vector<NodeId>& found = tables.nics[endpoint.index()];
  if (tables.nics_known[endpoint.index()]) return found;
  const Topology& t = *tables.topology;
  const DomainId host = t.around(endpoint, Level::Host);
  std::vector<std::pair<std::uint32_t, NodeId>> near;
  if (host.valid()) {
    for (const NodeId node : t.members(host)) {
      if (t.node(node).kind != NodeKind::Nic) continue;
      const std::uint32_t hops = tables.pcie.hops(endpoint, node);
      if (hops != HostPaths::kNone) near.emplace_back(hops, node);
    }
  }
  std::sort(near.begin(), near.end());
  for (const auto& [hops, node] : near) found.push_back(node);
  tables.nics_known[endpoint.index()] = true;
  return found;
}

std::uint32_t Router::choices(NodeId source_nic, NodeId destination_nic) const {
  const Topology& t = *tables_->topology;
  if (source_nic == destination_nic || t.node(source_nic).kind != NodeKind::Nic ||
      t.node(destination_nic).kind != NodeKind::Nic) {
    return 0;
  }
  return tables_->fabric.choices(source_nic, destination_nic);
}

std::uint32_t Router::period(NodeId source_nic, NodeId destination_nic,
                             std::uint32_t stream) const {
  const Topology& t = *tables_->topology;
  if (source_nic == destination_nic || t.node(source_nic).kind != NodeKind::Nic ||
      t.node(destination_nic).kind != NodeKind::Nic) {
    return 0;
  }
  Route route;
  return tables_->fabric.append(source_nic, destination_nic, stream, route);
}

Route Router::between(NodeId source_nic, NodeId destination_nic, std::uint32_t stream) const {
  const Topology& t = *tables_->topology;
  Route route;
  if (source_nic != destination_nic && t.node(source_nic).kind == NodeKind::Nic &&
      t.node(destination_nic).kind == NodeKind::Nic) {
    tables_->fabric.append(source_nic, destination_nic, stream, route);
  }
  return route;
}

Route Router::inside(NodeId from, NodeId to) const {
  Route route;
  tables_->pcie.append(from, to, route);
  return route;
}

bool Router::nvlinked(NodeId gpu, NodeId other) const {
  return gpu != other && tables_->nvlink.hops(gpu, other) != HostPaths::kNone;
}

Time Router::latency(const Route& route) const {
  Time sum;
  for (const ChannelId channel : route) sum += tables_->topology->link(channel.link()).latency;
  return sum;
}

Rate Router::bottleneck(const Route& route) const {
  Rate least(std::numeric_limits<std::uint64_t>::max());
  for (const ChannelId channel : route) {
    const Link& link = tables_->topology->link(channel.link());
    least = std::min({least, link.capacity, link.stream_cap.value_or(link.capacity)});
  }
  return least;
}

}  // namespace holdfast
