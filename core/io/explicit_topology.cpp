#include "core/io/explicit_topology.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/io/link_rates.hpp"
#include "core/nearest.hpp"

namespace holdfast {
namespace {

template <class E>
std::vector<std::pair<std::string, E>> words(std::initializer_list<E> all) {
  std::vector<std::pair<std::string, E>> out;
  for (const E value : all) out.emplace_back(to_string(value), value);
  return out;
}

const std::vector<std::pair<std::string, NodeKind>>& node_kinds() {
  static const auto all =
      words({NodeKind::Gpu, NodeKind::HostMemory, NodeKind::PcieSwitch, NodeKind::NvSwitch,
             NodeKind::Nic, NodeKind::Switch, NodeKind::Spine, NodeKind::Gateway});
  return all;
}
const std::vector<std::pair<std::string, LinkKind>>& link_kinds() {
  static const auto all =
      words({LinkKind::Memory, LinkKind::Pcie, LinkKind::NvLink, LinkKind::Fabric, LinkKind::Wan});
  return all;
}
const std::vector<std::pair<std::string, Level>>& levels() {
  static const auto all = words({Level::Host, Level::Rack, Level::Pod, Level::Datacenter});
  return all;
}

void add_node(TopologyDraft& draft, const YamlValue& item) {
  YamlMap map = item.map();
  Node node;
  node.name = map.require("name").name();
  node.kind = map.require("kind").one_of(node_kinds());
  if (const auto domain = map.find("domain")) node.domain = draft.domain_named(*domain);
  if (is_endpoint(node.kind)) {
    node.memory = map.require("memory").bytes(Zero::Refused);
    node.digest_rate = map.require("digest_rate").rate(Zero::Refused);
  } else {
    const std::string why = fmt::format("a {} holds no weights", to_string(node.kind));
    map.no_effect("memory", why);
    map.no_effect("digest_rate", why);
  }
  if (const auto up = map.find("up")) node.up = up->boolean();
  map.finish();
  draft.add_node(std::move(node), item);
}

void add_link(TopologyDraft& draft, const YamlValue& item) {
  YamlMap map = item.map();
  Link link;
  const auto name = map.find("name");
  link.a = draft.node_named(map.require("a"));
  link.b = draft.node_named(map.require("b"));
  link.kind = map.require("kind").one_of(link_kinds());
  link.capacity = map.require("capacity").rate(Zero::Refused);
  link.latency = map.require("latency").time();
  link.stream_cap = read_stream_cap(map, link.capacity);
  if (const auto up = map.find("up")) link.up = up->boolean();
  map.finish();
  if (name) {
    link.name = name->name();
    draft.add_link(std::move(link), item);
  } else {
    const NodeId a = link.a;
    const NodeId b = link.b;
    draft.add_link_between(a, b, std::move(link), item);
  }
}

// Sets `field` to `value`; an override that changes nothing is refused.
template <class T>
void change(T& field, const T& value, const YamlValue& origin) {
  if (field == value) {
    origin.refuse(ErrorCode::NoEffect, "this is the value already; leave it out");
  }
  field = value;
}

void refuse_empty(const YamlMap& map, bool changes) {
  if (changes) return;
  map.value().refuse(ErrorCode::NoEffect, "this override changes nothing; say what it changes");
}

void override_link(TopologyDraft& draft, YamlMap& map, const YamlValue& name) {
  Link& link = draft.link(draft.link_named(name));
  const auto capacity = map.find("capacity");
  const auto latency = map.find("latency");
  const auto up = map.find("up");
  if (capacity) change(link.capacity, capacity->rate(Zero::Refused), *capacity);
  if (latency) change(link.latency, latency->time(), *latency);
  const auto cap = read_stream_cap(map, link.capacity);
  if (cap) change(link.stream_cap, cap, *map.find("stream_cap"));
  if (up) change(link.up, up->boolean(), *up);
  map.finish();
  refuse_empty(map, capacity || latency || up || cap);
}

void override_node(TopologyDraft& draft, YamlMap& map, const YamlValue& name) {
  Node& node = draft.node(draft.node_named(name));
  const auto up = map.find("up");
  bool changes = up.has_value();
  if (is_endpoint(node.kind)) {
    const auto memory = map.find("memory");
    const auto digest = map.find("digest_rate");
    if (memory) change(node.memory, memory->bytes(Zero::Refused), *memory);
    if (digest) change(node.digest_rate, digest->rate(Zero::Refused), *digest);
    changes = changes || memory || digest;
  } else {
    const std::string why = fmt::format("a {} holds no weights", to_string(node.kind));
    map.no_effect("memory", why);
    map.no_effect("digest_rate", why);
  }
  if (up) change(node.up, up->boolean(), *up);
  map.finish();
  refuse_empty(map, changes);
}

// Whether nodes lie in a domain, the tables of the topology not being built yet.
bool inside(const Topology& topology, const Node& node, DomainId domain) {
  return topology.around(node.domain, topology.domain(domain).level) == domain;
}

void override_domain(TopologyDraft& draft, YamlMap& map, const YamlValue& name) {
  const DomainId domain = draft.domain_named(name);
  const YamlValue up = map.require("up");
  const bool value = up.boolean();
  map.finish();
  bool changes = false;
  for (std::size_t i = 0; i < draft.so_far().nodes().size(); ++i) {
    Node& node = draft.node(NodeId(i));
    if (!inside(draft.so_far(), node, domain)) continue;
    changes = changes || node.up != value;
    node.up = value;
  }
  if (!changes) up.refuse(ErrorCode::NoEffect, "this is the value already; leave it out");
}

// The nodes that one member of a fault domain stands for.
std::vector<NodeId> members_named(const TopologyDraft& draft, const YamlValue& value,
                                  const std::vector<std::vector<NodeId>>& by_domain) {
  const Topology& topology = draft.so_far();
  const std::string name = value.name();
  const NodeId node = topology.find_node(name);
  const DomainId domain = topology.find_domain(name);
  if (node.valid() && domain.valid()) {
    value.refuse(ErrorCode::BadValue,
                 fmt::format("'{}' is both a node and a domain; rename one of them", name));
  }
  if (node.valid()) return {node};
  if (domain.valid()) return by_domain[domain.index()];
  std::vector<std::string> known;
  for (const Domain& d : topology.domains()) known.push_back(d.name);
  for (const Node& n : topology.nodes()) known.push_back(n.name);
  constexpr std::size_t kShown = 6;
  value.refuse(ErrorCode::UnknownName, fmt::format("there is no node or domain '{}'{}", name,
                                                   suggestion(name, known, kShown)));
}

}  // namespace

void add_domains(TopologyDraft& draft, const YamlValue& section) {
  for (const YamlValue& item : section.list()) {
    YamlMap map = item.map();
    std::string name = map.require("name").name();
    const Level level = map.require("level").one_of(levels());
    DomainId parent;
    if (const auto value = map.find("parent")) parent = draft.domain_named(*value);
    map.finish();
    draft.add_domain(std::move(name), level, parent, item);
  }
}

void add_nodes(TopologyDraft& draft, const YamlValue& section) {
  for (const YamlValue& item : section.list()) add_node(draft, item);
}

void add_links(TopologyDraft& draft, const YamlValue& section) {
  for (const YamlValue& item : section.list()) add_link(draft, item);
}

void add_fault_domains(TopologyDraft& draft, const YamlValue& section) {
  const Topology& topology = draft.so_far();
  std::vector<std::vector<NodeId>> by_domain(topology.domains().size());
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    for (DomainId d = topology.nodes()[i].domain; d.valid(); d = topology.domain(d).parent) {
      by_domain[d.index()].push_back(NodeId(i));
    }
  }
  std::uint64_t all_members = 0;
  for (const YamlValue& item : section.list()) {
    YamlMap map = item.map();
    FaultDomain domain;
    domain.name = map.require("name").name();
    const YamlValue members = map.require("members");
    map.finish();
    std::unordered_set<NodeId> seen;
    for (const YamlValue& member : members.list()) {
      for (const NodeId node : members_named(draft, member, by_domain)) {
        if (!seen.insert(node).second) {
          member.refuse(ErrorCode::Duplicate,
                        fmt::format("'{}' is in fault domain '{}' already; name it once",
                                    topology.node(node).name, domain.name));
        }
        domain.nodes.push_back(node);
      }
    }
    // Many fault domains over one large domain would multiply its size.
    all_members += domain.nodes.size();
    if (all_members > TopologyDraft::kMostLinks) {
      item.refuse(ErrorCode::LimitExceeded,
                  fmt::format("fault domains hold more than {} nodes altogether",
                              TopologyDraft::kMostLinks));
    }
    draft.add_fault_domain(std::move(domain), item);
  }
}

void apply_overrides(TopologyDraft& draft, const YamlValue& section) {
  std::unordered_map<std::string, int> seen;
  for (const YamlValue& item : section.list()) {
    YamlMap map = item.map();
    const auto link = map.find("link");
    const auto node = map.find("node");
    const auto domain = map.find("domain");
    if ((link ? 1 : 0) + (node ? 1 : 0) + (domain ? 1 : 0) != 1) {
      item.refuse(ErrorCode::BadValue,
                  "an override names one thing; write one of 'link', 'node', 'domain'");
    }
    const YamlValue& target = link ? *link : node ? *node : *domain;
    const std::string key = fmt::format("{} '{}'", target.label(), target.name());
    const auto [first, fresh] = seen.try_emplace(key, target.place().line);
    if (!fresh) {
      target.refuse(ErrorCode::Duplicate,
                    fmt::format("{} is overridden in line {} already; write one override", key,
                                first->second));
    }
    if (link) override_link(draft, map, target);
    if (node) override_node(draft, map, target);
    if (domain) override_domain(draft, map, target);
  }
}

}  // namespace holdfast
