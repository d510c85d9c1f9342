// Generates a cluster: hosts of one class or several, and the fabric that joins their NICs.
//
//   cluster:
//     hosts: {template: dgx-h100, count: 128}     # or a list of such maps
//     rail_optimised: {...}                       # two or three levels  (rail_fabric.hpp)
//     # or fat_tree: {...}                        # two or three levels  (fat_tree.hpp)
//     # or star: {latency: 1us}                   # or nothing: hosts without a fabric
//
// Hosts are called h0, h1 ... over the whole cluster, in the order of the list; pods and racks are
// filled in that order and may mix classes. Each NIC is joined at its own template's rate.
// - star: every NIC on the one switch `switch`.
// - gateways: {count: 2, rate: 400Gbps, latency: 1us} (datacenters only): gw0, gw1 ..., each joined
//   at that rate by equal parts, rounded down to whole bytes a second, to all switches on top of
//   the fabric: the one switch, the single leaf, all spines or all cores.
//
// In a datacenter dc0 every name above, and those inside hosts, gets the prefix "dc0.".
#pragma once

#include <string>
#include <vector>

#include "core/io/fabric_site.hpp"
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

// Adds everything that `map` describes (the keys `hosts`, `star`, `rail_optimised`, `fat_tree`,
// `gateways`); the gateways in order. The caller finishes the map.
std::vector<NodeId> add_cluster(TopologyDraft& draft, HostTemplates& templates, YamlMap& map,
                                const Cluster& cluster);

}  // namespace holdfast
