// Text from outside, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Control characters, what turns the direction of text, and bytes that are not UTF-8 become \xNN,
// so that a name can neither forge a line nor command a terminal. O(length).
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace holdfast
