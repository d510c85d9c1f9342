// The hosts of one cluster in their order, as the generators of fabrics take them: they ask for the
// next host, say into which domain it goes, and hang its NICs on switches.
//
// Hosts may be of several classes; they are called h0, h1 ... over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/io/host_template.hpp"
#include "core/io/topology_draft.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

struct Cluster {
  DomainId domain;     // of the datacenter; invalid outside one
  std::string prefix;  // "dc0." or nothing
};

// A NIC that waits to be joined to a switch, and at which rate.
struct NicPort {
  NodeId nic;
  Rate rate;
};

// What gateways are joined to: the cores, the spines, the one switch or the single leaf.
using Tops = std::vector<NodeId>;

class FabricSite {
 public:
  struct HostClass {
    const HostTemplate* host = nullptr;
    std::uint64_t count = 0;
    YamlValue origin;
  };

  // `classes` must not be empty, nor any of them; what they and `cluster` refer to must outlive
  // the site.
  FabricSite(TopologyDraft& draft, std::vector<HostClass> classes, const Cluster& cluster);

  [[nodiscard]] TopologyDraft& draft() const { return *draft_; }
  [[nodiscard]] DomainId domain() const { return cluster_->domain; }
  [[nodiscard]] const std::string& prefix() const { return cluster_->prefix; }
  [[nodiscard]] const std::vector<HostClass>& classes() const { return classes_; }
  [[nodiscard]] std::uint64_t hosts() const { return hosts_; }  // of all classes
  [[nodiscard]] std::uint64_t nics() const { return nics_; }    // of all hosts

  // "dc0.pod3" for ("pod", 3).
  [[nodiscard]] std::string name(const char* what, std::uint64_t i) const;

  // Throws BadTopology at `fabric` if there is a class of hosts without NICs.
  void need_nics(const YamlValue& fabric) const;
  // Throws BadTopology at `origin` unless the NICs of every class divide evenly over that many
  // leaves; `noun` names them.
  void need_even_nics(std::uint64_t leaves, const char* noun, const YamlValue& origin) const;

  // The next host, with its NICs in order. There are `hosts()` of them.
  [[nodiscard]] std::vector<NicPort> add_next_host(DomainId parent);

  NodeId add_switch(std::string name, NodeKind kind, DomainId domain) const;
  void add_fabric_link(NodeId a, NodeId b, Rate capacity, Time latency,
                       const YamlValue& origin) const;

 private:
  TopologyDraft* draft_;
  std::vector<HostClass> classes_;
  const Cluster* cluster_;
  std::uint64_t hosts_ = 0;
  std::uint64_t nics_ = 0;
  std::size_t class_ = 0;       // of the next host
  std::uint64_t in_class_ = 0;  // its number in the class
  std::uint64_t next_ = 0;      // and in the cluster
};

}  // namespace holdfast
