// Which part of a seed's script is played: all of it, or what shrinking left. One line of text that
// replays a run exactly:
//
//   seed=42 tasks=0,3-5 faults=- groups=0-1
//
// A key that is not there means all; "-" means none. `wire=virtual` or `wire=simgrid` plays it on
// another network than the seed's own: every twentieth seed's is SimGrid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace holdfast::storm {

enum class Wire : std::uint8_t { Virtual, SimGrid };

struct Recipe {
  std::uint64_t seed = 0;
  std::optional<Wire> wire;  // nothing: the seed's own
  // Numbers in the script and the world, ascending; nothing: all.
  std::optional<std::vector<std::uint32_t>> tasks;
  std::optional<std::vector<std::uint32_t>> faults;
  std::optional<std::vector<std::uint32_t>> groups;  // others are never started
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// The network that the recipe is for.
[[nodiscard]] Wire wire_of(const Recipe& recipe);

[[nodiscard]] std::string to_string(const Recipe& recipe);
// Or what is wrong with the text.
[[nodiscard]] Parsed<Recipe> parse_recipe(std::string_view text);

}  // namespace holdfast::storm
