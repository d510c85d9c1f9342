// `other_traffic` of a scenario: which share of which links the update leaves to others.
//
//   other_traffic:
//     - {kind: nic, share: 30%}                # every NIC: inference beside the update
//     - {kind: wan, share: 50%}                # half of every line between datacenters
//     - {kind: nic, at: 'h[0-3]', share: 20%}  # four hosts' NICs, another 20 %
//     - {links: 'h0.nic*--*', share: 10%}      # links by name
//
// An entry takes the links that are of the `kind`, that end `at` one of the nodes or inside one of
// the domains, and that have one of the names (`links`); of the three at least one is written, and
// a link must fit all that are. Patterns: name_pattern.hpp. Shares of several entries add up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/io/pattern_list.hpp"
#include "core/io/yaml_document.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

// What links are called here: fabric links are told apart by what they join.
enum class TrafficKind {
  Nic,     // a NIC and a switch
  Uplink,  // switches, spines and gateways among each other
  Wan,
  NvLink,
  Pcie,
  Memory,
};

// Patterns of one key, with the place of each.
// What kind a link is of.
[[nodiscard]] TrafficKind traffic_kind(const Link& link, const Topology& topology);

struct OtherTraffic {
  std::optional<TrafficKind> kind;
  std::vector<PlacedPattern> links;
  std::vector<PlacedPattern> at;
  std::uint32_t share = 0;  // millionths, above zero and below the whole
  Place place;              // of the entry
};

[[nodiscard]] const char* to_string(TrafficKind kind);
// "nic at 'h[0-3]'", as the entry says it.
[[nodiscard]] std::string to_string(const OtherTraffic& traffic);

// Throws Error with the place in the text: BadValue, BadUnit, MissingKey, UnknownKey,
// LimitExceeded.
[[nodiscard]] std::vector<OtherTraffic> read_other_traffic(const YamlValue& value);

// The links of an entry, ascending. Throws Error at its place: UnknownName for a pattern that fits
// nothing, BadValue for an entry that no link fits. Numbers of a pattern that nothing has are told
// to `warnings`, if given, with their places. O((links + nodes) x patterns).
[[nodiscard]] std::vector<LinkId> links_of(const OtherTraffic& traffic, const Topology& topology,
                                           std::vector<std::string>* warnings = nullptr);

// The machine that is left for the update: beside_other_traffic() with the shares of all entries
// added up. Throws as links_of does, and BadValue at the entry with which a link has nothing left.
[[nodiscard]] Topology without_other_traffic(const Topology& topology,
                                             std::span<const OtherTraffic> traffic,
                                             std::vector<std::string>* warnings = nullptr);

}  // namespace holdfast
