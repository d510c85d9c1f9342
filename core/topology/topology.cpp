#include "core/topology/topology.hpp"

namespace holdfast {

std::span<const Neighbour> Topology::neighbours(NodeId id) const {
  const std::uint32_t first = first_neighbour_[id.index()];
  const std::uint32_t last = first_neighbour_[id.index() + 1];
  return std::span(neighbours_).subspan(first, last - first);
}

NodeId Topology::find_node(std::string_view name) const {
  const auto found = node_by_name_.find(name);
  return found == node_by_name_.end() ? NodeId() : found->second;
}

LinkId Topology::find_link(std::string_view name) const {
  const auto found = link_by_name_.find(name);
  return found == link_by_name_.end() ? LinkId() : found->second;
}

DomainId Topology::find_domain(std::string_view name) const {
  const auto found = domain_by_name_.find(name);
  return found == domain_by_name_.end() ? DomainId() : found->second;
}

DomainId Topology::around(NodeId id, Level level) const {
  return around(node(id).domain, level);
}

DomainId Topology::around(DomainId id, Level level) const {
  return id.valid() ? around_[id.index()][static_cast<std::size_t>(level)] : DomainId();
}

std::span<const NodeId> Topology::members(DomainId id) const {
  return members_[id.index()];
}

bool Topology::usable(LinkId id) const {
  const Link& l = link(id);
  return l.up && node(l.a).up && node(l.b).up;
}

NodeId Topology::tail(ChannelId id) const {
  const Link& l = link(id.link());
  return id.from_b() ? l.b : l.a;
}

NodeId Topology::head(ChannelId id) const {
  const Link& l = link(id.link());
  return id.from_b() ? l.a : l.b;
}

std::string Topology::channel_name(ChannelId id) const {
  return link(id.link()).name + (id.from_b() ? " <" : " >");
}

const char* to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::Gpu:
      return "gpu";
    case NodeKind::HostMemory:
      return "host_memory";
    case NodeKind::PcieSwitch:
      return "pcie_switch";
    case NodeKind::NvSwitch:
      return "nvswitch";
    case NodeKind::Nic:
      return "nic";
    case NodeKind::Switch:
      return "switch";
    case NodeKind::Spine:
      return "spine";
    case NodeKind::Gateway:
      return "gateway";
  }
  return "unknown";
}

const char* to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::Memory:
      return "memory";
    case LinkKind::Pcie:
      return "pcie";
    case LinkKind::NvLink:
      return "nvlink";
    case LinkKind::Fabric:
      return "fabric";
    case LinkKind::Wan:
      return "wan";
  }
  return "unknown";
}

const char* to_string(Level level) {
  switch (level) {
    case Level::Host:
      return "host";
    case Level::Rack:
      return "rack";
    case Level::Pod:
      return "pod";
    case Level::Datacenter:
      return "datacenter";
  }
  return "unknown";
}

}  // namespace holdfast
