// Feeds those whom the trees of a plan left out because a slow link lies before them, stripe by
// stripe, over the ways that are loaded least. Whoever is fed here feeds nobody outside its host,
// so that no cycle can arise.
#pragma once

#include <span>
#include <vector>

#include "core/plan/class_hosts.hpp"
#include "core/plan/local_spread.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/strands.hpp"
#include "core/plan/way_finder.hpp"

namespace holdfast {

class SlowEntries {
 public:
  // References are kept.
  SlowEntries(const PlanSpace& space, PathChooser& paths, PlanBuilder& builder, double goal)
      : space_(space), paths_(paths), builder_(builder), finder_(space, paths, goal) {}

  // The edge of a strand from a host with holders whose own slot is slow to the slot of a child.
  void feed_from_holders(const Strand& strand, const ClassHost& source, const Slot& child);

  // The strand's way into a host whose slot is slow. `serving`: the hosts in the strand's tree and
  // those with holders, in domain order; not empty. Returns where each stripe enters.
  std::vector<StripeEntry> enter(const Strand& strand, const ClassHost& host,
                                 std::span<const ClassHost* const> serving);

  // The host's slow workers, each from its host's others or from outside.
  void feed_slow_workers(const Strand& strand, const ClassHost& host,
                         std::span<const ClassHost* const> serving);

 private:
  [[nodiscard]] std::vector<Port> ports_of_holders(const Strand& strand,
                                                   const ClassHost& host) const;
  [[nodiscard]] std::vector<Port> ports_near(const Strand& strand, const ClassHost& host,
                                             std::span<const ClassHost* const> serving,
                                             bool far_too) const;
  [[nodiscard]] WorkerId add(StripeId stripe, Bytes bytes, std::span<const WorkerId> insiders,
                             std::span<const Port> sources, std::span<const Port> targets);

  const PlanSpace& space_;
  PathChooser& paths_;
  PlanBuilder& builder_;
  WayFinder finder_;
};

}  // namespace holdfast
