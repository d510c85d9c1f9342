#include "core/io/printable.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace holdfast {
namespace {

struct Decoded {
  std::uint32_t code = 0;
  std::size_t length = 0;  // zero: not UTF-8
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  const std::size_t length = first >= 0xF0 && first < 0xF5   ? 4
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xC2 && first < 0xE0 ? 2
                                                             : 0;
  if (length == 0 || text.size() < length) {
    return {};
  }
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return {};
    }
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || surrogate || code > 0x10FFFF ? Decoded{} : Decoded{code, length};
}

bool harmless(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
                     code == 0x200E || code == 0x200F;
  const bool breaks = code == 0x2028 || code == 0x2029;
  return !control && !turns && !breaks;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    const std::size_t length = decoded.length == 0 ? 1 : decoded.length;
    if (decoded.length != 0 && harmless(decoded.code)) {
      result.append(text.substr(0, length));
    } else {
      for (std::size_t i = 0; i < length; ++i) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
    }
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace holdfast
