// A topology while it is being read: the builder, plus where in the text each part came from, so
// that what the builder refuses is reported with file:line:column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/yaml_document.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

class TopologyDraft {
 public:
  static constexpr std::uint64_t kMostNodes = 1'000'000;
  static constexpr std::uint64_t kMostLinks = 4'000'000;

  explicit TopologyDraft(std::string name) : builder_(std::move(name)) {}

  // To be asked before a generator makes that many things: throws LimitExceeded at `origin`.
  void expect(std::uint64_t nodes, std::uint64_t links, const YamlValue& origin) const;

  // As in TopologyBuilder; errors get the place of `origin`.
  DomainId add_domain(std::string name, Level level, DomainId parent, const YamlValue& origin);
  NodeId add_node(Node node, const YamlValue& origin);
  LinkId add_link(Link link, const YamlValue& origin);
  // A link called "a--b" (a second one "a--b#2" ...).
  LinkId add_link_between(NodeId a, NodeId b, Link link, const YamlValue& origin);
  void add_fault_domain(FaultDomain domain, const YamlValue& origin);

  // What a value names; UnknownName with a suggestion if nothing is called so.
  [[nodiscard]] NodeId node_named(const YamlValue& value) const;
  [[nodiscard]] LinkId link_named(const YamlValue& value) const;
  [[nodiscard]] DomainId domain_named(const YamlValue& value) const;

  [[nodiscard]] const Topology& so_far() const { return builder_.so_far(); }
  [[nodiscard]] Node& node(NodeId id) { return builder_.node(id); }
  [[nodiscard]] Link& link(LinkId id) { return builder_.link(id); }

  // Builds. A disconnected topology is reported at the first node of its second part.
  [[nodiscard]] Topology finish(const YamlValue& root);

 private:
  struct Position {
    int line = 0;
    int column = 0;
  };

  TopologyBuilder builder_;
  std::vector<Position> node_origins_;  // by node
};

}  // namespace holdfast
