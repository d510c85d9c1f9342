// The smallest time T in which a network, each arc carrying rate x T, can bring all supplies to the
// sinks; and the cuts that prove it.
//
//   source -> supply (its bytes) -> its entries -> arcs (rate x T) -> sinks
//
// T is the largest value, over sets of supplies, of (their bytes) / (least capacity of arcs that
// separates all their entries from all sinks). Newton's method on that (Dinkelbach; discrete Newton
// for parametric cuts): begin with the arcs that enter the sinks, take the maximum flow for the
// ratio so far, and go on with the minimum cut nearest to the source while some supply does not get
// through. Ratios rise strictly, so that it ends; a handful of rounds in practice, each one maximum
// flow (Boykov and Kolmogorov's, of Boost.Graph).
//
// Arc capacities are rounded up and scaled so that all supplies together are about 2^56: the last
// ratio may miss the exact one by arcs x 2^-56 of its value, downwards.
//
// The minimum cut nearest to the source is unique: the answer does not depend on the order of nodes
// and arcs, save for their numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/bound_graph.hpp"

namespace holdfast::bound {

struct Supply {
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> entries;  // nodes where it comes in
};

struct FlowProblem {
  std::uint32_t nodes = 0;
  std::span<const Arc> arcs;
  std::span<const std::uint64_t>
      rates;                     // by arc, bytes per second; unused for arcs without channel
  std::vector<Supply> supplies;  // no entry is a sink
  std::vector<std::uint32_t> sinks;
};

struct FlowCut {
  std::vector<std::uint32_t> supplies;  // that must cross, ascending
  std::vector<std::uint32_t> arcs;      // ascending; one for each channel
  std::uint64_t bytes = 0;
  std::uint64_t capacity = 0;
};

// All cuts that were met, the trivial one first, the tightest last. Empty if there is nothing to
// bring. An arc without channel is never in a cut.
[[nodiscard]] std::vector<FlowCut> parametric_cuts(const FlowProblem& problem);

}  // namespace holdfast::bound
