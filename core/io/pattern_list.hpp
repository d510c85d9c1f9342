// Name patterns in YAML files: one, or a list of them, each with its place.
#pragma once

#include <string>
#include <string_view>
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

// Throws Error(UnknownName) at the pattern: it names no `what` ("link"), but perhaps one of `known`
// was meant.
[[noreturn]] void refuse_unknown(const PlacedPattern& placed, const char* what,
                                 const std::vector<std::string>& known);

// Tells `warnings`, if given, which numbers of the pattern none of the names that it matched has.
void warn_of_unused(const PlacedPattern& placed, const char* what,
                    const std::vector<std::string_view>& matched,
                    std::vector<std::string>* warnings);

}  // namespace holdfast
