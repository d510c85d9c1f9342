// Links that a plan treats as exceptions: too slow to carry what every other one of their kind
// carries. Whoever sits behind one is no relay; it is fed apart, over whatever ways are left.
#pragma once

#include <vector>

#include "core/plan/class_hosts.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

class SlowLinks {
 public:
  // None. The space is kept.
  explicit SlowLinks(const PlanSpace& space) : space_(&space) {}
  // Those marked, by link id.
  SlowLinks(const PlanSpace& space, std::vector<bool> slow)
      : space_(&space), slow_(std::move(slow)) {}

  [[nodiscard]] bool empty() const { return slow_.empty(); }

  // A slow link lies between the slot's gateway and the fabric. O(links of the NIC + way to it).
  [[nodiscard]] bool slot(const Slot& slot) const;
  // A slow link other than NVLink lies in the host or leads out of it. O(links of the host).
  [[nodiscard]] bool host(DomainId host) const;
  // A slow link lies between the worker and the other GPUs of its host: its NVLink or, without any,
  // its PCIe link.
  [[nodiscard]] bool worker(WorkerId worker) const;

 private:
  [[nodiscard]] bool slow(LinkId link) const { return slow_[link.index()]; }

  const PlanSpace* space_;
  std::vector<bool> slow_;  // empty: none
};

}  // namespace holdfast
