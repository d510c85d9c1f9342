// A SimulationResult as bytes, between a process and its forked child (same program, same machine).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/simulation.hpp"

namespace holdfast::sim {

[[nodiscard]] std::vector<std::byte> encode_result(const SimulationResult& result);
// Throws Error(BadSyntax) on bytes that encode_result did not make.
[[nodiscard]] SimulationResult decode_result(std::span<const std::byte> bytes);

}  // namespace holdfast::sim
