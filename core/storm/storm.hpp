// One seed from beginning to end: a world, its script, a run of it under the oracle, and, where it
// fails, the smallest part of it that still fails in the same way.
//
//   const Outcome outcome = storm({.seed = 42});
//   const auto again = [](const Recipe& recipe) { return storm(recipe); };
//   if (outcome.violation) puts(to_string(shrink(outcome, again).recipe));
//
// Pure and deterministic: one recipe at one venue always gives the same outcome, bit for bit
// (`trace`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/storm/coverage.hpp"
#include "core/storm/data_network.hpp"
#include "core/storm/oracle.hpp"
#include "core/storm/recipe.hpp"

namespace holdfast::storm {

struct Outcome {
  Recipe recipe;
  std::optional<Violation> violation;
  std::uint64_t trace = 0;  // hash of everything that happened, in order
  std::uint64_t steps = 0;
  Time ended;
  std::uint32_t workers = 0;
  std::uint32_t calls = 0;     // that ended
  std::uint32_t calls_ok = 0;  // with Ok
  Cells cells;
};

// Runs it at `venue`, whatever its wire, to its end or to the first violation. Lines of a story are
// appended to `story` unless it is null. Throws nothing of its own; what the machines throw becomes
// a violation.
[[nodiscard]] Outcome storm(const Recipe& recipe, std::vector<std::string>* story = nullptr,
                            const Venue& venue = on_virtual_network);

using Runner = std::function<Outcome(const Recipe&)>;

// Leaves out faults, calls and groups as long as the same rule is still violated when `run` runs
// the rest. `going`, asked before each run, ends it early. Returns the outcome of the smallest
// recipe that was found. At most about (faults + calls + groups) x log runs.
[[nodiscard]] Outcome shrink(const Outcome& failed, const Runner& run,
                             const std::function<bool()>& going = {});

}  // namespace holdfast::storm
