// A scenario with everything that it refers to, read from files.
#pragma once

#include <string>

#include "core/io/scenario.hpp"
#include "core/io/scenario_update.hpp"
#include "core/topology/topology.hpp"
#include "core/weights/manifest.hpp"

namespace holdfast {

struct LoadedScenario {
  Scenario scenario;
  Hash128 hash;       // of the scenario file's bytes
  Topology topology;  // what other traffic leaves of it
  Manifest manifest;
};

// Reads the scenario at `path`; its topology and model are looked for relative to its folder.
// Throws Error with the place in whichever file is wrong; a file that is not there is reported at
// the key that names it.
[[nodiscard]] LoadedScenario load_scenario(const std::string& path);

}  // namespace holdfast
