// Name patterns in YAML files: one, or a list of them, each with its place.
#pragma once

#include <vector>

#include "core/io/name_pattern.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

struct PlacedPattern {
  NamePattern pattern;
  Place place;
};

// Throws Error(BadValue) at what is no pattern, and at an empty list.
[[nodiscard]] std::vector<PlacedPattern> read_patterns(const YamlValue& value);

}  // namespace holdfast
