// A plan: who reads which block from whom over which path, in what order. Pure data.
//
// A stripe is an ordered set of blocks of one class that travel one tree. Each receiver of
// the class gets each of its blocks over exactly one edge; the roots are holders, which have none.
// Our planners put every receiver into every stripe of the class. Edges ascend by child. On an edge
// blocks go in ascending order; nothing else is ordered: edges run concurrently, and a child reads
// a block as soon as its parent has it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

// Which of the class's blocks a stripe carries: numbers first, first + step, ... below `end`
// in the class's own order (blocks_of).
struct BlockSelection {
  std::uint32_t first = 0;
  std::uint32_t step = 1;
  std::uint32_t end = 0;

  // Zero for an empty selection and for a step of zero, which means nothing.
  [[nodiscard]] constexpr std::uint32_t count() const {
    return end > first && step > 0 ? 1 + (end - first - 1) / step : 0;
  }
  [[nodiscard]] constexpr std::uint32_t at(std::uint32_t k) const { return first + k * step; }
  friend constexpr auto operator<=>(const BlockSelection&, const BlockSelection&) = default;
};

struct Edge {
  WorkerId child;
  WorkerId parent;
  WorkerId alternate;        // whom to read from if the parent is lost; invalid: nobody
  Path path;                 // from the parent's port to the child's
  std::uint32_t window = 2;  // blocks that may be asked for and not yet here; see window_for
  friend constexpr auto operator<=>(const Edge&, const Edge&) = default;
};

struct Stripe {
  ClassId block_class;
  BlockSelection blocks;
  std::vector<Edge> edges;  // ascending by child
  friend bool operator==(const Stripe&, const Stripe&) = default;
};

inline constexpr std::uint32_t kPlanFormat = 1;

struct Plan {
  std::uint32_t format = kPlanFormat;
  Hash128 topology;
  Hash128 demand;
  std::vector<Stripe> stripes;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// XXH3-128 of the canonical integer-only encoding.
[[nodiscard]] Hash128 hash_of(const Plan& plan);

// The blocks of a stripe, ascending.
[[nodiscard]] std::vector<BlockId> blocks_of(const Demand& demand, const Stripe& stripe);

// Windows: 1 + ceil(round trip x rate / block), at least 2, so that neither the latency of a read
// nor that of a notification leaves the edge idle; at most 4,096. `rate` is what the edge is to
// carry, `round_trip` twice its latency.
[[nodiscard]] std::uint32_t window_for(Time round_trip, Rate rate, Bytes block);

}  // namespace holdfast
