// Seeds of the fuzzer on several processes. A process of its own for each share of the seeds: what
// crashes one does not end the others, and is found by its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/storm/storm.hpp"

namespace holdfast::cli {

struct SeedResult {
  std::uint64_t seed = 0;
  std::string rule;  // empty: all was well
  std::string text;
  double at_s = 0;  // virtual
  std::uint64_t trace = 0;
  std::uint64_t steps = 0;
  std::uint32_t workers = 0;
  std::uint32_t calls = 0;
  std::uint32_t calls_ok = 0;
  double wall_s = 0;
};

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

struct FuzzRun {
  std::vector<SeedResult> results;  // ascending by seed
  storm::Cells cells;
};

// Runs all seeds, every `jobs`-th in one process. `heard` is called for each result as it comes, in
// no promised order; when it returns false the rest is given up. Throws Error(Unsupported) if no
// process can be started.
[[nodiscard]] FuzzRun run_seeds(const SeedRange& seeds, std::uint32_t jobs,
                                const std::function<bool(const SeedResult&)>& heard);

}  // namespace holdfast::cli
