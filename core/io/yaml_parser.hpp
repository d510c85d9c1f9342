// Text to yaml::Tree: the only file pair that knows yaml-cpp.
#pragma once

#include <string>
#include <string_view>

#include "core/io/yaml_document.hpp"

namespace holdfast::yaml {

struct Limits {
  std::size_t bytes = 64'000'000;
  std::size_t depth = 64;
  std::size_t values = 4'000'000;
  std::size_t flow_indicators = 2'000'000;
};

// Throws Error(BadSyntax, Duplicate, LimitExceeded) with the place in `file`; see yaml_document.hpp
// for what is refused. O(length), at most some hundred bytes of memory a value.
[[nodiscard]] Tree parse(std::string_view text, const std::string& file, const Limits& limits = {});

}  // namespace holdfast::yaml
