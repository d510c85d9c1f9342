// Alternate parents: whom a worker turns to by itself when its parent in a stripe is lost.
#pragma once

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

// A path from an alternate to a child that reads over `planned` otherwise: inside the host where
// both are in one and joined, else into the planned NIC (or the child's nearest) from the nearest
// NIC of the alternate that is joined to it. Default (invalid ports) if nothing joins them.
// O(NICs of the two x hops).
[[nodiscard]] Path path_to_alternate(const Router& router, NodeId alternate, NodeId child,
                                     const Path& planned);

}  // namespace holdfast
