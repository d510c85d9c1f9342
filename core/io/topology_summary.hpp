// What a topology amounts to, for people and for programs: `holdfast topo show`.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast {

struct TopologySummary {
  struct Nodes {
    NodeKind kind = NodeKind::Gpu;
    std::uint64_t count = 0;
    std::uint64_t down = 0;
    Bytes memory;  // altogether
  };
  struct Links {
    LinkKind kind = LinkKind::Fabric;
    std::uint64_t count = 0;
    std::uint64_t down = 0;
    Rate slowest;  // each way
    Rate fastest;
    std::uint64_t at_slowest = 0;
    std::string slowest_name;        // the first of them
    std::optional<Rate> stream_cap;  // the lowest
    Time longest_latency;
  };
  // Domains of one level. Capacities count what is up. A domain that nothing enters (the outermost
  // one) is counted, but not in the least and greatest.
  struct Domains {
    Level level = Level::Host;
    std::uint64_t count = 0;
    std::uint64_t entered = 0;  // domains that something enters
    Rate least_in;              // capacity of the links into one domain
    Rate greatest_in;
    std::string least_name;  // the first domain with the least
    // Rate of the NICs inside / capacity in: the greatest, the first domain with it, the least.
    double worst_oversubscription = 0;
    std::string worst_name;
    double least_oversubscription = 0;
  };

  std::string name;
  Hash128 hash;
  std::vector<Nodes> nodes;      // kinds that occur, in the order of NodeKind
  std::vector<Links> links;      // kinds that occur, in the order of LinkKind
  std::vector<Domains> domains;  // levels that occur, innermost first
  std::uint64_t fault_domains = 0;
  std::vector<std::string> down_nodes;  // names, in id order
  std::vector<std::string> down_links;
};

// O(V + E).
[[nodiscard]] TopologySummary summarise(const Topology& topology);

// A text of a screenful; at most 20 of the things that are down are named.
[[nodiscard]] std::string render(const TopologySummary& summary);

// Exact numbers: bytes, bytes per second, picoseconds. Everything that is down is named.
[[nodiscard]] nlohmann::json to_json(const TopologySummary& summary);

}  // namespace holdfast
