// Any text either is a topology or is refused with an Error; nothing else may come out. What is
// accepted must be as good as topology.hpp says, and must be readable by those who use it.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "core/io/topology_dot.hpp"
#include "core/io/topology_reader.hpp"
#include "core/io/topology_summary.hpp"
#include "core/topology/router.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const holdfast::Topology& topology) {
  using namespace holdfast;
  require(!render(summarise(topology)).empty());
  require(!to_json(summarise(topology)).dump().empty());
  require(!render_dot(topology).empty());
  for (const Link& link : topology.links()) {
    require(link.a != link.b && link.capacity > Rate(0));
  }
  const Router router(topology);
  std::vector<NodeId> ends;
  for (std::size_t i = 0; i < topology.nodes().size() && ends.size() < 12; ++i) {
    if (is_endpoint(topology.nodes()[i].kind)) ends.push_back(NodeId(i));
  }
  for (const NodeId from : ends) {
    for (const NodeId to : ends) {
      const auto out = router.nics(from);
      const auto in = router.nics(to);
      Path path{from, to, 3};
      if (!out.empty() && !in.empty()) path = {out.front(), in.back(), 3};
      const auto route = router.route(from, to, path);
      if (!route) continue;
      NodeId at = from;
      for (const ChannelId channel : *route) {
        require(topology.tail(channel) == at && topology.usable(channel.link()));
        at = topology.head(channel);
      }
      require(at == to);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A short text can ask for a million nodes; a run that builds them all finds little.
  for (std::size_t digits = 0, i = 0; i < size; ++i) {
    digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
    if (digits > 3 && text.find("count") != std::string_view::npos) return -1;
  }
  try {
    use(holdfast::parse_topology(text, "fuzz.yaml"));
  } catch (const holdfast::Error& error) {
    require(error.place().file == "fuzz.yaml" && !error.message().empty());
  }
  return 0;
}
