#include "core/io/pattern_list.hpp"

#include <utility>

#include <fmt/format.h>

namespace holdfast {

std::vector<PlacedPattern> read_patterns(const YamlValue& value) {
  std::vector<YamlValue> items;
  if (value.is_list()) {
    items = value.list();
  } else {
    items.push_back(value);
  }
  if (items.empty()) value.refuse(ErrorCode::BadValue, "name at least one");
  std::vector<PlacedPattern> patterns;
  for (const YamlValue& item : items) {
    Parsed<NamePattern> pattern = NamePattern::parse(item.text());
    if (!pattern) item.refuse(ErrorCode::BadValue, pattern.error());
    patterns.push_back({std::move(*pattern), item.place()});
  }
  return patterns;
}

void refuse_unknown(const PlacedPattern& placed, const char* what,
                    const std::vector<std::string>& known) {
  const std::string& text = placed.pattern.text();
  throw Error(
      ErrorCode::UnknownName,
      placed.pattern.literal()
          ? fmt::format("no {} is called '{}'{}", what, text, suggestion(placed.pattern, known))
          : fmt::format("'{}' matches no {}{}", text, what, suggestion(placed.pattern, known)),
      placed.place);
}

void warn_of_unused(const PlacedPattern& placed, const char* what,
                    const std::vector<std::string_view>& matched,
                    std::vector<std::string>* warnings) {
  if (warnings == nullptr) {
    return;
  }
  for (const NamePattern::Unused& unused : placed.pattern.unused(matched)) {
    warnings->push_back(fmt::format("{}: '{}' names more than there is: no {} has {} of '{}'",
                                    to_string(placed.place), placed.pattern.text(), what,
                                    unused.numbers, unused.bracket));
  }
}

}  // namespace holdfast
