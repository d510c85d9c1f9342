// Feeds text to the reader of spot traces; what it accepts goes on to the seats of a small machine.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/io/spot_trace.hpp"
#include "tests/io/scenario_samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const holdfast::Topology topology = holdfast::samples::machine(4, 4);
  static const std::vector<std::vector<holdfast::NodeId>> seats = [] {
    std::vector<std::vector<holdfast::NodeId>> made;
    for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
      if (topology.nodes()[i].kind == holdfast::NodeKind::Gpu)
        made.push_back({holdfast::NodeId(i)});
    }
    return made;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto rows = holdfast::parse_spot_trace(text, "fuzz.csv");
    const auto events = holdfast::member_events(rows, seats, topology);
    // What was accepted can happen.
    if (holdfast::fault_of(events, std::vector<char>(seats.size(), 0))) __builtin_trap();
  } catch (const holdfast::Error& error) {
    if (error.message().empty() || error.place().line == 0) __builtin_trap();
  }
  return 0;
}
