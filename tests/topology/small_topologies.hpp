// Few-line building blocks for hand-made topologies.
#pragma once

#include <string>
#include <utility>

#include "core/topology/topology.hpp"

namespace holdfast {

class Sketch {
 public:
  Sketch() : builder("sketch") {}

  DomainId host(const std::string& name, DomainId parent = {}) {
    return builder.add_domain(name, Level::Host, parent);
  }
  NodeId node(const std::string& name, NodeKind kind, DomainId domain = {}) {
    const bool endpoint = is_endpoint(kind);
    return builder.add_node(
        {name, kind, domain, Bytes(endpoint ? 1000 : 0), Rate(endpoint ? 1000 : 0), true});
  }
  LinkId link(NodeId a, NodeId b, LinkKind kind, std::uint64_t capacity = 100,
              Time latency = nanoseconds(1)) {
    return builder.add_link(
        {"l" + std::to_string(links_++), a, b, kind, Rate(capacity), latency, std::nullopt, true});
  }
  Topology build() { return builder.build(); }

  TopologyBuilder builder;

 private:
  int links_ = 0;
};

}  // namespace holdfast
