// Which blocks workers have verified at some moment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"

namespace holdfast {

class Holdings {
 public:
  // Adds blocks to what a worker has. Spans may touch and overlap. O(spans of the worker).
  void add(WorkerId worker, BlockSpan blocks);
  [[nodiscard]] bool has(WorkerId worker, BlockId block) const;        // O(log spans of the worker)
  [[nodiscard]] std::span<const BlockSpan> of(WorkerId worker) const;  // ascending, not touching

 private:
  std::vector<std::vector<BlockSpan>> spans_;  // by worker
};

// How many blocks of the stripe, in its order, the worker has before the first that it misses.
// O(blocks of the stripe).
[[nodiscard]] std::uint32_t first_missing(const Holdings& holdings, const Demand& demand,
                                          const Stripe& stripe, WorkerId worker);

}  // namespace holdfast
