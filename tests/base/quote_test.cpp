#include "core/quote.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::string_view_literals;

TEST(Quote, KeepsWhatIsPrintable) {
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("model.layers.0"), "'model.layers.0'");
  EXPECT_EQ(quote("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "'\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80'");
}

TEST(Quote, EscapesTheRest) {
  EXPECT_EQ(quote("a\nb"), "'a\\nb'");
  EXPECT_EQ(quote("\x1b[31m"), "'\\x1b[31m'");
  EXPECT_EQ(quote("\0\x7f"sv), "'\\x00\\x7f'");
  EXPECT_EQ(quote("it's \\"), "'it\\'s \\\\'");
  EXPECT_EQ(quote("\xc2\x9b"), "'\\xc2\\x9b'");           // U+009B, the control sequence introducer
  EXPECT_EQ(quote("\xe2\x80\xae"), "'\\xe2\\x80\\xae'");  // U+202E, right to left from here
  EXPECT_EQ(quote("\xe2\x81\xa6"), "'\\xe2\\x81\\xa6'");  // U+2066
  EXPECT_EQ(quote("\xff\xc3"), "'\\xff\\xc3'");           // no UTF-8
  EXPECT_EQ(quote("\xc0\xaf"), "'\\xc0\\xaf'");           // overlong
  EXPECT_EQ(quote("\xe0\x80\xaf"), "'\\xe0\\x80\\xaf'");  // overlong
  EXPECT_EQ(quote("\xed\xa0\x80"), "'\\xed\\xa0\\x80'");  // a surrogate
  EXPECT_EQ(quote("\xf4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'");  // above U+10FFFF
}

TEST(Quote, CutsWhatIsLong) {
  EXPECT_EQ(quote("abcdef", 3), "'abc...'");
  EXPECT_EQ(quote("abc", 3), "'abc'");
  EXPECT_EQ(quote("ab\xc3\xa9", 3), "'ab...'");  // never within a character
}

}  // namespace
}  // namespace holdfast
