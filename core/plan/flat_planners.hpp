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

// The binomial pipeline (binomial_schedule.hpp) from each holder over its part of the
// domain-ordered receivers. Blocks that travel the same trees are one stripe: the schedule's period
// of them (the least common multiple, where the parts of several holders differ in it), and one for
// the last block. Edges of one pair of workers share their path, and with it their connection.
//
// A plan has no steps: a receiver reads from all of its log2 n parents at the same time, so that
// each block takes about log2 n times as long, and the pipeline fills in about (log2 n)^2 block
// times where RDMC's takes log2 n. On 16 hosts with 64, 256 and 1,024 blocks an eighth it reaches
// 75, 92 and 98 % of the bound, two_tree 91, 98 and 99 %. `auto` does not try it.
[[nodiscard]] Plan plan_binomial(const PlanSpace& space);

// Two complementary trees (two_tree.hpp) from each holder over its part of the domain-ordered
// receivers, each tree with half of the blocks. Two stripes a class.
[[nodiscard]] Plan plan_two_tree(const PlanSpace& space);

}  // namespace holdfast
