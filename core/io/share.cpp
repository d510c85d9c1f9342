#include "core/io/share.hpp"

#include <string>
#include <string_view>

namespace holdfast {

std::uint32_t read_share(const YamlValue& value, Zero zero) {
  const std::string text = value.text();
  const char* const advice = zero == Zero::Refused
                                 ? "write a share like '50%' or '12.5%', above 0%, at most 100%"
                                 : "write a share like '50%' or '12.5%', between 0% and 100%";
  std::uint64_t whole = 0;
  std::uint64_t scale = 10'000;
  bool point = false;
  bool digits = false;
  if (text.empty() || text.back() != '%') {
    value.refuse(ErrorCode::BadUnit, advice);
  }
  for (const char c : std::string_view(text).substr(0, text.size() - 1)) {
    if (c == '.' && !point && digits) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9' || whole > 100 * 10'000 || (point && scale == 1)) {
      value.refuse(ErrorCode::BadUnit, advice);
    }
    digits = true;
    whole = whole * 10 + static_cast<std::uint64_t>(c - '0');
    if (point) {
      scale /= 10;
    }
  }
  const std::uint64_t share = whole * scale;
  if (!digits || (share == 0 && zero == Zero::Refused) || share > 1'000'000) {
    value.refuse(ErrorCode::BadUnit, advice);
  }
  return static_cast<std::uint32_t>(share);
}

}  // namespace holdfast
