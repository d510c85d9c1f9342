// Bounds that count every copy, because switches do not copy; and digests.
//
// Copies: each byte delivered to a receiver in a domain D leaves an endpoint of D that may serve,
// or enters D. The same holds one level up for whole domains U inside D: each byte that U wants and
// does not hold leaves another such domain with someone who may serve, or enters D. D is each
// domain, and everything.
#pragma once

#include "core/plan/bound_demand.hpp"
#include "core/plan/bound_latency.hpp"
#include "core/plan/bound_result.hpp"

namespace holdfast::bound {

// `bytes_into`: by domain, the distinct bytes that its receivers want and none of its workers holds
// and may serve. O((nodes + links + receivers) x levels).
void offer_copies(const DemandIndex& index, const DomainCuts& cuts, const Latencies& latencies,
                  const std::vector<std::uint64_t>& bytes_into, Result& result);

// Each worker's missing bytes against its digest rate. O(receivers x classes of each).
void offer_digests(const DemandIndex& index, const Latencies& latencies, Result& result);

}  // namespace holdfast::bound
