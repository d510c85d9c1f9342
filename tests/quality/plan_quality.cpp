// How close plans come to the bound: one table over the shipped topologies, models and policies.
//
//   build/release/plan_quality [--blocks 1024,256] [--quick] [--json FILE]
//
// Every row is a simulation of one update: all receivers ask at once, in place, verification on.
// The block size is the model's bytes / 8 / blocks. `auto` and `hierarchical` run at each of the
// block counts given, the other policies at 64. `--quick` leaves out what takes more than a few
// seconds.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/io/results.hpp"
#include "core/io/run_figures.hpp"
#include "core/io/scenario.hpp"
#include "core/io/scenario_update.hpp"
#include "core/io/topology_reader.hpp"
#include "core/plan/bound.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/planner.hpp"
#include "core/weights/presets.hpp"
#include "sim/simulation.hpp"

namespace holdfast {
namespace {

struct Case {
  std::string name;
  std::string topology;
  std::string model;
  std::uint32_t tensor_parallel;
  std::string holders;    // the `place` of the group that holds the version
  std::string receivers;  // the `place` of the group that wants it
};

// Holders are the first host (TP=8) or GPU (TP=1); four of them are the first four hosts, or for
// TP=1 the first four GPUs of one host ("packed") or the first GPU of four hosts ("spread").
std::vector<Case> cases() {
  const std::string large = "llama-3.1-70b";
  const std::string medium = "qwen2.5-32b";
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const std::string& file, const std::string& model,
                       std::uint32_t tp, const std::string& holders, const std::string& receivers) {
    all.push_back({name, file, model, tp, holders, receivers});
  };
  const auto hosts = [](const std::string& list) { return "{hosts: [" + list + "]}"; };
  const auto gpus = [](const std::string& list) { return "{gpus: [" + list + "]}"; };
  struct Cluster {
    const char* label;
    const char* file;
    const char* prefix;     // of the first datacenter's hosts
    const char* elsewhere;  // further receivers
    int hosts;              // of the first datacenter
  };
  for (const Cluster& c : {Cluster{"16 hosts", "h100-16-hosts", "", "", 16},
                           Cluster{"128 hosts", "rail-128-hosts-200g", "", "", 128},
                           Cluster{"2 datacenters", "two-datacenters", "dc0.", ", dc1", 16}}) {
    const std::string p = c.prefix;
    const auto range = [&](int first) {
      return fmt::format("'{}h[{}-{}]'", p, first, c.hosts - 1);
    };
    const std::string far = c.elsewhere;
    const std::string far_gpus = far.empty() ? "" : ", 'dc1.h*.gpu*'";
    add(fmt::format("{}, 70B TP=8, 1 holder", c.label), c.file, large, 8, hosts(p + "h0"),
        hosts(range(1) + far));
    add(fmt::format("{}, 70B TP=8, 4 holders", c.label), c.file, large, 8,
        hosts(fmt::format("'{}h[0-3]'", p)), hosts(range(4) + far));
    add(fmt::format("{}, 32B TP=1, 1 holder", c.label), c.file, medium, 1,
        gpus("'" + p + "h0.gpu0'"),
        gpus(fmt::format("'{0}h0.gpu[1-7]', '{0}h[1-{1}].gpu*'{2}", p, c.hosts - 1, far_gpus)));
    add(fmt::format("{}, 32B TP=1, 4 holders packed", c.label), c.file, medium, 1,
        gpus(fmt::format("'{}h0.gpu[0-3]'", p)),
        gpus(fmt::format("'{0}h0.gpu[4-7]', '{0}h[1-{1}].gpu*'{2}", p, c.hosts - 1, far_gpus)));
    add(fmt::format("{}, 32B TP=1, 4 holders spread", c.label), c.file, medium, 1,
        gpus(fmt::format("'{}h[0-3].gpu0'", p)),
        gpus(fmt::format("'{0}h[0-3].gpu[1-7]', '{0}h[4-{1}].gpu*'{2}", p, c.hosts - 1, far_gpus)));
  }
  add("1 host, 32B TP=1, 1 holder", "h100-1-host", medium, 1, gpus("h0.gpu0"),
      gpus("'h0.gpu[1-7]'"));
  add("1 host, 32B TP=1, 4 holders", "h100-1-host", medium, 1, gpus("'h0.gpu[0-3]'"),
      gpus("'h0.gpu[4-7]'"));
  add("1 host, 70B TP=8, from host memory", "h100-1-host", large, 8, "{host_memory: [h0.mem]}",
      hosts("h0"));
  return all;
}

std::string scenario_text(const Case& c, std::uint32_t blocks) {
  return fmt::format(
      "format: 1\nname: quality\nteaches: plan quality\ntopology: {}.yaml\n"
      "model: {{preset: {}}}\nlayouts:\n  tp: {{tensor_parallel: {}}}\n"
      "groups:\n  holder: {{place: {}, layout: tp, role: trainer}}\n"
      "  receiver: {{place: {}, layout: tp, role: rollout}}\n"
      "holders: [holder]\nupdate: {{receivers: [receiver], destination: in_place}}\n"
      "options: {{blocks_per_eighth: {}}}\nverify: true\n",
      c.topology, c.model, c.tensor_parallel, c.holders, c.receivers, blocks);
}

struct Row {
  std::string name;
  std::string policy;
  std::string planner;
  std::uint32_t blocks = 0;
  Time makespan;
  Time bound;
  Time predicted;
  double share = 0;
  double stall_share = 0;
  double plan_s = 0;
  double simulate_s = 0;
  std::uint64_t deliveries = 0;
  std::string failure;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What one case with one block size has in common for all policies; plans that come out the same
// are simulated once.
class Bench {
 public:
  Bench(const Case& c, std::uint32_t blocks)
      : case_(c),
        blocks_(blocks),
        scenario_(parse_scenario(scenario_text(c, blocks), c.name)),
        topology_(read_topology(std::string(HOLDFAST_SOURCE_DIR) + "/topologies/" + c.topology +
                                ".yaml")),
        manifest_(preset_manifest(c.model)),
        task_(make_update(scenario_, topology_, manifest_)),
        router_(topology_),
        bound_(lower_bound(topology_, task_.demand)) {
    if (const auto wrong = refute(bound_.cut, topology_, task_.demand)) {
      throw std::logic_error("the bound's certificate does not hold: " + *wrong);
    }
  }

