#include "core/io/topology_draft.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/nearest.hpp"

namespace holdfast {
namespace {

// Runs `action`; an Error that knows no place gets that of `origin`.
template <class Action>
auto placed(const Place& place, Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.place().line > 0) throw;
    throw Error(error.code(), error.message(), place);
  }
}

template <class Things>
[[noreturn]] void refuse_unknown(const YamlValue& value, const char* what, const std::string& name,
                                 const Things& things) {
  std::vector<std::string> names;
  names.reserve(things.size());
  for (const auto& thing : things) names.push_back(thing.name);
  constexpr std::size_t kShown = 6;
  value.refuse(ErrorCode::UnknownName,
               fmt::format("there is no {} '{}'{}", what, name, suggestion(name, names, kShown)));
}

}  // namespace

void TopologyDraft::expect(std::uint64_t nodes, std::uint64_t links,
                           const YamlValue& origin) const {
  const std::uint64_t all_nodes = so_far().nodes().size() + nodes;
  const std::uint64_t all_links = so_far().links().size() + links;
  if (all_nodes > kMostNodes) {
    origin.refuse(ErrorCode::LimitExceeded,
                  fmt::format("this makes {} nodes; at most {}", all_nodes, kMostNodes));
  }
  if (all_links > kMostLinks) {
    origin.refuse(ErrorCode::LimitExceeded,
                  fmt::format("this makes {} links; at most {}", all_links, kMostLinks));
  }
}

DomainId TopologyDraft::add_domain(std::string name, Level level, DomainId parent,
                                   const YamlValue& origin) {
  if (so_far().domains().size() >= kMostNodes) {
    origin.refuse(ErrorCode::LimitExceeded, fmt::format("more than {} domains", kMostNodes));
  }
  return placed(origin.place(),
                [&] { return builder_.add_domain(std::move(name), level, parent); });
}

NodeId TopologyDraft::add_node(Node node, const YamlValue& origin) {
  expect(1, 0, origin);
  const Place place = origin.place();
  const NodeId id = placed(place, [&] { return builder_.add_node(std::move(node)); });
  node_origins_.push_back({place.line, place.column});
  return id;
}

LinkId TopologyDraft::add_link(Link link, const YamlValue& origin) {
  expect(0, 1, origin);
  return placed(origin.place(), [&] { return builder_.add_link(std::move(link)); });
}

LinkId TopologyDraft::add_link_between(NodeId a, NodeId b, Link link, const YamlValue& origin) {
  link.a = a;
  link.b = b;
  const std::string name = so_far().node(a).name + "--" + so_far().node(b).name;
  link.name = name;
  for (std::size_t n = 2; so_far().find_link(link.name).valid(); ++n) {
    link.name = fmt::format("{}#{}", name, n);
  }
  return add_link(std::move(link), origin);
}

void TopologyDraft::add_fault_domain(FaultDomain domain, const YamlValue& origin) {
  placed(origin.place(), [&] { builder_.add_fault_domain(std::move(domain)); });
}

NodeId TopologyDraft::node_named(const YamlValue& value) const {
  const std::string name = value.name();
  const NodeId id = so_far().find_node(name);
  if (!id.valid()) refuse_unknown(value, "node", name, so_far().nodes());
  return id;
}

LinkId TopologyDraft::link_named(const YamlValue& value) const {
  const std::string name = value.name();
  const LinkId id = so_far().find_link(name);
  if (!id.valid()) refuse_unknown(value, "link", name, so_far().links());
  return id;
}

DomainId TopologyDraft::domain_named(const YamlValue& value) const {
  const std::string name = value.name();
  const DomainId id = so_far().find_domain(name);
  if (!id.valid()) refuse_unknown(value, "domain", name, so_far().domains());
  return id;
}

Topology TopologyDraft::finish(const YamlValue& root) {
  Place place = root.place();
  const std::vector<TopologyBuilder::Part> parts = builder_.parts();
  if (parts.size() > 1) {
    const Position& origin = node_origins_[parts[1].first.index()];
    place.line = origin.line;
    place.column = origin.column;
  }
  return placed(place, [&] { return builder_.build(); });
}

}  // namespace holdfast
