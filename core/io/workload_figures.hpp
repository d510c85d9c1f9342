// What no plan can beat in a run with many fetches: the bound of each, those of fetches that were
// asked for together, and the bytes that they must move.
//
// A fetch is judged by who held its version when it was asked for, at nominal capacities; who had
// begun to receive it counts as a holder of all of it, and so does host memory from the first copy
// that it kept. A group that asks again for a version of which it has a part is left without a
// bound. So everything here is a lower limit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/deployment.hpp"
#include "core/io/results.hpp"
#include "core/io/scenario_update.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

// A version, or a part of it, in the buffers of a deployment's group.
struct HeldVersion {
  std::uint32_t group = 0;
  Version version;
  Time from;
  Time to;  // never(): to the end
};

// Fills the fetches' bounds in and adds the joint ones; returns the least bytes that the fetches
// move. `memory_from`: by memory of the deployment, when it kept its first block; never().
// FetchRecord::group is a group of the deployment. O(fetches log fetches + distinct sets of holders
// and receivers x a bound).
[[nodiscard]] PayloadBytes add_bounds(const Deployment& deployment, const Topology& topology,
                                      bool serve_from_spot, std::span<const HeldVersion> held,
                                      std::span<const Time> memory_from, WorkloadRecord& record);

// The largest update of a deployment as a task: those who publish hold, those who fetch receive,
// all at once. Its workers have the deployment's numbers; host memory that keeps copies is left
// out.
[[nodiscard]] UpdateTask task_of(const Deployment& deployment, const Scenario& scenario,
                                 const Topology& topology, const Manifest& manifest);

}  // namespace holdfast
