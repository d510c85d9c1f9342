#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {
namespace {

// Sums of latencies over the longest route (65,534 hops) stay far inside 64 bits.
constexpr Time kLongestLatency = seconds(60);
// And so do sums of capacities over a hundred thousand links.
constexpr Rate kGreatestCapacity(100'000'000'000'000);

[[noreturn]] void refuse(ErrorCode code, std::string message) {
  throw Error(code, std::move(message));
}

bool fits(LinkKind kind, NodeKind end) {
  switch (kind) {
    case LinkKind::NvLink:
      return end == NodeKind::Gpu || end == NodeKind::NvSwitch;
    case LinkKind::Pcie:
      return is_inside_host(end) && end != NodeKind::NvSwitch;
    case LinkKind::Memory:
      return end == NodeKind::HostMemory || end == NodeKind::PcieSwitch;
    case LinkKind::Fabric:
      return end == NodeKind::Nic || !is_inside_host(end);
    case LinkKind::Wan:
      return end == NodeKind::Gateway;
  }
  return false;
}

const char* allowed_ends(LinkKind kind) {
  switch (kind) {
    case LinkKind::NvLink:
      return "gpu and nvswitch";
    case LinkKind::Pcie:
      return "gpu, nic, host_memory and pcie_switch";
    case LinkKind::Memory:
      return "host_memory and pcie_switch";
    case LinkKind::Fabric:
      return "nic, switch, spine and gateway";
    case LinkKind::Wan:
      return "gateways";
  }
  return "nothing";
}

bool leaves_host(LinkKind kind) {
  return kind == LinkKind::Fabric || kind == LinkKind::Wan;
}

void check_node(const Topology& topology, const Node& node) {
  if (node.domain.valid() && node.domain.index() >= topology.domains().size()) {
    refuse(ErrorCode::UnknownName,
           fmt::format("node '{}' lies in a domain that does not exist", node.name));
  }
  const bool in_host = topology.around(node.domain, Level::Host).valid();
  if (is_inside_host(node.kind) && !in_host) {
    refuse(ErrorCode::BadTopology,
           fmt::format("{} '{}' lies in no host; give it a domain of level host",
                       to_string(node.kind), node.name));
  }
  if (!is_inside_host(node.kind) && in_host) {
    refuse(ErrorCode::BadTopology,
           fmt::format("{} '{}' cannot lie inside host '{}'; put it in a rack, pod or datacenter, "
                       "or in no domain",
                       to_string(node.kind), node.name, topology.domain(node.domain).name));
  }
  if (!is_endpoint(node.kind) && (node.memory != Bytes(0) || node.digest_rate != Rate(0))) {
    refuse(ErrorCode::BadTopology,
           fmt::format("{} '{}' has memory or a digest rate; only gpu and host_memory have them",
                       to_string(node.kind), node.name));
  }
}

void check_link(const Topology& topology, const Link& link) {
  for (const NodeId end : {link.a, link.b}) {
    if (!end.valid() || end.index() >= topology.nodes().size()) {
      refuse(ErrorCode::UnknownName,
             fmt::format("link '{}' joins a node that does not exist", link.name));
    }
  }
  const Node& a = topology.node(link.a);
  const Node& b = topology.node(link.b);
  if (link.a == link.b) {
    refuse(ErrorCode::BadTopology,
           fmt::format("link '{}' joins '{}' to itself", link.name, a.name));
  }
  if (link.capacity == Rate(0)) {
    refuse(ErrorCode::BadTopology,
           fmt::format("link '{}' has zero capacity; to take it out of use write up: false",
                       link.name));
  }
  if (link.capacity > kGreatestCapacity) {
    refuse(ErrorCode::BadTopology,
           fmt::format("link '{}' has a capacity of {}; at most {}", link.name,
                       to_string(link.capacity), to_string(kGreatestCapacity)));
  }
  if (link.stream_cap && *link.stream_cap == Rate(0)) {
    refuse(ErrorCode::BadTopology, fmt::format("link '{}' has a stream cap of zero", link.name));
  }
  if (link.latency < Time(0) || link.latency > kLongestLatency) {
    refuse(ErrorCode::BadTopology,
           fmt::format("link '{}' has a latency of {}; it must lie between 0 and {}", link.name,
                       to_string(link.latency), to_string(kLongestLatency)));
  }
  for (const Node* end : {&a, &b}) {
    if (!fits(link.kind, end->kind)) {
      refuse(ErrorCode::BadTopology,
             fmt::format("{} link '{}' cannot end at {} '{}'; it joins {}", to_string(link.kind),
                         link.name, to_string(end->kind), end->name, allowed_ends(link.kind)));
    }
  }
  if (!leaves_host(link.kind) && a.domain != b.domain) {
    refuse(ErrorCode::BadTopology,
           fmt::format("{} link '{}' joins '{}' and '{}' of different hosts; only fabric links "
                       "leave a host",
                       to_string(link.kind), link.name, a.name, b.name));
  }
}

void check_connected(const Topology& topology, const std::vector<TopologyBuilder::Part>& parts) {
  if (parts.size() <= 1) return;
  constexpr std::size_t kShown = 4;
  std::string shown;
  for (std::size_t i = 0; i < std::min(kShown, parts.size()); ++i) {
    const std::size_t more = parts[i].nodes - 1;
    shown += fmt::format("{}'{}'", i == 0 ? "" : "; ", topology.node(parts[i].first).name);
    if (more > 0) shown += fmt::format(" and {} more", more);
  }
  refuse(ErrorCode::BadTopology,
         fmt::format("the topology falls into {} parts that no link joins: {}{}; add the missing "
                     "links",
                     parts.size(), shown, parts.size() > kShown ? "; ..." : ""));
}

Hash128 hash_of(const Topology& topology) {
  CanonicalHasher hasher;
  const auto count = [](std::size_t size) { return static_cast<std::uint64_t>(size); };
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  hasher.add(topology.name());
  hasher.add(count(topology.domains().size()));
  for (const Domain& domain : topology.domains()) {
    hasher.add(domain.name).add(number(domain.level)).add(number(domain.parent.value()));
  }
  hasher.add(count(topology.nodes().size()));
  for (const Node& node : topology.nodes()) {
    hasher.add(node.name).add(number(node.kind)).add(number(node.domain.value()));
    hasher.add(node.memory).add(node.digest_rate).add(number(node.up));
  }
  hasher.add(count(topology.links().size()));
  for (const Link& link : topology.links()) {
    hasher.add(link.name).add(number(link.a.value())).add(number(link.b.value()));
    hasher.add(number(link.kind)).add(link.capacity).add(link.latency);
    hasher.add(number(link.stream_cap.has_value())).add(link.stream_cap.value_or(Rate(0)));
    hasher.add(number(link.up));
  }
  hasher.add(count(topology.fault_domains().size()));
  for (const FaultDomain& domain : topology.fault_domains()) {
    hasher.add(domain.name).add(count(domain.nodes.size()));
    for (const NodeId node : domain.nodes) hasher.add(number(node.value()));
  }
  return hasher.finish();
}

}  // namespace

