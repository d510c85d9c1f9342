#include "core/storm/recipe.hpp"

#include <gtest/gtest.h>

#include "core/storm/dice.hpp"

namespace holdfast::storm {
namespace {

TEST(Recipe, IsOneLineOfText) {
  Recipe recipe;
  recipe.seed = 42;
  EXPECT_EQ(to_string(recipe), "seed=42");
  recipe.tasks = {{0, 3, 4, 5, 9}};
  recipe.faults.emplace();
  EXPECT_EQ(to_string(recipe), "seed=42 tasks=0,3-5,9 faults=-");
  recipe.wire = Wire::SimGrid;
  EXPECT_EQ(to_string(recipe), "seed=42 wire=simgrid tasks=0,3-5,9 faults=-");
}

TEST(Recipe, EveryTwentiethSeedIsSimGridsUnlessItSaysOtherwise) {
  Recipe recipe;
  for (recipe.seed = 0; recipe.seed < 100; ++recipe.seed) {
    EXPECT_EQ(wire_of(recipe), recipe.seed % 20 == 0 ? Wire::SimGrid : Wire::Virtual);
  }
  recipe.wire = Wire::Virtual;
  EXPECT_EQ(wire_of(recipe), Wire::Virtual);
  recipe.seed = 101;
  recipe.wire = Wire::SimGrid;
  EXPECT_EQ(wire_of(recipe), Wire::SimGrid);
}

TEST(Recipe, IsReadBackAsItWasWritten) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    Recipe recipe;
    recipe.seed = dice.next();
    if (dice.chance(500)) recipe.wire = dice.chance(500) ? Wire::SimGrid : Wire::Virtual;
    for (auto* list : {&recipe.tasks, &recipe.faults, &recipe.groups}) {
      if (dice.chance(300)) continue;
      list->emplace();
      for (std::uint32_t n = 0; n < 40; ++n) {
        if (dice.chance(400)) (*list)->push_back(n);
      }
    }
    const Parsed<Recipe> read = parse_recipe(to_string(recipe));
    ASSERT_TRUE(read.has_value()) << read.error();
    EXPECT_EQ(*read, recipe);
  }
}

TEST(Recipe, RefusesWhatItDoesNotUnderstand) {
  const auto error = [](const char* text) {
    const Parsed<Recipe> read = parse_recipe(text);
    return read ? std::string("accepted") : read.error();
  };
  EXPECT_EQ(error(""), "a recipe needs seed=NUMBER");
  EXPECT_EQ(error("seed=x"), "'x' is no seed; write 0 or more");
  EXPECT_EQ(error("seed=1 task=2"),
            "'task' is not known here; a recipe has seed=, wire=, tasks=, faults=, groups=");
  EXPECT_EQ(error("seed=1 wire=copper"), "'copper' is no network; write virtual or simgrid");
  for (const char* list : {"3-1", "1,1", "2,1", "1-", ",", "1,", "0-9999999999", "a", ""}) {
    EXPECT_NE(error(("seed=1 tasks=" + std::string(list)).c_str()), "accepted") << list;
  }
}

}  // namespace
}  // namespace holdfast::storm
