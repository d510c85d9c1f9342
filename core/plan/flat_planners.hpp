// The planners that know no hosts: they treat every receiver of a class alike. Baselines, and the
// best there is where nothing is to be gained from structure.
#pragma once

#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

// Every receiver reads everything from a holder: the nearest, and of those the one with fewest
// readers. One stripe a class.
[[nodiscard]] Plan plan_star(const PlanSpace& space);

// One chain from each holder along its part of the domain-ordered receivers. One stripe a class.
[[nodiscard]] Plan plan_chain(const PlanSpace& space);

// Two complementary trees (two_tree.hpp) from each holder over its part of the domain-ordered
// receivers, each tree with half of the blocks. Two stripes a class.
[[nodiscard]] Plan plan_two_tree(const PlanSpace& space);

}  // namespace holdfast
