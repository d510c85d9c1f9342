// The levels above the leaves, which every Clos fabric has: spines, cores, and how much of what
// enters a switch from below may leave it upwards.
//
// What a switch can receive from below, divided by its level's oversubscription, is shared out
// evenly over its links upwards. It must divide evenly over them before the division by "in" of
// "in:out", else it is refused; a fraction of a byte per second that remains (7:1 of 400 Gb/s) is
// dropped from the link, but not from what the next level counts with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/fabric_site.hpp"

namespace holdfast {

__extension__ using WideRate = unsigned __int128;  // bytes a second; a sum of any links fits

// "2:1": what enters a switch from below against what leaves it upwards.
struct Ratio {
  std::uint64_t in = 1;
  std::uint64_t out = 1;
};

struct Oversubscription {
  Ratio leaf;
  Ratio spine;
};

// Reads the key `oversubscription`: one ratio, which is the leaves', or {leaf: 1:1, spine: 7:1}.
// What is left out is 1:1. If `spine_idle` says why, `spine` has no effect and is refused.
[[nodiscard]] Oversubscription read_oversubscription(YamlMap& map, const char* spine_idle);

// A switch with what it can receive from NICs or lower switches: from_below / parts bytes a second.
struct Feed {
  NodeId node;
  WideRate from_below = 0;
  std::uint64_t parts = 1;
};

// Joins `lower` to each of `upper` (which are called `noun`) and adds to what these receive; all
// `lower` of the same `upper` must have the same `parts` and ratio. O(upper).
void join_upwards(FabricSite& site, const Feed& lower, const std::vector<Feed*>& upper,
                  const Ratio& ratio, Time latency, const char* noun, const YamlValue& origin);

// Pods with spines of their own, joined by cores.
struct ClosShape {
  std::uint64_t pods = 0;
  std::uint64_t leaves_per_pod = 0;
  std::uint64_t spines_per_pod = 0;  // zero: the only leaf is the top
  std::uint64_t cores = 0;           // zero: there is one pod
  Oversubscription oversubscription;
  Time latency;
  // Where the numbers stand; `spines` is the fabric where there are none.
  YamlValue spines;
  YamlValue cores_origin;
};

// Reads `spines_per_pod`, `cores`, `oversubscription` and `latency`. Refuses those that have no
// effect on one pod or one leaf, and cores that do not divide over the spines of a pod.
[[nodiscard]] ClosShape read_clos(YamlMap& map, std::uint64_t pods, std::uint64_t leaves_per_pod);

// Throws LimitExceeded at `origin` before that many things are made.
void expect_clos(const FabricSite& site, const ClosShape& shape, const YamlValue& origin);

// The spines of one pod ("pod3.spine0" ...), each joined to each leaf.
[[nodiscard]] std::vector<Feed> add_spines(FabricSite& site, const ClosShape& shape,
                                           const std::string& pod, DomainId domain,
                                           const std::vector<Feed>& leaves);

// The cores ("core0" ...): with k = cores / spines_per_pod, spine s of every pod is joined to the
// plane of cores s * k ... s * k + k - 1, as in the planes of Meta's data center fabric (Andreyev,
// "Introducing data center fabric", 2014). Returns the tops of the fabric.
[[nodiscard]] Tops add_cores(FabricSite& site, const ClosShape& shape,
                             const std::vector<std::vector<Feed>>& spines_of_pods);

}  // namespace holdfast
