#include "core/io/yaml_document.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "core/io/yaml_parser.hpp"

namespace holdfast {
namespace {

using testing::HasSubstr;

// Runs `read` on the root of `text`; the error must have this code, start at line:column and
// contain `part`.
template <class Read>
void expect_refused(const std::string& text, ErrorCode code, int line, int column,
                    const std::string& part, Read read) {
  SCOPED_TRACE(text.substr(0, 200));
  try {
    const YamlDocument document = YamlDocument::parse(text, "f.yaml");
    read(document.root());
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.place().file, "f.yaml");
    EXPECT_EQ(error.place().line, line) << error.what();
    EXPECT_EQ(error.place().column, column) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}
void expect_unparsed(const std::string& text, ErrorCode code, int line, int column,
                     const std::string& part) {
  expect_refused(text, code, line, column, part, [](const YamlValue&) {});
}

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(YamlDocument, ReadsEveryType) {
  const YamlDocument document = YamlDocument::parse(
      "name: h0.gpu-1\n"
      "text: 'two\n\n  lines'\n"
      "count: -17\n"
      "factor: 0.25\n"
      "yes: true\n"
      "no: false\n"
      "bytes: 4MiB\n"
      "rate: \"400Gbps\"\n"
      "time: 15ms\n"
      "kind: b\n"
      "list: [1, 2]\n"
      "items:\n"
      "  - a: 1\n"
      "  - a: 2\n"
      "nothing:\n",
      "f.yaml");
  YamlMap map = document.root().map();
  EXPECT_EQ(map.require("name").name(), "h0.gpu-1");
  EXPECT_EQ(map.require("text").text(), "two\nlines");
  EXPECT_EQ(map.require("count").integer(-17, -17), -17);
  EXPECT_EQ(map.require("factor").number(0, 1), 0.25);
  EXPECT_TRUE(map.require("yes").boolean());
  EXPECT_FALSE(map.require("no").boolean());
  EXPECT_EQ(map.require("bytes").bytes(), Bytes(4U << 20));
  EXPECT_EQ(map.require("rate").rate(), Rate(50'000'000'000));
  EXPECT_EQ(map.require("time").time(), milliseconds(15));
  EXPECT_EQ(map.require("kind").one_of<int>({{"a", 1}, {"b", 2}}), 2);
  EXPECT_EQ(map.require("list").list().at(1).integer(0, 9), 2);
  EXPECT_EQ(map.require("items").list().at(1).map().require("a").integer(0, 9), 2);
  EXPECT_TRUE(map.require("nothing").is_null());
  EXPECT_FALSE(map.find("absent").has_value());
  map.finish();
}

TEST(YamlDocument, PlacesAreLinesAndColumnsFromOne) {
  const YamlDocument document = YamlDocument::parse("a:\n  - x: 1\n    y: [7, 8]\n", "f.yaml");
  YamlMap map = document.root().map();
  YamlMap item = map.require("a").list().at(0).map();
  EXPECT_EQ(to_string(item.place()), "f.yaml:2:5");
  EXPECT_EQ(to_string(item.require("y").list().at(1).place()), "f.yaml:3:12");
}

TEST(YamlDocument, ViewsSurviveAMoveOfTheDocument) {
  YamlDocument document = YamlDocument::parse("a: b", "f.yaml");
  const YamlValue root = document.root();
  const YamlDocument moved = std::move(document);
  EXPECT_EQ(root.map().require("a").name(), "b");
}

TEST(YamlDocument, RefusesUnknownKeysWithTheNearest) {
  const auto read = [](const YamlValue& root) {
    YamlMap map = root.map();
    (void)map.find("capacity");
    (void)map.find("latency");
    map.finish();
  };
  expect_refused("latency: 1us\n capacty: 3\n", ErrorCode::BadSyntax, 2, 9, "well-formed", read);
  expect_refused("latency: 1us\ncapacty: 3\n", ErrorCode::UnknownKey, 2, 1,
                 "unknown key 'capacty'; did you mean 'capacity'?", read);
  expect_refused("zzz: 3\n", ErrorCode::UnknownKey, 1, 1, "known: capacity, latency", read);
}

TEST(YamlDocument, RefusesMissingKeysAndKeysWithoutEffect) {
  expect_refused("a:\n  capacty: 1\n", ErrorCode::MissingKey, 2, 3,
                 "key 'capacity' is missing; is 'capacty' meant", [](const YamlValue& root) {
                   YamlMap map = root.map().require("a").map();
                   (void)map.require("capacity");
                 });
  expect_refused("b: 1\nspread: 2\n", ErrorCode::NoEffect, 2, 1, "because there is only one",
                 [](const YamlValue& root) {
                   YamlMap map = root.map();
                   map.no_effect("spread", "there is only one");
                 });
  const YamlDocument document = YamlDocument::parse("b: 1\n", "f.yaml");
  YamlMap map = document.root().map();
  map.no_effect("spread", "there is only one");
}

TEST(YamlDocument, EntriesCountAsAskedFor) {
  const YamlDocument document = YamlDocument::parse("x: 1\ny: 2\n", "f.yaml");
  YamlMap map = document.root().map();
  const auto entries = map.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].first.name(), "y");
  EXPECT_EQ(entries[1].second.integer(0, 9), 2);
  map.finish();
}

TEST(YamlDocument, RefusesDuplicateKeys) {
  expect_unparsed("a: 1\nb: 2\na: 3\n", ErrorCode::Duplicate, 3, 1,
                  "key 'a' stands here and in line 1");
  expect_unparsed("x: {a: 1, 'a': 2}\n", ErrorCode::Duplicate, 1, 11, "'a'");
}

TEST(YamlDocument, RefusesWhatHidesContent) {
  expect_unparsed("a: &x 1\n", ErrorCode::BadSyntax, 1, 4, "anchors");
  expect_unparsed("a: &x [1]\n", ErrorCode::BadSyntax, 1, 4, "anchors");
  expect_unparsed("a: &x\n", ErrorCode::BadSyntax, 1, 4, "anchors");
  expect_unparsed("a: &x {b: 1}\n", ErrorCode::BadSyntax, 1, 4, "anchors");
  expect_unparsed("a: &x 1\nb: *x\n", ErrorCode::BadSyntax, 1, 4, "anchors");
  expect_unparsed("a: *x\n", ErrorCode::BadSyntax, 1, 4, "anchor");
  expect_unparsed("a: !!int 1\n", ErrorCode::BadSyntax, 1, 4, "tags");
  expect_unparsed("a: !x [1]\n", ErrorCode::BadSyntax, 1, 4, "tags");
  expect_unparsed("a: 1\n---\nb: 1\n", ErrorCode::BadSyntax, 2, 1, "second document");
  expect_unparsed("? [a, b]\n: 1\n", ErrorCode::BadSyntax, 1, 3, "a key must be a plain word");
  expect_unparsed("a: 1\n\x04garbage", ErrorCode::BadSyntax, 2, 1, "control character 0x04");
  expect_unparsed(std::string("a: \0", 4), ErrorCode::BadSyntax, 1, 4, "control character 0x00");
}

TEST(YamlDocument, RefusesInvalidUtf8) {
  expect_unparsed("a: \xff\n", ErrorCode::BadSyntax, 1, 4, "UTF-8");
  expect_unparsed("\xc3\xa9: \xc0\xaf\n", ErrorCode::BadSyntax, 1, 4, "UTF-8");   // overlong
  expect_unparsed("a: \xed\xa0\x80\n", ErrorCode::BadSyntax, 1, 4, "UTF-8");      // surrogate
  expect_unparsed("a: \xf4\x90\x80\x80\n", ErrorCode::BadSyntax, 1, 4, "UTF-8");  // too large
  expect_unparsed("a: \xe2\x82", ErrorCode::BadSyntax, 1, 4, "UTF-8");            // cut short
  const YamlDocument document = YamlDocument::parse("a: \xe2\x82\xac \xf0\x9f\x8e\x89\n", "f.yaml");
  EXPECT_EQ(document.root().map().require("a").text(), "\xe2\x82\xac \xf0\x9f\x8e\x89");
}

TEST(YamlDocument, RefusesMalformedText) {
  expect_unparsed("a: [1, 2\n", ErrorCode::BadSyntax, 2, 1, "well-formed");
  expect_unparsed("a: 1\n\tb: 2\n", ErrorCode::BadSyntax, 2, 1, "well-formed");
}

TEST(YamlDocument, LimitsDepth) {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  EXPECT_TRUE(YamlDocument::parse(nested(64), "f.yaml").root().is_list());
  expect_unparsed(nested(65), ErrorCode::LimitExceeded, 1, 65, "deeper than 64");
  expect_unparsed(repeated("- ", 65) + "x", ErrorCode::LimitExceeded, 1, 129, "deeper than 64");
  expect_unparsed(repeated("{a: ", 65) + "1" + repeated("}", 65), ErrorCode::LimitExceeded, 1, 257,
                  "deeper than 64");
  // Never closed, and deep enough to break a parser that recurses first.
  expect_unparsed(repeated("[", 300'000), ErrorCode::BadSyntax, 1, 1, "");
  expect_unparsed(repeated("{a: ", 100'000), ErrorCode::BadSyntax, 1, 1, "");
  expect_unparsed("a: " + repeated("[", 300'000), ErrorCode::BadSyntax, 1, 5, "");
}

TEST(YamlDocument, LimitsSize) {
  expect_unparsed(std::string(64'000'001, 'x'), ErrorCode::LimitExceeded, 0, 0,
                  "the limit is 64000000");
  expect_unparsed(repeated(",", 2'000'001), ErrorCode::LimitExceeded, 1, 2'000'001,
                  "one item a line");
}

// The same limits, small enough to stand on both sides of each.
TEST(YamlDocument, LimitsAreSharp) {
  const auto message = [](const std::string& text, const yaml::Limits& limits) -> std::string {
    try {
      (void)yaml::parse(text, "f.yaml", limits);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
      return error.what();
    }
  };
  EXPECT_EQ(message("a: [1, 2]", {.bytes = 9}), "");
  EXPECT_THAT(message("a: [1, 2]", {.bytes = 8}), HasSubstr("9 bytes of YAML; the limit is 8"));
  EXPECT_EQ(message("a: [1, 2]", {.depth = 2}), "");
  EXPECT_THAT(message("a: [1, 2]", {.depth = 1}), HasSubstr("f.yaml:1:4: nested deeper than 1"));
  EXPECT_EQ(message("a: [1, 2]", {.values = 5}), "");  // map, key, list and two items
  EXPECT_THAT(message("a: [1, 2]", {.values = 4}), HasSubstr("f.yaml:1:8: more than 4 values"));
  EXPECT_EQ(message("a: [1, 2]", {.flow_indicators = 3}), "");
  EXPECT_THAT(message("a: [1, 2]", {.flow_indicators = 2}), HasSubstr("f.yaml:1:9: more than 2"));
  EXPECT_EQ(yaml::Limits().bytes, 64'000'000U);
  EXPECT_EQ(yaml::Limits().depth, 64U);
  EXPECT_EQ(yaml::Limits().values, 4'000'000U);
}

TEST(YamlDocument, ValuesOfTheWrongKindSayWhatToWrite) {
  const auto get = [](auto getter) {
    return [getter](const YamlValue& root) { getter(root.map().require("k")); };
  };
  const auto integer = get([](const YamlValue& v) { (void)v.integer(1, 8); });
  expect_refused("k: [1]", ErrorCode::BadValue, 1, 4, "a list stands here", integer);
  expect_refused("k: {a: 1}", ErrorCode::BadValue, 1, 5, "a map of keys stands here", integer);
  expect_refused("k:", ErrorCode::BadValue, 1, 1, "nothing stands here", integer);
  expect_refused("k: 1.5", ErrorCode::BadValue, 1, 4, "write a whole number from 1 to 8", integer);
  expect_refused("k: 0x2", ErrorCode::BadValue, 1, 4, "not a whole number", integer);
  expect_refused("k: '2'", ErrorCode::BadValue, 1, 4, "without quotes", integer);
  expect_refused("k: 9", ErrorCode::BadValue, 1, 4, "9 is out of range", integer);
  expect_refused("k: 0", ErrorCode::BadValue, 1, 4, "0 is out of range", integer);
  expect_refused("k: 99999999999999999999", ErrorCode::BadValue, 1, 4, "not a whole", integer);

  const auto number = get([](const YamlValue& v) { (void)v.number(0, 1); });
  expect_refused("k: nan", ErrorCode::BadValue, 1, 4, "not a number", number);
  expect_refused("k: inf", ErrorCode::BadValue, 1, 4, "not a number", number);
  expect_refused("k: 1.5", ErrorCode::BadValue, 1, 4, "out of range", number);
  expect_refused("k: 0.5x", ErrorCode::BadValue, 1, 4, "not a number", number);

  const auto boolean = get([](const YamlValue& v) { (void)v.boolean(); });
  expect_refused("k: yes", ErrorCode::BadValue, 1, 4, "neither true nor false", boolean);
  expect_refused("k: 'true'", ErrorCode::BadValue, 1, 4, "without quotes", boolean);

  const auto rate = get([](const YamlValue& v) { (void)v.rate(Zero::Refused); });
  expect_refused("k: 100G", ErrorCode::BadUnit, 1, 4, "100Gbps for bits or 100GB/s", rate);
  expect_refused("k: 100", ErrorCode::BadUnit, 1, 4, "has no unit", rate);
  expect_refused("k: -1GB/s", ErrorCode::BadUnit, 1, 4, "negative", rate);
  expect_refused("k: nan", ErrorCode::BadUnit, 1, 4, "is not a rate", rate);
  expect_refused("k: 99999999999TB/s", ErrorCode::BadUnit, 1, 4, "too large", rate);
  expect_refused("k: 0GB/s", ErrorCode::BadValue, 1, 4, "zero makes no sense", rate);
  expect_refused("k: 50GB", ErrorCode::BadUnit, 1, 4, "50GB/s", rate);

  const auto bytes = get([](const YamlValue& v) { (void)v.bytes(Zero::Refused); });
  expect_refused("k: 0B", ErrorCode::BadValue, 1, 4, "zero makes no sense", bytes);
  expect_refused("k: 4M", ErrorCode::BadUnit, 1, 4, "ambiguous", bytes);
  const auto time = get([](const YamlValue& v) { (void)v.time(Zero::Refused); });
  expect_refused("k: 0s", ErrorCode::BadValue, 1, 4, "zero makes no sense", time);
  expect_refused("k: 5", ErrorCode::BadUnit, 1, 4, "has no unit", time);

  const auto word = get([](const YamlValue& v) {
    (void)v.one_of<int>({{"star", 1}, {"chain", 2}});
  });
  expect_refused("k: stat", ErrorCode::BadValue, 1, 4, "did you mean 'star'", word);
  const auto name = get([](const YamlValue& v) { (void)v.name(); });
  expect_refused("k: 'a b'", ErrorCode::BadValue, 1, 4, "is not a name", name);
  expect_refused("k: ''", ErrorCode::BadValue, 1, 4, "empty", name);
  expect_refused("k: " + std::string(201, 'x'), ErrorCode::BadValue, 1, 4, "at most 200", name);
  const auto text = get([](const YamlValue& v) { (void)v.text(); });
  expect_refused("k: \"a\\x1b[0m\"", ErrorCode::BadValue, 1, 4, "control character", text);
  expect_refused("k: ''", ErrorCode::BadValue, 1, 4, "empty", text);
  expect_refused("k: 1", ErrorCode::BadValue, 1, 4, "write a list",
                 get([](const YamlValue& v) { (void)v.list(); }));
  expect_refused("k: 1", ErrorCode::BadValue, 1, 4, "write a map",
                 get([](const YamlValue& v) { (void)v.map(); }));
  expect_refused("k: \"a\\nb\"", ErrorCode::BadValue, 1, 4, "is not a name", name);
}

TEST(YamlDocument, FilesThatCannotBeReadHaveTheirOwnErrors) {
  const auto code_of = [](const std::string& path) {
    try {
      (void)YamlDocument::load(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.place().file, path);
      return error.code();
    }
    return ErrorCode::BadValue;
  };
  EXPECT_EQ(code_of(testing::TempDir() + "no-such-file.yaml"), ErrorCode::FileNotFound);
  EXPECT_EQ(code_of(testing::TempDir()), ErrorCode::FileUnreadable);
  const std::string path = testing::TempDir() + "yaml_document_test.yaml";
  std::ofstream(path) << std::string(yaml::Limits().bytes + 1, 'x');
  EXPECT_EQ(code_of(path), ErrorCode::LimitExceeded);
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(YamlDocument::load(path).root().map().require("a").integer(1, 1), 1);
}

}  // namespace
}  // namespace holdfast
