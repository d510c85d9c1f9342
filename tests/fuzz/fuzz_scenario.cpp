// Feeds text to the scenario reader; what it accepts goes on to a demand on a small machine. No
// file is opened.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/io/scenario_update.hpp"
#include "tests/io/scenario_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const holdfast::Topology topology = holdfast::samples::machine(4, 4);
  static const holdfast::Manifest manifest = holdfast::samples::model();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const holdfast::Scenario scenario = holdfast::parse_scenario(text, "fuzz.yaml");
    const holdfast::Demand demand = holdfast::make_demand(scenario, topology, manifest);
    if (!scenario.other_traffic.empty()) {
      (void)without_other_traffic(topology, scenario.other_traffic);
    }
    if (!scenario.faults.empty()) {
      (void)make_schedule(rules_of(scenario.faults, topology), topology, holdfast::seconds(10), 1);
    }
    if (scenario.workload && scenario.workload->members && scenario.workload->members->process) {
      (void)spot_events(*scenario.workload->members->process, 16, holdfast::seconds(10), 1);
    }
    // What was accepted keeps its promises: this throws past the handler below otherwise.
    validate(demand, topology);
  } catch (const holdfast::Error& error) {
    if (error.code() == holdfast::ErrorCode::BadPlan || error.message().empty()) {
      __builtin_trap();
    }
  }
  return 0;
}
