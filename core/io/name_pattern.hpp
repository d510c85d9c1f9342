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

  // For each bracket some of whose numbers none of the names has: the bracket and these numbers,
  // "[1-99]" and "32-99" (at most ten spans of them). All names match.
  // O(names x length of the pattern x length of a name).
  struct Unused {
    std::string bracket;
    std::string numbers;
  };
  [[nodiscard]] std::vector<Unused> unused(const std::vector<std::string_view>& names) const;

 private:
  enum class Kind { Text, One, Run, Number };
  struct Token {
    Kind kind = Kind::Text;
    std::string text;                                            // Text; Number: its bracket
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;  // Number: first and last
  };
  static Parsed<Token> parse_number(std::string_view inside);
  // Calls take(end, value) for each number of the token that stands at `at`.
  template <class Take>
  static void numbers_at(const Token& token, std::string_view name, std::size_t at,
                         const Take& take);
  [[nodiscard]] bool matches_from(std::size_t token, std::string_view name, std::size_t at) const;
  static void advance(const Token& token, std::string_view name, const std::vector<char>& from,
                      std::vector<char>& to);

  std::string text_;
  std::vector<Token> tokens_;  // empty for a literal
};

// "; did you mean 'east.h[0-3]'?" for h[0-3], if some name matches behind one of its dots;
// otherwise as suggestion() says of the pattern's text. O(all names x length of the pattern).
[[nodiscard]] std::string suggestion(const NamePattern& pattern,
                                     const std::vector<std::string>& names);

}  // namespace holdfast
