// Plants one defect after the other and says which seed finds it: the first that breaks a rule with
// the defect and none without. Fails if one is not found.
//
//   cmake --preset mutants && cmake --build --preset mutants
//   build/mutants/storm_mutants [SEEDS [FIRST [LAST [WIRE]]]]    // numbers of enum Mutant
//
// Each seed runs on its own network, or all on WIRE: virtual or simgrid.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "core/mutant.hpp"
#include "core/storm/storm.hpp"
#include "sim/storm_run.hpp"

namespace {

using holdfast::Mutant;
using holdfast::storm::Violation;
using holdfast::storm::Wire;

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

std::optional<Violation> run(int number, std::uint64_t seed, std::optional<Wire> wire) {
  holdfast::planted = static_cast<Mutant>(number);
  holdfast::storm::Recipe recipe;
  recipe.seed = seed;
  recipe.wire = wire;
  return holdfast::sim::storm_on_its_wire(recipe).violation;
}

// True if some seed finds it that has nothing to complain about without it.
bool hunt(int number, std::uint64_t seeds, std::optional<Wire> wire) {
  const char* name = kNames[static_cast<std::size_t>(number)];
  std::uint64_t unclean = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto violation = run(number, seed, wire);
    if (!violation) continue;
    if (run(0, seed, wire)) {
      ++unclean;
      continue;
    }
    fmt::print("{}: seed {} breaks '{}': {}\n", name, seed, violation->rule, violation->text);
    if (unclean > 0) fmt::print("  {} seeds before it fail without the defect too\n", unclean);
    std::fflush(stdout);
    return true;
  }
  fmt::print("{}: not found in {} seeds ({} fail without it too)\n", name, seeds, unclean);
  std::fflush(stdout);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  const int from = argc > 2 ? std::atoi(argv[2]) : 1;
  const int to = argc > 3 ? std::atoi(argv[3]) : holdfast::kMutants - 1;
  std::optional<Wire> wire;
  if (argc > 4) wire = std::string_view(argv[4]) == "simgrid" ? Wire::SimGrid : Wire::Virtual;
  bool all = true;
  for (int number = from; number <= to; ++number) all = hunt(number, seeds, wire) && all;
  return all ? 0 : 1;
}
