#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "core/io/topology_dot.hpp"
#include "core/io/topology_reader.hpp"
#include "core/io/topology_summary.hpp"

namespace holdfast::cli {

ExitStatus show_topology(const TopoArguments& arguments) {
  const Topology topology = read_topology(arguments.file);
  if (arguments.dot) {
    print(render_dot(topology));
    return ExitStatus::Done;
  }
  const TopologySummary summary = summarise(topology);
  if (arguments.json) {
    print(to_json(summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    print(render(summary));
  }
  return ExitStatus::Done;
}

}  // namespace holdfast::cli
