// Shares in YAML: "12.5%".
#pragma once

#include <cstdint>

#include "core/io/yaml_document.hpp"

namespace holdfast {

// In millionths, from 0 (where allowed) to 1'000'000. Throws Error(BadUnit) at the value for
// anything else: a number without a percent sign, above 100 %, or finer than a millionth.
[[nodiscard]] std::uint32_t read_share(const YamlValue& value, Zero zero);

}  // namespace holdfast
