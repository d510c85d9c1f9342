#include "core/io/json_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

// Writes each event down.
class Recorder : private JsonEvents {
 public:
  explicit Recorder(std::string_view text, Places places = Places::LineAndColumn)
      : JsonEvents(text, "f.json", places, places == Places::ByteOffset ? 100 : 0) {}
  std::string record() {
    read();
    return log_;
  }
  static constexpr Places kOffsets = Places::ByteOffset;

 private:
  void note(const std::string& what) { log_ += to_string(place()) + " " + what + "\n"; }
  void begin_object() override { note("{"); }
  void begin_array() override { note("["); }
  void end() override { log_ += "end\n"; }
  void scalar(const JsonScalar& value) override {
    note(to_string(value.kind) + std::string(" ") + std::string(value.text));
    if (value.text == "fail") fail(ErrorCode::BadValue, "as asked");
  }
  std::string log_;
};

Error refusal(std::string_view text) {
  try {
    Recorder(text).record();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "not refused: " << text;
  return Error(ErrorCode::Unsupported, "");
}

TEST(JsonEvents, PlacesOfTokens) {
  EXPECT_EQ(Recorder("{\"a\": [1 ,\n  -2, \"x\"],\n \"b/c\" :true,\"d\":{}, \"\": null}").record(),
            "f.json:1:1 {\n"
            "f.json:1:7 (at /a/0) [\n"
            "f.json:1:8 (at /a/0) a number \n"
            "f.json:2:3 (at /a/1) a negative number \n"
            "f.json:2:7 (at /a/2) a string x\n"
            "end\n"
            "f.json:3:9 (at /b~1c) true or false \n"
            "f.json:3:18 (at /d) {\n"
            "end\n"
            "f.json:3:26 (at /) null \n"
            "end\n");
  EXPECT_EQ(
      Recorder("{\"a\":1e3}", Recorder::kOffsets).record(),
      "f.json (byte 100) {\nf.json (at /a) (byte 105) a number that is no 64-bit integer \nend\n");
}

TEST(JsonEvents, FailSaysWhere) {
  const Error error = refusal("{\"a\":\n [\"fail\"]}");
  EXPECT_EQ(to_string(error.place()), "f.json:2:3 (at /a/0)");
}

TEST(JsonEvents, RefusesDuplicates) {
  const Error error = refusal("{\"a\":1,\n\"b\":{\"a\":2},\n\"a\":3}");
  EXPECT_EQ(error.code(), ErrorCode::Duplicate);
  EXPECT_EQ(to_string(error.place()), "f.json:3:1 (at /a)");
  // Escapes are the same key.
  EXPECT_EQ(refusal("{\"a\":1,\"\\u0061\":3}").code(), ErrorCode::Duplicate);
  EXPECT_EQ(refusal("{\"\":1,\"\":3}").code(), ErrorCode::Duplicate);
  EXPECT_NO_THROW(Recorder("[{\"a\":1},{\"a\":1}]").record());
}

TEST(JsonEvents, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "[1 2]",
                                      "nul",
                                      "\"x",
                                      "{\"a\":01}",
                                      "{\"a\":NaN}",
                                      "{\"a\":Infinity}",
                                      "[\"\\ud800\"]",
                                      "[\"\xff\"]",
                                      "[\"\xc0\x80\"]",
                                      "[\"\xed\xa0\x80\"]",
                                      "[\"a\nb\"]",
                                      "// {}",
                                      "{} {}",
                                      "{}x"}) {
    SCOPED_TRACE(text);
    const Error error = refusal(text);
    EXPECT_EQ(error.code(), ErrorCode::BadSyntax);
    EXPECT_GE(error.place().line, 1);
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(refusal("{}\0"sv).code(), ErrorCode::BadSyntax);
  EXPECT_EQ(refusal("{}\0{}"sv).code(), ErrorCode::BadSyntax);
  EXPECT_EQ(refusal("{\0}"sv).code(), ErrorCode::BadSyntax);
}

TEST(JsonEvents, SyntaxErrorsSayWhere) {
  const Error error = refusal("{\"a\": 1,\n  \"b\": ?}");
  EXPECT_EQ(error.place().line, 2);
  EXPECT_EQ(error.place().column, 8);
  EXPECT_EQ(refusal("{}\n\n x").place().line, 3);
}

TEST(JsonEvents, LimitsTheDepth) {
  const std::string deepest = std::string(64, '[') + std::string(64, ']');
  EXPECT_NO_THROW(Recorder(deepest).record());
  EXPECT_EQ(refusal("[" + deepest + "]").code(), ErrorCode::LimitExceeded);
  EXPECT_EQ(refusal(std::string(1'000'000, '[')).code(), ErrorCode::LimitExceeded);
}

TEST(JsonEvents, KeysAreSafeToPrint) {
  EXPECT_EQ(pointer_token("a/b~c"), "a~1b~0c");
  EXPECT_EQ(pointer_token("a\x1b[31m"), "a\\x1b[31m");
}

}  // namespace
}  // namespace holdfast
