// Alternate parents: whom a worker turns to by itself when its parent in a stripe is lost.
//
// In each stripe everybody who gets it is put in line: holders, then breadth first down the tree.
// Parents and alternates come before the child, so that whoever turns to an alternate, and however
// many do at once, nobody waits in a circle. Of those before the child some are looked at (its
// grandparent, who came last in its host, rack and datacenter, and some anywhere) and the best is
// taken: not in the parent's host, which may have died with it; in the child's datacenter (where
// the parent brought the stripe over a WAN one of its children does then, and the others turn to
// that one); fed by somebody else than the parent; not in the parent's rack; chosen by few others;
// near. Who comes first below the only holder has none.
#pragma once

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

// Sets the alternate of each edge; nothing else changes. The plan must have trees (what the checker
// accepts); workers that may not serve are nobody's alternate. Deterministic. O(edges + workers +
// holders of each stripe).
void choose_alternates(Plan& plan, const Demand& demand, const Topology& topology);

// A path from an alternate to a child that reads over `planned` otherwise: inside the host where
// both are in one and joined, else into the planned NIC (or the child's nearest) from the nearest
// NIC of the alternate that is joined to it. Default (invalid ports) if nothing joins them.
// O(NICs of the two x hops).
[[nodiscard]] Path path_to_alternate(const Router& router, NodeId alternate, NodeId child,
                                     const Path& planned);

}  // namespace holdfast
