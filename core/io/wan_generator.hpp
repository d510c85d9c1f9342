// Generates several datacenters and the WAN between them.
//
//   datacenters:
//     - name: dc0
//       hosts: {template: dgx-h100, count: 16}
//       star: {latency: 1us}
//       gateways: {count: 1, rate: 400Gbps, latency: 1us}
//   wan:
//     - between: [dc0, dc1]
//       capacity: 100Gbps         # each way, all links of this line together; lines may differ
//       latency: 15ms             # one way
//       stream_cap: 1.25GB/s      # most that one stream gets; left out: no limit
//
// A line makes as many WAN links as the least common multiple of the two numbers of gateways: link
// i joins gateway (i mod number) of either side and gets an equal part of the capacity, rounded
// down to whole bytes a second, so that all gateways of a side get equal parts (2 and 2: two links;
// 4 and 2: four; 3 and 2: six). A gateway
// ends the links of all lines that name its datacenter. Gateways of a datacenter that no line of
// `wan` names have no effect and are refused.
#pragma once

#include "core/io/cluster_generator.hpp"
#include "core/io/topology_draft.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

// `wan` may be nullptr.
void add_datacenters(TopologyDraft& draft, HostTemplates& templates, const YamlValue& datacenters,
                     const YamlValue* wan);

}  // namespace holdfast
