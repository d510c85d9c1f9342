// Patterns for names of nodes and domains, as scenarios write them.
//
//   dc0.h3            that name
//   dc0.h*            `*` stands for any run of characters but '.', `?` for one of them
//   dc0.h[0-3,8]      a decimal number of the list, written without leading zeros
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace holdfast {

class NamePattern {
 public:
  // The pattern, or what is wrong with it.
  [[nodiscard]] static Parsed<NamePattern> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  // A plain name: matches exactly itself.
  [[nodiscard]] bool literal() const { return tokens_.empty(); }
  // O(length of the pattern x length of the name).
  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  enum class Kind { Text, One, Run, Number };
  struct Token {
    Kind kind = Kind::Text;
    std::string text;                                            // Text
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;  // Number: first and last
  };
  static Parsed<Token> parse_number(std::string_view inside);
  static void advance(const Token& token, std::string_view name, const std::vector<char>& from,
                      std::vector<char>& to);

  std::string text_;
  std::vector<Token> tokens_;  // empty for a literal
};

}  // namespace holdfast
