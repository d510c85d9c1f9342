// One class seen host by host: who takes part in each host, and through which NICs its blocks may
// enter and leave.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan_space.hpp"

namespace holdfast {

class SlowLinks;

// A NIC and the worker of the class that reads and serves through it.
struct Slot {
  NodeId nic;  // invalid: the host has no NIC, the gateway only spreads inside it
  WorkerId gateway;
  bool slow = false;  // behind a link that the plan treats as an exception
};

struct ClassHost {
  DomainId host;
  std::vector<WorkerId> holders;  // that may serve; in domain order, like the next two
  std::vector<WorkerId> relays;   // receivers that may serve
  std::vector<WorkerId> leaves;   // receivers that may not
  std::vector<WorkerId> slow;     // receivers that a slow link cuts off from their host's others
  std::vector<Slot> slots;        // by rail

  [[nodiscard]] bool serves() const { return !holders.empty() || !relays.empty(); }
  // The slot for a stripe on `rail`, or, where the host has none there, one chosen by `turn`.
  [[nodiscard]] const Slot& slot(const PlanSpace& space, std::uint32_t rail,
                                 std::uint32_t turn) const;
};

struct ClassHosts {
  std::vector<ClassHost> hosts;      // in domain order
  std::vector<std::uint32_t> rails;  // those of the receiving host with most slots, ascending; not
                                     // empty: a class that never leaves its hosts has one a slot
  bool remote = false;               // some host must receive over its NICs

  // O(members log members).
  ClassHosts(const PlanSpace& space, const BlockClass& c);
  ClassHosts(const PlanSpace& space, const BlockClass& c, const SlowLinks& slow);
};

}  // namespace holdfast
