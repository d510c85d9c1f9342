// Random demands, plans and networks for property tests.
#pragma once

#include <cstdint>
#include <random>

#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {

using Random = std::mt19937_64;

[[nodiscard]] std::uint32_t below(Random& random, std::uint64_t n);

// Some hold pieces, some want pieces; worker 0 holds everything, and the last worker misses all.
[[nodiscard]] Demand random_demand(Random& random, std::uint32_t most_blocks);

// Each class is cut into one to three stripes; each is a random tree under its holders. With
// alternates: two edges in three have one, somebody who comes before the child in the order in
// which the tree was grown, so that no choice of them closes a circle.
[[nodiscard]] Plan random_plan(Random& random, const Demand& demand, bool alternates = false);

[[nodiscard]] ClusterOptions random_options(Random& random);

}  // namespace holdfast::testing
