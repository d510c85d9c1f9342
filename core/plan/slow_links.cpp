#include "core/plan/slow_links.hpp"

#include <algorithm>

namespace holdfast {

bool SlowLinks::slot(const Slot& slot) const {
  if (empty() || !slot.nic.valid()) return false;
  const Topology& topology = space_->topology();
  for (const Neighbour& next : topology.neighbours(slot.nic)) {
    if (topology.link(next.link).kind == LinkKind::Fabric && slow(next.link)) return true;
  }
  const Route inside = space_->router().inside(space_->node(slot.gateway), slot.nic);
  return std::any_of(inside.begin(), inside.end(),
                     [&](ChannelId channel) { return slow(channel.link()); });
}

bool SlowLinks::host(DomainId host) const {
  if (empty() || !host.valid()) return false;
  const Topology& topology = space_->topology();
  const auto members = topology.members(host);
  return std::any_of(members.begin(), members.end(), [&](NodeId node) {
    const auto links = topology.neighbours(node);
    return std::any_of(links.begin(), links.end(), [&](const Neighbour& next) {
      return topology.link(next.link).kind != LinkKind::NvLink && slow(next.link);
    });
  });
}

bool SlowLinks::worker(WorkerId worker) const {
  if (empty()) return false;
  const Topology& topology = space_->topology();
  bool has_nvlink = false;
  bool slow_nvlink = false;
  bool slow_pcie = false;
  for (const Neighbour& next : topology.neighbours(space_->node(worker))) {
    const bool nvlink = topology.link(next.link).kind == LinkKind::NvLink;
    has_nvlink = has_nvlink || nvlink;
    (nvlink ? slow_nvlink : slow_pcie) |= slow(next.link);
  }
  return has_nvlink ? slow_nvlink : slow_pcie;
}

}  // namespace holdfast
