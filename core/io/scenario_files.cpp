#include "core/io/scenario_files.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/io/safetensors.hpp"
#include "core/io/text_file.hpp"
#include "core/io/topology_reader.hpp"
#include "core/weights/presets.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

std::string beside(const std::string& scenario, const std::string& path) {
  return (fs::path(scenario).parent_path() / path).lexically_normal().string();
}

// Runs `read`; what is wrong with the file as such is reported where the scenario names it.
template <class Read>
auto at_place(const Word& word, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    const bool missing =
        error.code() == ErrorCode::FileNotFound || error.code() == ErrorCode::FileUnreadable;
    if (missing || to_string(error.place()).empty()) {
      const std::string file = error.place().file.empty() ? "" : error.place().file + ": ";
      throw Error(error.code(), file + error.message(), word.place);
    }
    throw;
  }
}

Manifest load_model(const ScenarioModel& model, const std::string& scenario) {
  return at_place(model.value, [&] {
    return model.source == ModelSource::Preset
               ? preset_manifest(model.value.text)
               : read_safetensors(beside(scenario, model.value.text));
  });
}

std::vector<TraceRow> load_trace(const Scenario& scenario) {
  if (!scenario.workload || !scenario.workload->members || !scenario.workload->members->trace) {
    return {};
  }
  const Word& word = *scenario.workload->members->trace;
  return at_place(word, [&] {
    const std::string path = beside(scenario.file, word.text);
    return parse_spot_trace(read_text_file(path, kMostTraceBytes), path);
  });
}

}  // namespace

LoadedScenario load_scenario(const std::string& path) {
  const std::string text = read_text_file(path, kMostScenarioBytes);
  Scenario scenario = parse_scenario(text, path);
  Topology topology = at_place(scenario.topology,
                               [&] { return read_topology(beside(path, scenario.topology.text)); });
  if (!scenario.other_traffic.empty()) {
    topology = without_other_traffic(topology, scenario.other_traffic, &scenario.warnings);
  }
  Manifest manifest = load_model(scenario.model, path);
  std::vector<TraceRow> trace = load_trace(scenario);
  return {std::move(scenario), CanonicalHasher().add(std::string_view(text)).finish(),
          std::move(topology), std::move(manifest), std::move(trace)};
}

}  // namespace holdfast
