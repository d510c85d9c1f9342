// A WorkloadOutcome as bytes, between a process and its forked child (same program, same machine).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/workload_run.hpp"

namespace holdfast::sim {

[[nodiscard]] std::vector<std::byte> encode_outcome(const WorkloadOutcome& outcome);
// Throws Error(BadSyntax) on bytes that encode_outcome did not make.
[[nodiscard]] WorkloadOutcome decode_outcome(std::span<const std::byte> bytes);

}  // namespace holdfast::sim
