#include "cli/task.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "core/io/printable.hpp"
#include "core/io/workload_figures.hpp"

namespace holdfast::cli {
namespace {

std::optional<Deployment> deployment_of(const LoadedScenario& loaded, bool any) {
  if (!is_more_than_an_update(loaded.scenario)) return std::nullopt;
  if (!any) refuse_more_than_an_update(loaded.scenario);
  return make_deployment(loaded.scenario, loaded.topology, loaded.manifest);
}

UpdateTask update_of(const LoadedScenario& loaded, const std::optional<Deployment>& deployment) {
  return deployment ? task_of(*deployment, loaded.scenario, loaded.topology, loaded.manifest)
                    : make_update(loaded.scenario, loaded.topology, loaded.manifest);
}

}  // namespace

ResultsContext Task::context() const {
  return {loaded.scenario, loaded.topology, update, bound, loaded.hash, demand_hash, warnings};
}

Task::Task(const std::string& scenario, const std::string& policy, bool any)
    : loaded(load_scenario(scenario)),
      policies(chosen_policies(policy, loaded.scenario)),
      deployment(deployment_of(loaded, any)),
      update(update_of(loaded, deployment)),
      router(loaded.topology),
      bound(lower_bound(loaded.topology, update.demand)),
      demand_hash(hash_of(update.demand)),
      warnings(loaded.scenario.warnings) {
  const std::vector<std::string> idle = idle_options(loaded.scenario, policies);
  warnings.insert(warnings.end(), idle.begin(), idle.end());
  warnings.insert(warnings.end(), update.warnings.begin(), update.warnings.end());
  if (bound.time() == Time::never()) {
    const std::vector<WorkerId>& cut_off = bound.cut.receivers;
    const std::string name =
        cut_off.empty()
            ? bound.cut.sink
            : loaded.topology.node(update.demand.workers[cut_off.front().index()].node).name;
    throw Error(ErrorCode::BadTopology,
                fmt::format("nothing that is up joins '{}' to a holder of what it is to receive "
                            "(or it would take more than 106 days); repair the topology or take "
                            "it out of the receivers",
                            name),
                loaded.scenario.update.place);
  }
  if (const auto wrong = refute(bound.cut, loaded.topology, update.demand)) {
    throw std::logic_error("the bound's certificate does not hold: " + *wrong);
  }
}

CheckedPlan make_checked_plan(const Task& task, Policy policy, std::uint64_t seed) {
  CheckedPlan result;
  const PlanOptions options{seed, task.loaded.scenario.options.objective,
                            task.loaded.scenario.baselines.nccl.algorithm};
  result.planned = make_plan(policy, task.router, task.update.demand, options);
  result.refused = check(result.planned.plan, task.update.demand, task.router);
  return result;
}

void print_refused(Policy policy, const std::vector<Violation>& refused) {
  constexpr std::size_t kMostLines = 20;
  for (std::size_t i = 0; i < std::min(refused.size(), kMostLines); ++i) {
    print_error(fmt::format("internal error: policy {}: {}: {} [{}]", to_string(policy),
                            refused[i].pointer, refused[i].message, to_string(refused[i].code)));
  }
}

std::uint64_t edges_of(const Plan& plan) {
  std::uint64_t edges = 0;
  for (const Stripe& stripe : plan.stripes) {
    edges += stripe.edges.size();
  }
  return edges;
}

std::string heading(const Task& task) {
  const Scenario& scenario = task.loaded.scenario;
  const Demand& demand = task.update.demand;
  std::size_t receiving = 0;
  for (const Replica& replica : task.update.replicas) {
    receiving += replica.receives ? 1 : 0;
  }
  std::size_t receivers = 0;
  for (const Bytes missing : missing_bytes(demand)) {
    receivers += missing > Bytes() ? 1 : 0;
  }
  std::string text = printable(scenario.name) + "\n";
  if (!scenario.teaches.empty()) {
    text += wrapped(scenario.teaches) + "\n";
  }
  text += "\n";
  text += wrapped(fmt::format(
              "{} of {} to {} workers of {} replicas on {}, in {} blocks of {}; verification {}.",
              rounded(task.update.model_bytes), demand.model, receivers, receiving,
              task.loaded.topology.name(), demand.block_bytes.size(), rounded(demand.block_size),
              demand.verify ? "on" : "off")) +
          "\n";
  text += wrapped(describe_bound(task)) + "\n\n";
  return text;
}

std::string describe_bound(const Task& task) {
  const Cut& cut = task.bound.cut;
  const std::string first =
      cut.channels.empty() ? "" : task.loaded.topology.channel_name(cut.channels.front());
  return fmt::format("No plan takes less than {}: {}.", rounded(cut.time),
                     cut_words(to_string(cut.kind), cut.bytes, sink_of(task.context()), first,
                               cut.channels.size(), cut.capacity));
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "-";
}

}  // namespace holdfast::cli
