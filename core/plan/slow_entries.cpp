#include "core/plan/slow_entries.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace holdfast {
namespace {

// So many hosts on each side of the list are looked at for one that has egress to spare.
constexpr std::size_t kHostsNear = 48;

// A source shares its NIC evenly between those who read from it, whoever needs most: one that has
// two children in a tree gives a third reader a third. The nearest few take turns, so that none of
// them has to give more than that.
template <class Source>
void take_turns(std::vector<Source>& sources, std::size_t sharing) {
  const auto end = static_cast<std::ptrdiff_t>(std::min(sharing, sources.size()));
  if (end > 1) std::rotate(sources.begin(), sources.begin() + 1, sources.begin() + end);
}
constexpr std::size_t kSharing = 4;

}  // namespace

WorkerId SlowEntries::add(StripeId stripe, Bytes bytes, std::span<const WorkerId> insiders,
                          std::span<const Port> sources, std::span<const Port> targets) {
  const auto way = finder_.find(insiders, sources, targets, bytes);
  if (!way) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("no path joins {} to anyone who has its weights",
                            space_.topology().node(space_.node(targets.front().worker)).name));
  }
  builder_.add_edge(stripe, way->child, way->parent, way->path);
  paths_.charge(way->parent, way->child, way->path, bytes);
  return way->child;
}

// Through the NICs of others where its own is slow. All members of a host with holders have every
// stripe, or get it from the holders.
std::vector<Port> SlowEntries::ports_of_holders(const Strand& strand, const ClassHost& host) const {
  std::vector<Port> ports;
  const Slot& own = host.slot(space_, strand.rail, strand.turn);
  if (!own.slow && own.nic.valid()) ports.push_back({own.gateway, own.nic});
  for (const Slot& slot : host.slots) {
    if (!slot.slow && slot.nic.valid()) ports.push_back({slot.gateway, slot.nic});
  }
  for (const WorkerId holder : host.holders) {
    for (const NodeId nic : space_.router().nics(space_.node(holder))) {
      if (space_.leads_out(nic)) ports.push_back({holder, nic});
    }
  }
  return ports;
}

void SlowEntries::feed_from_holders(const Strand& strand, const ClassHost& source,
                                    const Slot& child) {
  const std::vector<Port> sources = ports_of_holders(strand, source);
  const Port target{child.gateway, child.nic};
  for (const StripeId stripe : strand.stripes) {
    static_cast<void>(add(stripe, strand.stripe_bytes, {}, sources, {&target, 1}));
  }
}

// Nearest first: the neighbours in domain order, in the same datacenter if it has any. Without any:
// others, or nobody.
std::vector<Port> SlowEntries::ports_near(const Strand& strand, const ClassHost& host,
                                          std::span<const ClassHost* const> serving,
                                          bool far_too) const {
  const Topology& topology = space_.topology();
  const DomainId datacenter = topology.around(host.host, Level::Datacenter);
  const auto rank = [&](const ClassHost& h) {
    return space_.rank((h.holders.empty() ? h.relays : h.holders).front());
  };
  const std::uint32_t own = space_.rank((host.relays.empty() ? host.slow : host.relays).front());
  const auto middle = std::partition_point(serving.begin(), serving.end(),
                                           [&](const ClassHost* h) { return rank(*h) < own; });
  auto below = static_cast<std::size_t>(middle - serving.begin());
  std::size_t above = below;
  std::vector<Port> near;
  std::vector<Port> far;
  const auto take = [&](const ClassHost& h) {
    if (&h == &host) return;
    auto& list = topology.around(h.host, Level::Datacenter) == datacenter ? near : far;
    if (!h.holders.empty()) {
      const std::vector<Port> ports = ports_of_holders(strand, h);
      list.insert(list.end(), ports.begin(), ports.end());
      return;
    }
    const Slot& slot = h.slot(space_, strand.rail, strand.turn);
    if (slot.nic.valid()) list.push_back({slot.gateway, slot.nic});
  };
  for (std::size_t i = 0; i < kHostsNear; ++i) {
    if (above < serving.size()) take(*serving[above++]);
    if (below > 0) take(*serving[--below]);
  }
  if (!near.empty() || !far_too) return near;
  // Nobody near: whoever is first in the list, however far.
  for (const ClassHost* h : serving) {
    if (far.size() >= kHostsNear) break;
    take(*h);
  }
  return far;
}

std::vector<StripeEntry> SlowEntries::enter(const Strand& strand, const ClassHost& host,
                                            std::span<const ClassHost* const> serving) {
  std::vector<Port> sources = ports_near(strand, host, serving, true);
  std::vector<Port> targets;
  const Slot& own = host.slot(space_, strand.rail, strand.turn);
  if (own.nic.valid()) targets.push_back({own.gateway, own.nic});
  for (const WorkerId relay : host.relays) {
    for (const NodeId nic : space_.router().nics(space_.node(relay))) {
      if (space_.leads_out(nic)) targets.push_back({relay, nic});
    }
  }
  std::vector<StripeEntry> entries;
  for (const StripeId stripe : strand.stripes) {
    const WorkerId gateway = add(stripe, strand.stripe_bytes, {}, sources, targets);
    entries.push_back({stripe, strand.stripe_bytes, gateway, strand.number});
    take_turns(sources, kSharing);
  }
  return entries;
}

void SlowEntries::feed_slow_workers(const Strand& strand, const ClassHost& host,
                                    std::span<const ClassHost* const> serving) {
  if (host.slow.empty()) return;
  std::vector<WorkerId> insiders = host.holders;
  insiders.insert(insiders.end(), host.relays.begin(), host.relays.end());
  for (const WorkerId worker : host.slow) {
    // What the host has does not come over a WAN once more.
    const bool joined = std::any_of(insiders.begin(), insiders.end(), [&](WorkerId insider) {
      return local_path(space_, insider, worker).has_value();
    });
    std::vector<Port> sources = ports_near(strand, host, serving, !joined);
    std::vector<Port> targets;
    for (const NodeId nic : space_.router().nics(space_.node(worker))) {
      if (space_.leads_out(nic)) targets.push_back({worker, nic});
    }
    if (targets.empty()) targets.push_back({worker, NodeId()});
    for (const StripeId stripe : strand.stripes) {
      static_cast<void>(add(stripe, strand.stripe_bytes, insiders, sources, targets));
      take_turns(sources, kSharing);
      take_turns(insiders, insiders.size());
    }
  }
}

}  // namespace holdfast
