// Plants one defect after the other and says which seed finds it. Fails if one is not found.
//
//   cmake --preset mutants && cmake --build --preset mutants && build/mutants/storm_mutants [SEEDS]
#include <array>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "core/mutant.hpp"
#include "core/storm/storm.hpp"

namespace {

using holdfast::Mutant;

constexpr std::array<const char*, holdfast::kMutants> kNames{
    "none",
    "skip drain",
    "skip epoch check",
    "skip incarnation check",
    "count a spot holder",
    "count a partial holder",
    "serve unverified",
    "lose a wake-up",
    "re-decide n after a restart",
    "re-ask before completion",
    "keep the lease of a dead reader",
    "start InPlace before the offload",
    "accept a second root",
};

// True if some seed finds it.
bool hunt(int number, std::uint64_t seeds) {
  holdfast::planted = static_cast<Mutant>(number);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    holdfast::storm::Recipe recipe;
    recipe.seed = seed;
    const auto outcome = holdfast::storm::storm(recipe);
    if (!outcome.violation) continue;
    fmt::print("{}: seed {} breaks '{}': {}\n", kNames[static_cast<std::size_t>(number)], seed,
               outcome.violation->rule, outcome.violation->text);
    return true;
  }
  fmt::print("{}: not found in {} seeds\n", kNames[static_cast<std::size_t>(number)], seeds);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  const int from = argc > 2 ? std::atoi(argv[2]) : 1;
  const int to = argc > 3 ? std::atoi(argv[3]) : holdfast::kMutants - 1;
  bool all = true;
  for (int number = from; number <= to; ++number) all = hunt(number, seeds) && all;
  return all ? 0 : 1;
}
