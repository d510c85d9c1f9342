// Bounds of workers that have a class to themselves in their host.
//
// Only who wants a block may pass it on. Where nobody else in a worker's host holds or passes on a
// class (each GPU of a tensor-parallel replica has its own shard), NVLink brings that class to the
// worker from nobody: all of it comes over its other links, and from a holder in that position all
// of it leaves over them. Flows that merge all classes of a sink do not see this.
#pragma once

#include "core/plan/bound_demand.hpp"
#include "core/plan/bound_latency.hpp"
#include "core/plan/bound_result.hpp"

namespace holdfast::bound {

// O(sum over classes of holders and receivers + links of these workers).
void offer_lone_shards(const DemandIndex& index, const Latencies& latencies, Result& result);

}  // namespace holdfast::bound
