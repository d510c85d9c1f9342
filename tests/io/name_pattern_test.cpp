#include "core/io/name_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* pattern;
  const char* name;
  bool matches;
};

TEST(NamePattern, MatchesWhatItSays) {
  const Case cases[] = {
      {"h3", "h3", true},
      {"h3", "h33", false},
      {"h*", "h33", true},
      {"h*", "h3.gpu0", false},  // a star stays within one part of the name
      {"h*.gpu*", "h3.gpu0", true},
      {"*", "", true},
      {"*x*y", "axbxy", true},
      {"*x*y", "axbx", false},
      {"h?", "h3", true},
      {"h?", "h", false},
      {"h?", "h33", false},
      {"h?x", "h.x", false},
      {"h[0-3]", "h0", true},
      {"h[0-3]", "h3", true},
      {"h[0-3]", "h4", false},
      {"h[0-3]", "h03", false},  // no leading zeros
      {"h[8-12]", "h1", false},
      {"h[8-12]", "h10", true},
      {"h[8-12]", "h12", true},
      {"h[8-12]", "h13", false},
      {"h[1,4,7-8]", "h4", true},
      {"h[1,4,7-8]", "h5", false},
      {"h[1,4,7-8]", "h8", true},
      {"dc[0-1].h*", "dc1.h7", true},
      {"dc[0-1].h*", "dc2.h7", false},
      {"h[1-11]1", "h11", true},   // the number may be 1 ...
      {"h[1-11]1", "h111", true},  // ... or 11
      {"h[1-11]1", "h121", false},
      {"h[0-9]*", "h5", true},
  };
  for (const Case& c : cases) {
    const auto pattern = NamePattern::parse(c.pattern);
    ASSERT_TRUE(pattern) << pattern.error();
    EXPECT_EQ(pattern->matches(c.name), c.matches) << c.pattern << " on " << c.name;
  }
}

std::string unused(const char* text, const std::vector<std::string_view>& names) {
  std::string result;
  for (const auto& [bracket, numbers] : NamePattern::parse(text)->unused(names)) {
    result += bracket + ": " + numbers + "; ";
  }
  return result;
}

TEST(NamePattern, KnowsWhichNumbersNoNameHas) {
  EXPECT_EQ(unused("h[1-3]", {"h1", "h2", "h3"}), "");
  EXPECT_EQ(unused("h[1-99]", {"h1", "h2", "h31"}), "[1-99]: 3-30,32-99; ");
  EXPECT_EQ(unused("h[7,0-3,2-5]", {"h0", "h2", "h5"}), "[7,0-3,2-5]: 1,3,4,7; ");
  EXPECT_EQ(unused("h[0-3].gpu*", {"h1.gpu0", "h1.gpu1", "h3.gpu0"}), "[0-3]: 0,2; ");
  EXPECT_EQ(unused("dc[0-1].h[0-2]", {"dc0.h0", "dc0.h1", "dc1.h0"}), "[0-2]: 2; ");
  EXPECT_EQ(unused("dc[0-2].h[0-2]", {"dc0.h0", "dc1.h2"}), "[0-2]: 2; [0-2]: 1; ");
  // A number counts as there if the name can be read so.
  EXPECT_EQ(unused("h[1-11]1", {"h11", "h111"}), "[1-11]: 2-10; ");
  EXPECT_EQ(unused("h[0-18446744073709551615]", {"h0"}),
            "[0-18446744073709551615]: 1-18446744073709551615; ");
  std::vector<std::string_view> odd{"h1", "h3", "h5", "h7", "h9"};
  EXPECT_EQ(unused("h[0-30]", odd), "[0-30]: 0,2,4,6,8,10-30; ");
  EXPECT_EQ(unused("h[0,2,4,6,8,10,12,14,16,18,20,22]", {"h22"}),
            "[0,2,4,6,8,10,12,14,16,18,20,22]: 0,2,4,6,8,10,12,14,16,18,...; ");
}

TEST(NamePattern, KnowsPlainNames) {
  EXPECT_TRUE(NamePattern::parse("h3.gpu0")->literal());
  EXPECT_FALSE(NamePattern::parse("h*")->literal());
  EXPECT_FALSE(NamePattern::parse("h[3]")->literal());
}

TEST(NamePattern, RefusesWhatMeansNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty name"},
      {"h[0-3", "never closes"},
      {"h[]", "not a list of numbers"},
      {"h[a-b]", "not a list"},
      {"h[3-0]", "write '0-3'"},
      {"h[1-]", "not a list of numbers"},
      {"h[1,,2]", "not a list of numbers"},
      {"h[99999999999999999999]", "not a list of numbers"},
  };
  for (const auto& [text, part] : cases) {
    const auto pattern = NamePattern::parse(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_THAT(pattern.error(), HasSubstr(part)) << text;
  }
  EXPECT_FALSE(NamePattern::parse(std::string(2'000, 'x')));
}

TEST(NamePattern, SuggestsWhereItWouldMatch) {
  const std::vector<std::string> names{"east", "east.h0", "east.h1", "west.pod0.rack3"};
  const auto suggested = [&](const char* text) {
    return suggestion(*NamePattern::parse(text), names);
  };
  EXPECT_EQ(suggested("h0"), "; did you mean 'east.h0'?");
  EXPECT_EQ(suggested("h[1-3]"), "; did you mean 'east.h[1-3]'?");
  EXPECT_EQ(suggested("rack*"), "; did you mean 'west.pod0.rack*'?");
  EXPECT_EQ(suggested("pod0.rack3"), "; did you mean 'west.pod0.rack3'?");
  EXPECT_EQ(suggested("eest.h0"), "; did you mean 'east.h0'?");
  EXPECT_THAT(suggested("zzzzzzzz"), HasSubstr("known: east"));
}

// A backtracking matcher would not come back from this.
TEST(NamePattern, StaysLinearOnHostilePatterns) {
  std::string pattern;
  for (int i = 0; i < 300; ++i) {
    pattern += "*a";
  }
  EXPECT_FALSE(NamePattern::parse(pattern + "b")->matches(std::string(600, 'a')));
}

}  // namespace
}  // namespace holdfast
