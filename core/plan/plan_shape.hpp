// What a plan looks like from afar.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

struct PlanShape {
  // Reads one after the other until the farthest receiver of a stripe has a block: 1 where everyone
  // reads from holders.
  std::uint32_t depth = 0;
  // By channel: the edges whose path takes it (each is one stream), and the most bytes of one.
  std::vector<std::uint32_t> streams;
  std::vector<Bytes> largest;
};

// The plan must have passed the checker. O(edges x route length + channels).
[[nodiscard]] PlanShape shape_of(const Plan& plan, const Demand& demand, const Router& router);

}  // namespace holdfast
