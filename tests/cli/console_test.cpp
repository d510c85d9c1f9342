#include "cli/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace holdfast::cli {
namespace {

using ::testing::ElementsAre;

TEST(Console, WrapsAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two\nthree", 100), "one two three");
  EXPECT_EQ(wrapped("unbreakable", 3), "unbreakable");
  EXPECT_EQ(wrapped("  ", 3), "");
  EXPECT_EQ(wrapped("a\x1b[2Jb", 100), "a\\x1b[2Jb");
}

TEST(Console, ChoosesPolicies) {
  Scenario scenario;
  scenario.policies = {Policy::Chain};
  EXPECT_THAT(chosen_policies("", scenario), ElementsAre(Policy::Chain));
  EXPECT_THAT(chosen_policies("two_tree,star", scenario),
              ElementsAre(Policy::TwoTree, Policy::Star));
  EXPECT_EQ(chosen_policies("all", scenario).size(), policy_names().size() - 3);
  for (const char* wrong : {"two_tee", "star,", ",star", "star,star"}) {
    EXPECT_THROW((void)chosen_policies(wrong, scenario), Error) << wrong;
  }
}

TEST(Table, AlignsAndEscapes) {
  Table table({{"name", Table::Align::Left}, {"figure"}, {"note", Table::Align::Left}});
  table.add({"a", "1", "x"});
  table.add({"long name", "100", ""});
  table.add({"b\n"});
  EXPECT_EQ(table.text(),
            "name       figure  note\n"
            "a               1  x\n"
            "long name     100\n"
            "b\\x0a\n");
}

}  // namespace
}  // namespace holdfast::cli
