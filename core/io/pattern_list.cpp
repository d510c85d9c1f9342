#include "core/io/pattern_list.hpp"

#include <utility>

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

}  // namespace holdfast
