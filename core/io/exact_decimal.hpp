// Picoseconds as decimal text, without a detour over floating point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/units.hpp"

namespace holdfast {

// `value` / 10^digits, without trailing zeros: (1500, 3) is "1.5".
[[nodiscard]] std::string exact_decimal(std::int64_t value, int digits);

// Seconds at which the b-th of `bins` equal bins from zero to `end` starts; b = bins is `end`.
[[nodiscard]] std::string bin_edge(Time end, std::size_t b, std::size_t bins);

}  // namespace holdfast
