// Manifests of public models, with the true names, shapes and dtypes of their checkpoints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/weights/manifest.hpp"

namespace holdfast {

struct Preset {
  std::string name;    // what a scenario writes: "llama-3.1-70b"
  std::string source;  // where the architecture's numbers come from
};

[[nodiscard]] const std::vector<Preset>& presets();

// Throws Error(UnknownName) with the nearest known preset.
[[nodiscard]] Manifest preset_manifest(std::string_view name);

}  // namespace holdfast
