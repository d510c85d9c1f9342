#include "core/io/printable.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Printable, KeepsTextAndEscapesCommands) {
  const std::pair<std::string, std::string> cases[] = {
      {"h3.gpu0", "h3.gpu0"},
      {"a\nb", "a\\x0ab"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {std::string("nul\0", 4), "nul\\x00"},
      {"del\x7f", "del\\x7f"},
      {"gr\xc3\xb6\xc3\x9f"
       "e",
       "gr\xc3\xb6\xc3\x9f"
       "e"},
      {"\xe2\x80\xae"
       "abc",
       "\\xe2\\x80\\xae"
       "abc"},  // turns the direction
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b"
       "31m"},                              // a control sequence of one character
      {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},  // line separator
      {"\xff", "\\xff"},
      {"\xc0\xaf", "\\xc0\\xaf"},           // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf0\x9f\x9a\x80", "\xf0\x9f\x9a\x80"},
      {"\xe2\x82", "\\xe2\\x82"},                    // cut short
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond Unicode
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(printable(text), expected);
  }
}

}  // namespace
}  // namespace holdfast
