#include "core/plan/alternates.hpp"

namespace holdfast {

Path path_to_alternate(const Router& router, NodeId alternate, NodeId child, const Path& planned) {
  const Topology& topology = router.topology();
  const DomainId host = topology.around(child, Level::Host);
  if (host.valid() && host == topology.around(alternate, Level::Host)) {
    const Path path{alternate, child, 0};
    if (router.route(alternate, child, path)) return path;
  }
  const auto into = [&](NodeId nic) {
    for (const NodeId from : router.nics(alternate)) {
      if (from == nic) continue;
      if (!router.between(from, nic, planned.stream).empty()) {
        return Path{from, nic, planned.stream};
      }
    }
    return Path{};
  };
  const NodeId port = planned.destination_port;
  if (port.valid() && topology.node(port).kind == NodeKind::Nic) {
    const Path path = into(port);
    if (path.source_port.valid()) return path;
  }
  for (const NodeId nic : router.nics(child)) {
    const Path path = into(nic);
    if (path.source_port.valid()) return path;
  }
  return {};
}

}  // namespace holdfast
