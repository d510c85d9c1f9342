#include "core/quote.hpp"

#include <fmt/format.h>

#include <iterator>

namespace holdfast {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629, table 3-7 of the
// Unicode standard), 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  if (length < 3) return length;
  const unsigned second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool out_of_range = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || out_of_range ? 0 : length;
}

// Whether a character commands a terminal (C0, DEL, C1) or turns the direction of text (U+200E,
// U+200F, U+202A to U+202E, U+2066 to U+2069), and so could make a message look like another.
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  if (byte(1) == 0x80)
    return byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xaa && byte(2) <= 0xae);
  return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
}

}  // namespace

std::string quote(std::string_view text, std::size_t most) {
  std::string result = "'";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (at + (length == 0 ? 1 : length) > most) break;
    const char c = text[at];
    const bool control = is_control(text.substr(at, length));
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\'' || c == '\\') {
      result += '\\';
      result += c;
    } else if (length == 0 || control) {
      for (std::size_t i = 0; i < (length == 0 ? 1 : length); ++i) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}",
                       static_cast<unsigned>(static_cast<unsigned char>(text[at + i])));
      }
    } else {
      result += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return result + (at < text.size() ? "...'" : "'");
}

}  // namespace holdfast
