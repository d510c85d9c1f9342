#include "tests/plan/clos.hpp"

#include <fmt/format.h>

#include <utility>

namespace holdfast::testing_support {
namespace {

class Fabric {
 public:
  explicit Fabric(const ClosShape& shape) : s_(shape), builder_("clos") {
    for (std::uint32_t k = 0; s_.pods > 1 && k < s_.spines * s_.cores; ++k) {
      cores_.push_back(node(fmt::format("core{}", k), NodeKind::Spine, {}));
    }
    for (std::uint32_t p = 0; p < s_.pods; ++p) add_pod(p);
  }
  Topology build() { return builder_.build(); }

 private:
  NodeId node(std::string name, NodeKind kind, DomainId domain) {
    Node node;
    node.name = std::move(name);
    node.kind = kind;
    node.domain = domain;
    if (is_endpoint(kind)) {
      node.memory = Bytes(1ULL << 40);
      node.digest_rate = Rate(1'000'000'000'000);
    }
    return builder_.add_node(std::move(node));
  }

  void link(NodeId a, NodeId b, LinkKind kind, Rate rate) {
    Link link;
    link.name = builder_.so_far().node(a).name + "-" + builder_.so_far().node(b).name;
    link.a = a;
    link.b = b;
    link.kind = kind;
    link.capacity = rate;
    link.latency = microseconds(1);
    builder_.add_link(std::move(link));
  }

  void add_pod(std::uint32_t p) {
    const DomainId pod = builder_.add_domain(fmt::format("pod{}", p), Level::Pod);
    std::vector<NodeId> spines;
    for (std::uint32_t k = 0; k < s_.spines; ++k) {
      spines.push_back(node(fmt::format("pod{}.spine{}", p, k), NodeKind::Spine, pod));
      for (std::uint32_t c = 0; s_.pods > 1 && c < s_.cores; ++c) {
        link(spines[k], cores_[k * s_.cores + c], LinkKind::Fabric, s_.core_rate);
      }
    }
    for (std::uint32_t r = 0; r < s_.racks; ++r) {
      const std::uint32_t number = p * s_.racks + r;
      const DomainId rack = builder_.add_domain(fmt::format("rack{}", number), Level::Rack, pod);
      const NodeId leaf = node(fmt::format("leaf{}", number), NodeKind::Switch, rack);
      for (const NodeId spine : spines) link(leaf, spine, LinkKind::Fabric, s_.uplink_rate);
      for (std::uint32_t h = 0; h < s_.hosts; ++h) add_host(number * s_.hosts + h, rack, leaf);
    }
  }

  void add_host(std::uint32_t h, DomainId rack, NodeId leaf) {
    const std::string name = fmt::format("h{}", h);
    const DomainId host = builder_.add_domain(name, Level::Host, rack);
    const NodeId gpu = node(name + ".gpu", NodeKind::Gpu, host);
    const NodeId nic = node(name + ".nic", NodeKind::Nic, host);
    link(gpu, nic, LinkKind::Pcie, s_.nic_rate * 2);
    link(nic, leaf, LinkKind::Fabric, s_.nic_rate);
  }

  ClosShape s_;
  TopologyBuilder builder_;
  std::vector<NodeId> cores_;
};

}  // namespace

Topology make_clos(const ClosShape& shape) {
  return Fabric(shape).build();
}

std::vector<NodeId> nics_of(const Topology& topology) {
  std::vector<NodeId> nics;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    if (topology.nodes()[i].kind == NodeKind::Nic) nics.emplace_back(i);
  }
  return nics;
}

Demand one_block(const Topology& topology) {
  DemandBuilder builder("block", {1, 1}, Bytes(1 << 20), {Bytes(1 << 20)});
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    if (topology.nodes()[i].kind != NodeKind::Gpu) continue;
    const WorkerId w = builder.add_worker({NodeId(i), group, Bytes(1ULL << 40), true});
    if (group++ == 0) {
      builder.holds(w, {BlockId(0U), 1});
    } else {
      builder.wants(w, {BlockId(0U), 1});
    }
  }
  return std::move(builder).build();
}

}  // namespace holdfast::testing_support
