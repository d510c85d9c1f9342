// A Clos fabric ("fat tree") of up to three levels: racks with leaves, pods with spines, cores.
//
//   fat_tree:
//     hosts_per_rack: 4
//     leaves_per_rack: 1        # 1 if left out; NIC i of a host hangs on leaf (i mod leaves)
//     racks_per_pod: 8          # all of them if left out
//     spines_per_pod: 8         # each joined to every leaf of its pod
//     cores: 16                 # a multiple of spines_per_pod; left out where there is one pod
//     oversubscription: {leaf: 1:1, spine: 7:1}   # 1:1 what is left out; one ratio: the leaves'
//     latency: 1us              # of each link
//
// Racks are called rack0 ... over the whole cluster, their leaves rack0.leaf0 ..., pods pod0 ...,
// spines pod0.spine0 ..., cores core0 ...; how the levels are joined: clos_levels.hpp. Hosts fill
// the racks in their order and racks the pods; numbers that do not divide are refused. A fabric of
// a single leaf has nothing above it, and the keys for that are refused.
//
// After Al-Fares et al., "A Scalable, Commodity Data Center Network Architecture" (SIGCOMM 2008),
// generalised: any number of switches a level, parallel links of two switches merged into one.
#pragma once

#include "core/io/fabric_site.hpp"

namespace holdfast {

// `value` is what stands under `fat_tree`. Returns what gateways are joined to.
[[nodiscard]] Tops add_fat_tree(FabricSite& site, const YamlValue& value);

}  // namespace holdfast
