#include "core/io/exact_decimal.hpp"

#include <fmt/format.h>

namespace holdfast {

std::string exact_decimal(std::int64_t value, int digits) {
  std::uint64_t scale = 1;
  for (int i = 0; i < digits; ++i) {
    scale *= 10;
  }
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::string text = fmt::format("{}{}", negative ? "-" : "", size / scale);
  const std::uint64_t rest = size % scale;
  if (rest != 0) {
    std::string fraction = fmt::format("{:0{}}", rest, digits);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += '.';
    text += fraction;
  }
  return text;
}

std::string bin_edge(Time end, std::size_t b, std::size_t bins) {
  // Quotient and rest apart, so that nothing overflows.
  const auto n = static_cast<std::int64_t>(bins);
  const auto k = static_cast<std::int64_t>(b);
  const std::int64_t whole = end.picoseconds() / n;
  const std::int64_t rest = end.picoseconds() % n;
  return exact_decimal(whole * k + rest * k / n, 12);
}

}  // namespace holdfast
