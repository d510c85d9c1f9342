#include "core/plan/class_hosts.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/plan/plan_builder.hpp"
#include "core/plan/slow_links.hpp"

namespace holdfast {
namespace {

// The member with the shortest way to the NIC.
std::optional<WorkerId> nearest(const PlanSpace& space, const std::vector<WorkerId>& members,
                                NodeId nic) {
  std::optional<WorkerId> best;
  std::size_t best_hops = 0;
  for (const WorkerId w : members) {
    const std::size_t hops = space.router().inside(nic, space.node(w)).size();
    if (hops == 0 || (best && hops >= best_hops)) continue;
    best = w;
    best_hops = hops;
  }
  return best;
}

// Takes receivers that a slow link cuts off out of the relays, unless nobody would be left.
void set_slow_apart(ClassHost& host, const SlowLinks& slow) {
  if (slow.empty()) return;
  const auto is_slow = [&](WorkerId w) { return slow.worker(w); };
  const bool all = std::all_of(host.relays.begin(), host.relays.end(), is_slow);
  if (all && host.holders.empty()) return;
  std::copy_if(host.relays.begin(), host.relays.end(), std::back_inserter(host.slow), is_slow);
  std::erase_if(host.relays, is_slow);
}

void add_slots(const PlanSpace& space, ClassHost& host) {
  std::vector<WorkerId> members = host.holders;
  members.insert(members.end(), host.relays.begin(), host.relays.end());
  space.sort_by_rank(members);
  for (const WorkerId w : members) {
    for (const NodeId nic : space.nics(w)) host.slots.push_back({nic, w});
  }
  // The NICs of those who are fed apart stay in use, but not for a whole strand each: it would be
  // one too many for the worker that takes it over.
  for (const WorkerId w : host.slow) {
    for (const NodeId nic : space.nics(w)) {
      if (const auto gateway = nearest(space, members, nic)) {
        host.slots.push_back({nic, *gateway, true});
      }
    }
  }
  // Two members may own the same NIC (eight GPUs on four NICs): each keeps its slot, so that the
  // stripes of a rail take turns between them.
  std::stable_sort(host.slots.begin(), host.slots.end(), [&](const Slot& a, const Slot& b) {
    return space.rail(a.nic) < space.rail(b.nic);
  });
  if (host.slots.empty()) {
    for (const WorkerId w : members) host.slots.push_back({NodeId(), w});
  }
}

}  // namespace

const Slot& ClassHost::slot(const PlanSpace& space, std::uint32_t rail, std::uint32_t turn) const {
  const auto on_rail = [&](const Slot& s) { return s.nic.valid() && space.rail(s.nic) == rail; };
  const auto first = std::find_if(slots.begin(), slots.end(), on_rail);
  if (first == slots.end()) return slots[(rail + turn) % slots.size()];
  const auto end = std::find_if_not(first, slots.end(), on_rail);
  return first[static_cast<std::ptrdiff_t>(turn % static_cast<std::uint32_t>(end - first))];
}

ClassHosts::ClassHosts(const PlanSpace& space, const BlockClass& c)
    : ClassHosts(space, c, SlowLinks(space)) {}

ClassHosts::ClassHosts(const PlanSpace& space, const BlockClass& c, const SlowLinks& slow) {
  std::vector<WorkerId> members = serving_holders(space, c);
  members.insert(members.end(), c.receivers.begin(), c.receivers.end());
  space.sort_by_rank(members);
  for (const WorkerId w : members) {
    const DomainId id = space.host(w);
    if (hosts.empty() || hosts.back().host != id) {
      hosts.emplace_back();
      hosts.back().host = id;
    }
    const bool holds = std::binary_search(c.holders.begin(), c.holders.end(), w);
    auto& list = holds                ? hosts.back().holders
                 : space.may_serve(w) ? hosts.back().relays
                                      : hosts.back().leaves;
    list.push_back(w);
  }
  const ClassHost* reference = nullptr;
  for (ClassHost& host : hosts) {
    if (!host.serves()) continue;
    set_slow_apart(host, slow);
    add_slots(space, host);
    for (Slot& slot : host.slots) slot.slow = slot.slow || slow.slot(slot);
    const bool receives = host.holders.empty();
    remote = remote || receives;
    const bool more = reference == nullptr || host.slots.size() > reference->slots.size();
    if (reference == nullptr || (receives && !reference->holders.empty()) ||
        (receives == reference->holders.empty() && more)) {
      reference = &host;
    }
  }
  for (const Slot& slot : reference->slots) {
    rails.push_back(slot.nic.valid() ? space.rail(slot.nic)
                                     : static_cast<std::uint32_t>(rails.size()));
  }
  if (remote) rails.erase(std::unique(rails.begin(), rails.end()), rails.end());
}

}  // namespace holdfast
