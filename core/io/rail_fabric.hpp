// The rail-optimised fabric: NIC i of every host of a pod on that pod's leaf (i mod rails).
//
//   rail_optimised:
//     hosts_per_pod: 32
//     rails: 8               # leaves of a pod; as many as NICs if left out
//     spines: 8              # two levels: each joined to every leaf of every pod
//     oversubscription: 2:1  # into a leaf : out of it; 1:1 if left out
//     latency: 1us           # of each link
//
//     spines_per_pod: 8      # or, instead of `spines`, three levels: pods with spines of their
//     own, cores: 16              # joined by cores; left out where there is one pod
//     oversubscription: {leaf: 1:1, spine: 7:1}
//
// Leaves are called pod0.leaf0 ..., spines spine0 ... or pod0.spine0 ..., cores core0 ...; how the
// levels are joined: clos_levels.hpp. A fabric of a single leaf has nothing above it, and the keys
// for that are refused.
#pragma once

#include "core/io/fabric_site.hpp"

namespace holdfast {

// `value` is what stands under `rail_optimised`. Returns what gateways are joined to.
[[nodiscard]] Tops add_rail_fabric(FabricSite& site, const YamlValue& value);

}  // namespace holdfast
