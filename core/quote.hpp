// Names from files and scenarios, made safe to print in a message.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// 'text' in single quotes. Escaped (\n, \x1b, ...) are control characters, those that turn the
// direction of text, quotes, backslashes and bytes that are not well-formed UTF-8; what is longer
// than `most` bytes is cut and ends in "...". O(most).
[[nodiscard]] std::string quote(std::string_view text, std::size_t most = 100);

}  // namespace holdfast
