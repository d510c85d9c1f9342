// Generates a cluster: equal hosts and the fabric that joins their NICs.
//
//   cluster:
//     hosts: {template: dgx-h100, count: 128}
//     rail_optimised:          # or star:, or neither for hosts without a fabric
//       hosts_per_pod: 32
//       rails: 8               # leaves of a pod; as many as NICs if left out
//       spines: 8              # each joined to every leaf
//       oversubscription: 2:1  # into a leaf : out of it; 1:1 if left out
//       latency: 1us           # of each link
//
// Hosts are called h0, h1 ... over the whole cluster.
// - star: {latency: 1us}: every NIC on the one switch `switch`, at the NIC's rate.
// - rail_optimised: pods pod0, pod1 ... of equal size, each with one leaf a rail (pod0.leaf0 ...).
//   NIC i of every host of the pod hangs on leaf (i mod rails) at the NIC's rate. What a leaf can
//   receive from its NICs, divided by the oversubscription, is shared out evenly over its links to
//   the spines (spine0 ...). Divisions that do not come out even are refused. A fabric of a single
//   leaf has no spines: `spines` and `oversubscription` have no effect and are refused.
// - gateways: {count: 2, rate: 400Gbps, latency: 1us} (datacenters only): gw0, gw1 ..., each joined
//   at that rate to the switch, or by equal parts to all spines, or to the single leaf.
//
// In a datacenter dc0 every name above, and those inside hosts, gets the prefix "dc0.".
#pragma once

#include <string>
#include <vector>

#include "core/io/host_template.hpp"
#include "core/io/topology_draft.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

// Looks up a template by name and remembers which ones were used.
class HostTemplates {
 public:
  explicit HostTemplates(const YamlValue* section);  // the `hosts:` map, or nullptr
  [[nodiscard]] const HostTemplate& named(const YamlValue& value);
  // Throws NoEffect at a template that no cluster uses.
  void refuse_unused() const;

 private:
  struct Entry {
    HostTemplate host;
    YamlValue origin;
    bool used = false;
  };
  std::vector<Entry> entries_;
};

struct Cluster {
  DomainId domain;     // of the datacenter; invalid outside one
  std::string prefix;  // "dc0." or nothing
};

// Adds everything that `map` describes (the keys `hosts`, `star`, `rail_optimised`, `gateways`);
// the gateways in order. The caller finishes the map.
std::vector<NodeId> add_cluster(TopologyDraft& draft, HostTemplates& templates, YamlMap& map,
                                const Cluster& cluster);

}  // namespace holdfast
