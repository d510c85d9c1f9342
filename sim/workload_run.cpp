#include "sim/workload_run.hpp"

#include "sim/run_in_child.hpp"
#include "sim/workload_codec.hpp"
#include "sim/workload_driver.hpp"

namespace holdfast::sim {

WorkloadOutcome run_workload(const Topology& topology, const ServiceSetup& setup,
                             const WorkloadRun& run, WeightService& service,
                             const std::function<void(double)>& progress) {
  return WorkloadDriver(topology, setup, run, service, progress).run();
}

WorkloadOutcome simulate_workload(const Topology& topology, const ServiceSetup& setup,
                                  const WorkloadRun& run, const MakeService& make,
                                  const std::function<void(double)>& progress) {
  return decode_outcome(run_in_a_child(progress, [&](const ProgressFunction& report) {
    const std::unique_ptr<WeightService> service = make();
    return encode_outcome(run_workload(topology, setup, run, *service, report));
  }));
}

}  // namespace holdfast::sim