TopologyBuilder::TopologyBuilder(std::string name) {
  topology_.name_ = std::move(name);
}

// What `build` makes is left empty.
TopologyBuilder::TopologyBuilder(const Topology& base) {
  topology_.name_ = base.name_;
  topology_.nodes_ = base.nodes_;
  topology_.links_ = base.links_;
  topology_.domains_ = base.domains_;
  topology_.fault_domains_ = base.fault_domains_;
  topology_.around_ = base.around_;
  topology_.node_by_name_ = base.node_by_name_;
  topology_.link_by_name_ = base.link_by_name_;
  topology_.domain_by_name_ = base.domain_by_name_;
  for (std::size_t i = 0; i < base.fault_domains_.size(); ++i) {
    fault_domain_by_name_.emplace(base.fault_domains_[i].name, i);
  }
}

DomainId TopologyBuilder::add_domain(std::string name, Level level, DomainId parent) {
  if (name.empty()) refuse(ErrorCode::BadTopology, "a domain has an empty name");
  auto around = std::array<DomainId, kLevels>{};
  if (parent.valid()) {
    if (parent.index() >= topology_.domains_.size()) {
      refuse(ErrorCode::UnknownName, fmt::format("the parent of domain '{}' does not exist", name));
    }
    const Domain& outer = topology_.domain(parent);
    if (outer.level <= level) {
      refuse(ErrorCode::BadTopology,
             fmt::format("{} '{}' cannot lie in {} '{}'; a parent has a higher level (host < rack "
                         "< pod < datacenter)",
                         to_string(level), name, to_string(outer.level), outer.name));
    }
    around = topology_.around_[parent.index()];
  }
  const DomainId id(topology_.domains_.size());
  if (!topology_.domain_by_name_.try_emplace(name, id).second) {
    refuse(ErrorCode::Duplicate, fmt::format("two domains are called '{}'", name));
  }
  around[static_cast<std::size_t>(level)] = id;
  topology_.around_.push_back(around);
  topology_.domains_.push_back({std::move(name), level, parent});
  return id;
}

