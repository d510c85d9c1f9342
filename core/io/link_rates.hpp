// The key `stream_cap`, which several sections of a topology file have.
#pragma once

#include <fmt/format.h>

#include <optional>

#include "core/io/yaml_document.hpp"

namespace holdfast {

// Nothing if the key is not there; NoEffect if the cap is not below the link's own capacity.
[[nodiscard]] inline std::optional<Rate> read_stream_cap(YamlMap& map, Rate capacity) {
  const auto value = map.find("stream_cap");
  if (!value) return std::nullopt;
  const Rate cap = value->rate(Zero::Refused);
  if (cap >= capacity) {
    value->refuse(ErrorCode::NoEffect,
                  fmt::format("one stream cannot get more than the link's {} anyway; leave it out "
                              "or write less",
                              to_string(capacity)));
  }
  return cap;
}

}  // namespace holdfast
