#include "core/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace holdfast {
namespace {

TEST(Place, Text) {
  EXPECT_EQ(to_string(Place{}), "");
  EXPECT_EQ(to_string(Place{.file = "a.yaml"}), "a.yaml");
  EXPECT_EQ(to_string(Place{.file = "a.yaml", .line = 3, .column = 7}), "a.yaml:3:7");
  EXPECT_EQ(to_string(Place{.file = "a.yaml", .line = 3}), "a.yaml:3");
  EXPECT_EQ(to_string(Place{.line = 3, .column = 7}), "line 3:7");
  EXPECT_EQ(to_string(Place{.file = "p.json", .pointer = "/x/0"}), "p.json (at /x/0)");
  EXPECT_EQ(to_string(Place{.pointer = "/x/0"}), "(at /x/0)");
  EXPECT_EQ(to_string(Place{.file = "m", .offset = 0}), "m (byte 0)");
  EXPECT_EQ(to_string(Place{.file = "m", .pointer = "/a", .offset = 17}), "m (at /a) (byte 17)");
}

TEST(Error, SaysPlaceMessageAndCode) {
  const Error error(ErrorCode::BadUnit, "'5' has no unit",
                    {.file = "a.yaml", .line = 2, .column = 1});
  EXPECT_STREQ(error.what(), "a.yaml:2:1: '5' has no unit [BadUnit]");
  EXPECT_EQ(error.code(), ErrorCode::BadUnit);
  EXPECT_EQ(error.message(), "'5' has no unit");
  EXPECT_EQ(error.place().line, 2);
  EXPECT_STREQ(Error(ErrorCode::BadPlan, "no").what(), "no [BadPlan]");
}

TEST(ErrorCode, NamesDiffer) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::Unsupported); ++i) {
    EXPECT_TRUE(names.insert(to_string(static_cast<ErrorCode>(i))).second) << i;
  }
  EXPECT_EQ(names.count("Unknown"), 0U);
}

}  // namespace
}  // namespace holdfast