NodeId TopologyBuilder::add_node(Node node) {
  if (node.name.empty()) {
    refuse(ErrorCode::BadTopology, fmt::format("a {} has an empty name", to_string(node.kind)));
  }
  check_node(topology_, node);
  const NodeId id(topology_.nodes_.size());
  if (!topology_.node_by_name_.try_emplace(node.name, id).second) {
    refuse(ErrorCode::Duplicate, fmt::format("two nodes are called '{}'", node.name));
  }
  topology_.nodes_.push_back(std::move(node));
  return id;
}

LinkId TopologyBuilder::add_link(Link link) {
  if (link.name.empty()) {
    refuse(ErrorCode::BadTopology,
           fmt::format("a {} link has an empty name", to_string(link.kind)));
  }
  check_link(topology_, link);
  const LinkId id(topology_.links_.size());
  if (!topology_.link_by_name_.try_emplace(link.name, id).second) {
    refuse(ErrorCode::Duplicate, fmt::format("two links are called '{}'", link.name));
  }
  topology_.links_.push_back(std::move(link));
  return id;
}

void TopologyBuilder::add_fault_domain(FaultDomain domain) {
  if (domain.name.empty()) refuse(ErrorCode::BadTopology, "a fault domain has an empty name");
  if (domain.nodes.empty()) {
    refuse(ErrorCode::BadTopology, fmt::format("fault domain '{}' is empty", domain.name));
  }
  for (const NodeId node : domain.nodes) {
    if (!node.valid() || node.index() >= topology_.nodes_.size()) {
      refuse(ErrorCode::UnknownName,
             fmt::format("fault domain '{}' holds a node that does not exist", domain.name));
    }
  }
  if (!fault_domain_by_name_.try_emplace(domain.name, topology_.fault_domains_.size()).second) {
    refuse(ErrorCode::Duplicate, fmt::format("two fault domains are called '{}'", domain.name));
  }
  topology_.fault_domains_.push_back(std::move(domain));
}

std::vector<TopologyBuilder::Part> TopologyBuilder::parts() const {
  const std::vector<Node>& nodes = topology_.nodes_;
  std::vector<std::uint32_t> leader(nodes.size());  // union-find; the least id of a part leads it
  std::iota(leader.begin(), leader.end(), std::uint32_t{0});
  const auto find = [&](std::uint32_t node) {
    while (leader[node] != node) node = leader[node] = leader[leader[node]];
    return node;
  };
  for (const Link& link : topology_.links_) {
    const std::uint32_t a = find(link.a.value());
    const std::uint32_t b = find(link.b.value());
    leader[std::max(a, b)] = std::min(a, b);
  }
  std::vector<std::size_t> sizes(nodes.size());
  for (std::uint32_t node = 0; node < nodes.size(); ++node) ++sizes[find(node)];
  std::vector<Part> parts;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (sizes[node] > 0) parts.push_back({NodeId(node), sizes[node]});
  }
  return parts;
}

Topology TopologyBuilder::build() {
  Topology& t = topology_;
  if (t.nodes_.empty()) refuse(ErrorCode::BadTopology, "the topology has no nodes");
  for (const Node& node : t.nodes_) check_node(t, node);
  for (const Link& link : t.links_) check_link(t, link);

  t.first_neighbour_.assign(t.nodes_.size() + 1, 0);
  for (const Link& link : t.links_) {
    ++t.first_neighbour_[link.a.index() + 1];
    ++t.first_neighbour_[link.b.index() + 1];
  }
  std::partial_sum(t.first_neighbour_.begin(), t.first_neighbour_.end(),
                   t.first_neighbour_.begin());
  t.neighbours_.resize(t.links_.size() * 2);
  std::vector<std::uint32_t> next(t.first_neighbour_.begin(), t.first_neighbour_.end() - 1);
  for (std::size_t i = 0; i < t.links_.size(); ++i) {
    const Link& link = t.links_[i];
    t.neighbours_[next[link.a.index()]++] = {LinkId(i), link.b};
    t.neighbours_[next[link.b.index()]++] = {LinkId(i), link.a};
  }
  check_connected(t, parts());

  t.members_.resize(t.domains_.size());
  for (std::size_t i = 0; i < t.nodes_.size(); ++i) {
    for (DomainId d = t.nodes_[i].domain; d.valid(); d = t.domain(d).parent) {
      t.members_[d.index()].push_back(NodeId(i));
    }
  }
  t.hash_ = hash_of(t);
  fault_domain_by_name_.clear();
  return std::exchange(topology_, Topology());
}

}  // namespace holdfast
