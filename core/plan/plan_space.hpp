// What every planner needs to know of the workers of a demand: where they are, in domain order,
// and which NICs each may call its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

class PlanSpace {
 public:
  // References are kept. O(workers x NICs of a host, plus sorting).
  PlanSpace(const Router& router, const Demand& demand);

  [[nodiscard]] const Router& router() const { return router_; }
  [[nodiscard]] const Topology& topology() const { return router_.topology(); }
  [[nodiscard]] const Demand& demand() const { return demand_; }

  [[nodiscard]] NodeId node(WorkerId w) const { return demand_.workers[w.index()].node; }
  [[nodiscard]] bool may_serve(WorkerId w) const { return demand_.workers[w.index()].may_serve; }
  [[nodiscard]] DomainId host(WorkerId w) const { return hosts_[w.index()]; }
  [[nodiscard]] DomainId around(WorkerId w, Level level) const {
    return topology().around(node(w), level);
  }

  // Position in domain order: datacenter, pod, rack, host, node; each in the order of the file.
  [[nodiscard]] std::uint32_t rank(WorkerId w) const { return ranks_[w.index()]; }
  void sort_by_rank(std::vector<WorkerId>& workers) const;
  // 0: same host, 1: same rack, 2: same pod, 3: same datacenter, 4: farther.
  [[nodiscard]] std::uint32_t distance(WorkerId a, WorkerId b) const;

  // NICs that the worker uses as its own, nearest first: each GPU is given one of its nearest NICs,
  // like GPUs different ones; a NIC that no GPU of the demand was given goes to the nearest worker
  // of its host that has fewest. Who has none then, as the memory beside GPUs that all take part,
  // shares all of them. Empty where the host has no NIC with a link that is up.
  [[nodiscard]] std::span<const NodeId> nics(WorkerId w) const { return nics_[w.index()]; }
  // The NIC is up and some link joins it to the fabric.
  [[nodiscard]] bool leads_out(NodeId nic) const;
  // Position of a NIC among its host's: NICs of one rail have the same.
  [[nodiscard]] std::uint32_t rail(NodeId nic) const { return rails_[nic.index()]; }

 private:
  void place_workers();
  void share_nics();
  void share_nics_of_host(DomainId host, std::span<const WorkerId> workers);

  const Router& router_;
  const Demand& demand_;
  std::vector<DomainId> hosts_;
  std::vector<std::uint32_t> ranks_;
  std::vector<WorkerId> by_rank_;
  std::vector<std::vector<NodeId>> nics_;
  std::vector<std::uint32_t> rails_;  // by node
};

}  // namespace holdfast