  Row run(Policy policy) {
    const auto start = std::chrono::steady_clock::now();
    const Planned planned = make_plan(policy, router_, task_.demand);
    Row row;
    row.plan_s = seconds_since(start);
    row.name = case_.name;
    row.policy = to_string(policy);
    row.planner = planned.planner;
    row.blocks = blocks_;
    row.bound = bound_.time();
    row.predicted = planned.predicted;
    if (const auto bad = check(planned.plan, task_.demand, router_); !bad.empty()) {
      throw std::logic_error("the plan is refused: " + bad.front().message);
    }
    const sim::SimulationResult& result = simulated(planned.plan, row);
    if (result.failure) {
      row.failure = *result.failure;
      return row;
    }
    row.makespan = result.makespan;
    row.deliveries = result.deliveries;
    row.share = row.bound.seconds() / row.makespan.seconds();
    const ResultsContext context{scenario_, topology_, task_, bound_, {}, {}, {}};
    row.stall_share = stall_of(context, result.completed).fraction().value_or(0);
    return row;
  }

 private:
  const sim::SimulationResult& simulated(const Plan& plan, Row& row) {
    const Hash128 hash = hash_of(plan);
    const auto known = results_.find(hash);
    if (known != results_.end()) return known->second;
    const auto start = std::chrono::steady_clock::now();
    sim::SimulationOptions options;
    options.trace = sim::Trace::None;
    const auto& result =
        results_.emplace(hash, sim::simulate(router_, task_.demand, plan, options)).first->second;
    row.simulate_s = seconds_since(start);
    return result;
  }

  Case case_;
  std::uint32_t blocks_;
  Scenario scenario_;
  Topology topology_;
  Manifest manifest_;
  UpdateTask task_;
  Router router_;
  Bound bound_;
  std::map<Hash128, sim::SimulationResult> results_;
};

void print(const Row& row) {
  if (!row.failure.empty()) {
    fmt::print("{:<40} {:<13} {:>5}  failed: {}\n", row.name, row.policy, row.blocks, row.failure);
    return;
  }
  fmt::print("{:<40} {:<13} {:>5}  {:>6.4f} {:>6.4f}  {:>9} {:>9} {:>7.4f} {:>6.2f} {:>7.1f}  {}\n",
             row.name, row.policy, row.blocks, row.share, row.stall_share, rounded(row.makespan),
             rounded(row.bound), row.predicted.seconds() / row.makespan.seconds(), row.plan_s,
             row.simulate_s, row.planner);
  std::cout << std::flush;
}

nlohmann::ordered_json to_json(const Row& row) {
  return {{"case", row.name},
          {"policy", row.policy},
          {"planner", row.planner},
          {"blocks_per_eighth", row.blocks},
          {"bound_fraction", row.share},
          {"stall_fraction", row.stall_share},
          {"makespan_s", row.makespan.seconds()},
          {"bound_s", row.bound.seconds()},
          {"predicted_s", row.predicted.seconds()},
          {"deliveries", row.deliveries},
          {"plan_wall_s", row.plan_s},
          {"simulate_wall_s", row.simulate_s},
          {"failure", row.failure}};
}

int run(int argc, char** argv) {
  std::vector<std::uint32_t> counts{1024, 256};
  bool quick = false;
  std::string json_file;
  std::string only;
  CLI::App app("Share of the bound that plans reach, over the shipped topologies");
  app.add_option("--blocks", counts, "blocks an eighth of the model, for auto and hierarchical")
      ->delimiter(',');
  app.add_flag("--quick", quick, "leave out what takes more than a few seconds");
  app.add_option("--only", only, "cases whose name contains this");
  app.add_option("--json", json_file, "write the rows to this file as well");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<40} {:<13} {:>5}  {:>6} {:>6}  {:>9} {:>9} {:>7} {:>6} {:>7}  {}\n", "case",
             "policy", "block", "bound", "stall", "makespan", "bound", "predict", "plan s", "sim s",
             "planner");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto run_policies = [&](const Case& c, std::uint32_t blocks,
                                const std::vector<Policy>& policies) {
    if (quick && c.name.rfind("128", 0) == 0 && blocks > 256) return;
    if (quick && c.tensor_parallel == 1 && c.name.rfind("128", 0) == 0) return;
    Bench bench(c, blocks);
    for (const Policy policy : policies) {
      const Row row = bench.run(policy);
      print(row);
      rows.push_back(to_json(row));
    }
  };
  for (const Case& c : cases()) {
    if (c.name.find(only) == std::string::npos) continue;
    for (const std::uint32_t blocks : counts) {
      run_policies(c, blocks, {Policy::Auto, Policy::Hierarchical});
    }
    constexpr std::uint32_t kBaselineBlocks = 64;
    run_policies(c, kBaselineBlocks, {Policy::Star, Policy::Chain, Policy::TwoTree});
  }
  if (!json_file.empty()) std::ofstream(json_file) << rows.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  try {
    return holdfast::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "plan_quality: error: " << e.what() << '\n';
    return 1;
  }
}
