// Topology files (YAML).
//
//   format: 1
//   name: two-hosts
//   source: where the numbers come from            # free text, for people
//   hosts: {...}                                   # classes of hosts      (host_template.hpp)
//   cluster: {...}                                 # one cluster           (cluster_generator.hpp)
//   datacenters: [...] and wan: [...]              # or several, joined    (wan_generator.hpp)
//   domains, nodes, links, fault_domains, overrides     # (explicit_topology.hpp)
//
// Ids follow this order, whatever the order of the sections: what `cluster` or `datacenters` make,
// then `domains`, `nodes` and `links` in the order of the text. Overrides come last.
//
// Errors are thrown as Error with file:line:column of the culprit: unknown keys (with the nearest
// known one), keys without effect, duplicates, references to nothing, zero capacities, divisions
// that do not come out even, more than a million nodes, parts that nothing joins, and what
// yaml_document.hpp and topology.hpp refuse.
// Deterministic: the same text gives the same topology and hash.
#pragma once

#include <string>
#include <string_view>

#include "core/topology/topology.hpp"

namespace holdfast {

[[nodiscard]] Topology read_topology(const std::string& path);

// `name` stands for the file in messages.
[[nodiscard]] Topology parse_topology(std::string_view text, std::string name);

}  // namespace holdfast
