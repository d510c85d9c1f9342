// The sections of a topology file that name single things. They may refer to what a generator made.
//
//   domains:
//     - {name: rack0, level: rack, parent: dc0}      # host, rack, pod, datacenter
//   nodes:
//     - {name: g0, kind: gpu, domain: h0, memory: 80GB, digest_rate: 2TB/s}
//     - {name: s0, kind: switch}                     # nic, nvswitch, pcie_switch, spine, gateway
//     ...
//   links:
//     - {a: n0, b: s0, kind: fabric, capacity: 400Gbps, latency: 1us}   # also name, stream_cap, up
//   fault_domains:
//     - {name: feed-a, members: [h0, h1, s0]}        # nodes, or domains with all that is in them
//   overrides:
//     - {link: n0--s0, capacity: 100Gbps}            # also latency, stream_cap, up
//     - {node: g0, up: false}                        # also memory, digest_rate
//     - {domain: h1, up: false}                      # all its nodes
//
// `memory` and `digest_rate` belong to gpu and host_memory and are required there. A link without a
// name is called "a--b", a second one "a--b#2". An override that changes nothing is refused, and so
// is a second one of the same thing.
#pragma once

#include "core/io/topology_draft.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

void add_domains(TopologyDraft& draft, const YamlValue& section);
void add_nodes(TopologyDraft& draft, const YamlValue& section);
void add_links(TopologyDraft& draft, const YamlValue& section);
void add_fault_domains(TopologyDraft& draft, const YamlValue& section);
void apply_overrides(TopologyDraft& draft, const YamlValue& section);

}  // namespace holdfast
