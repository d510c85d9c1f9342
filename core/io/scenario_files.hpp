// A scenario with everything that it refers to, read from files.
#pragma once

#include <string>
#include <vector>

#include "core/io/scenario.hpp"
#include "core/io/scenario_update.hpp"
#include "core/io/spot_trace.hpp"
#include "core/topology/topology.hpp"
#include "core/weights/manifest.hpp"

namespace holdfast {

struct LoadedScenario {
  Scenario scenario;
  Hash128 hash;       // of the scenario file's bytes
  Topology topology;  // what other traffic leaves of it
  Manifest manifest;
  std::vector<TraceRow> trace;  // of an elastic workload that names one
};

// Reads the scenario at `path`; its topology, model and trace are looked for relative to its
// folder. Throws Error with the place in whichever file is wrong; a file that is not there is
// reported at the key that names it.
[[nodiscard]] LoadedScenario load_scenario(const std::string& path);

}  // namespace holdfast
