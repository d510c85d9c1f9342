#include "core/io/json_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Point {
  std::uint32_t x = 0;
  std::optional<std::uint64_t> y;
  bool visible = false;
  std::string label;
  friend bool operator==(const Point&, const Point&) = default;
};

// {"points": [{"at": [x, y or null], "visible": true, "label": "a"}, ...]}
std::vector<Point> read(const std::string& text) {
  std::vector<Point> points;
  Point point;
  const auto label = [&point](std::string_view value) {
    if (value == "bad") throw Error(ErrorCode::UnknownName, "a bad label");
    point.label = value;
  };
  const JsonShape shape = JsonShape::object(
      {{"points", JsonShape::list(JsonShape::object(
                      {{"at", JsonShape::tuple(
                                  {{"x", JsonShape::number(point.x)},
                                   {"y", JsonShape::number_or_null(
                                             [&point](auto value) { point.y = value; }, 5, 9)}})},
                       {"visible", JsonShape::boolean(point.visible)},
                       {"label", JsonShape::text(label)}},
                      [&] {
                        if (point.label == "late") {
                          throw Error(ErrorCode::UnknownName, "a late label");
                        }
                        points.push_back(point);
                      }))}});
  read_json(text, "s.json", shape);
  return points;
}

std::string error_of(const std::string& text) {
  try {
    (void)read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonShape, ReadsIntoVariables) {
  EXPECT_THAT(read(R"({"points": [{"at": [1, 5], "visible": true, "label": "a"},
                                  {"label": "", "visible": false, "at": [4294967295, null]}]})"),
              ElementsAre(Point{1, 5, true, "a"}, Point{4294967295U, std::nullopt, false, ""}));
  EXPECT_THAT(read(R"({"points": []})"), ElementsAre());
}

TEST(JsonShape, AddsThePlaceToErrorsOfHooks) {
  EXPECT_EQ(error_of("{\"points\": [\n{\"at\": [1, 5], \"visible\": true, \"label\": \"bad\"}]}"),
            "s.json:2:42 (at /points/0/label): a bad label [UnknownName]");
  EXPECT_EQ(error_of("{\"points\": [\n{\"at\": [1, 5], \"visible\": true, \"label\": \"late\"}]}"),
            "s.json:2:1 (at /points/0): a late label [UnknownName]");
}

TEST(JsonShape, SaysWhatToWrite) {
  EXPECT_EQ(error_of("{\"points\": [{\"at\": [1, 4]"),
            "s.json:1:24 (at /points/0/at/1): this is 4; write an integer from 5 to 9 or null "
            "[BadValue]");
  EXPECT_EQ(error_of("{\"points\": [{\"at\": [null"),
            "s.json:1:21 (at /points/0/at/0): this is null; write an integer from 0 to 4294967295 "
            "[BadValue]");
  EXPECT_THAT(error_of("{\"points\": [{\"at\": {}"),
              HasSubstr("(at /points/0/at): this is an object; write an array of 2 values (x, y)"));
  EXPECT_THAT(error_of("{\"points\": [{\"at\": [1, 5], \"visable\": true"),
              HasSubstr("unknown key 'visable'; did you mean 'visible'?"));
  EXPECT_THAT(error_of("{\"points\": [{\"at\": [1, 5], \"visible\": true}]}"),
              HasSubstr("1:13 (at /points/0): the key 'label' is missing; write a string"));
  EXPECT_THAT(error_of("{\"points\": 1}"), HasSubstr("this is a number; write an array"));
}

}  // namespace
}  // namespace holdfast
