// holdfast: reads the command line and hands over to one subcommand.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "core/io/program_version.hpp"
#include "core/nearest.hpp"

namespace {

using namespace holdfast::cli;

struct Arguments {
  SimulateArguments simulate;
  PlanArguments plan;
  CheckArguments check;
  CompareArguments compare;
  RunArguments run;
  LocalWorkerArguments local_worker;
  TopoArguments topo;
  FuzzArguments fuzz;
};

void add_simulate(CLI::App& app, SimulateArguments& to) {
  CLI::App* command = app.add_subcommand("simulate", "Run a scenario in simulation");
  command->add_option("SCENARIO", to.scenario, "Scenario file (YAML)")->required();
  command->add_option("--policy", to.policy, "Policies, comma-separated, or 'all'");
  command->add_option("--seed", to.seed, "Seed of everything that is drawn")
      ->check([](const std::string& text) {  // CLI11 would wrap it around
        return std::string(text.substr(0, 1) == "-" ? "write 0 or more" : "");
      });
  command->add_option("--out", to.out,
                      "Folder for summary.json, events.jsonl, links.csv, trace.json");
  command->add_option("--trace", to.trace, "Events to record: none, worker or block")
      ->check(CLI::IsMember({"none", "worker", "block"}));
  command->add_flag("--json", to.json, "Print the summary as JSON");
  command->add_flag("--force", to.force, "Trace blocks even of a huge run");
}

void add_plan(CLI::App& app, PlanArguments& to) {
  CLI::App* command = app.add_subcommand("plan", "Plan one update and compare it with the bound");
  command->add_option("SCENARIO", to.scenario, "Scenario file (YAML)")->required();
  command->add_option("--policy", to.policy, "Policies, comma-separated, or 'all'");
  command->add_option("--out", to.out, "File for the plan (JSON); needs a single policy");
  command->add_flag("--json", to.json, "Print the answer as JSON");
}

void add_check(CLI::App& app, CheckArguments& to) {
  CLI::App* command = app.add_subcommand("check", "Accept or refuse a plan file");
  command->add_option("PLAN", to.plan, "Plan file (JSON)")->required();
  command->add_option("--topology", to.topology, "Topology file (YAML)");
  command->add_option("--scenario", to.scenario,
                      "Scenario (YAML) that the plan is for: its topology less other traffic");
  command->add_flag("--json", to.json, "Print the answer as JSON");
}

void add_compare(CLI::App& app, CompareArguments& to) {
  CLI::App* command =
      app.add_subcommand("compare", "Put results side by side and say what limits each run");
  command->add_option("DIR", to.folders, "Folders that simulate --out wrote")->required();
  command->add_option("--top", to.top, "How many links of each run to show")
      ->check(CLI::Range(1, 1'000));
  command->add_flag("--json", to.json, "Print the answer as JSON");
}

void add_run(CLI::App& app, RunArguments& to, LocalWorkerArguments& worker) {
  CLI::App* command = app.add_subcommand("run", "Run a scenario on real workers");
  command->add_option("SCENARIO", to.scenario, "Scenario file (YAML)")->required();
  command->add_option("--policy", to.policy, "Policy that plans");
  command->add_flag("--local", to.local, "Every worker is a process of this machine");
  command->add_option("--transport", to.transport, "What carries the bytes: tcp")
      ->check(CLI::IsMember({"tcp"}));
  command->add_flag("--json", to.json, "Print the answer as JSON");
  command->add_flag("--deliveries", to.deliveries, "List every block's receiver and source in it");
  CLI::App* local = app.add_subcommand("local-worker", "")->group("");
  local->add_option("SCENARIO", worker.scenario)->required();
  local->add_option("WORKER", worker.worker)->required();
  local->add_option("COORDINATOR", worker.coordinator)->required();
}

CLI::App* add_topo(CLI::App& app, TopoArguments& to) {
  CLI::App* command = app.add_subcommand("topo", "Look at topologies");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand("show", "Validate and summarise a topology");
  show->add_option("FILE", to.file, "Topology file (YAML)")->required();
  CLI::Option* json = show->add_flag("--json", to.json, "Print the summary as JSON");
  show->add_flag("--dot", to.dot, "Print a picture for Graphviz's dot")->excludes(json);
  return show;
}

void add_fuzz(CLI::App& app, FuzzArguments& to) {
  CLI::App* command = app.add_subcommand(
      "fuzz", "Run catalog and engine through seeded storms of faults in virtual time");
  CLI::Option* seeds =
      command->add_option("--seeds", to.seeds, "A..B, or one seed")->capture_default_str();
  command
      ->add_option("--replay", to.replay,
                   "A recipe, as printed for a failing seed: seed=N tasks=1-3 faults=- ...")
      ->excludes(seeds);
  command->add_option("--jobs", to.jobs, "Processes")->check(CLI::Range(1, 256));
  command->add_flag("--story", to.story, "Tell what happens in one seed or recipe");
  command->add_flag("--first", to.first, "Stop at the first failing seed, as it is");
  command->add_flag("--cells", to.cells, "Print which state met which event, and which never did");
  command->add_flag("--json", to.json, "Print the answer as JSON");
}

ExitStatus run(const CLI::App& app, const Arguments& arguments) {
  if (app.got_subcommand("simulate")) {
    return simulate(arguments.simulate);
  }
  if (app.got_subcommand("plan")) {
    return plan(arguments.plan);
  }
  if (app.got_subcommand("check")) {
    return check_plan(arguments.check);
  }
  if (app.got_subcommand("compare")) {
    return compare_results(arguments.compare);
  }
  if (app.got_subcommand("run")) {
    return run_scenario(arguments.run);
  }
  if (app.got_subcommand("local-worker")) {
    return local_worker(arguments.local_worker);
  }
  if (app.got_subcommand("fuzz")) {
    return fuzz(arguments.fuzz);
  }
  return show_topology(arguments.topo);
}

// What to say where a word stands in the place of a command and is none; otherwise nothing.
std::string unknown_command(const CLI::App& app) {
  const CLI::App* level = &app;
  while (!level->get_subcommands().empty()) level = level->get_subcommands().front();
  const std::vector<std::string> left = level->remaining();
  std::vector<std::string> known;
  for (const CLI::App* command : level->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  if (left.empty() || left.front().substr(0, 1) == "-" || known.empty()) return {};
  return fmt::format("there is no command '{}'{}", left.front(),
                     holdfast::suggestion(left.front(), known));
}

ExitStatus guarded(int argc, char** argv) {
  CLI::App app("Moves model weights from trainers to rollout GPUs: simulation, plans, bounds",
               "holdfast");
  app.set_version_flag("--version", fmt::format("holdfast {}", holdfast::kProgramVersion));
  app.require_subcommand(1);
  Arguments arguments;
  add_simulate(app, arguments.simulate);
  add_plan(app, arguments.plan);
  add_check(app, arguments.check);
  add_compare(app, arguments.compare);
  add_run(app, arguments.run, arguments.local_worker);
  add_topo(app, arguments.topo);
  add_fuzz(app, arguments.fuzz);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);
      return ExitStatus::Done;
    }
    const std::string unknown = unknown_command(app);
    print_error(unknown.empty() ? fmt::format("{}; see 'holdfast --help'", error.what()) : unknown);
    return ExitStatus::BadInput;
  }
  return run(app, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  ExitStatus status = ExitStatus::Failed;
  try {
    status = guarded(argc, argv);
  } catch (const holdfast::Error& error) {
    print_error(error);
    status = ExitStatus::BadInput;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
  } catch (...) {
    print_error("internal error of an unknown kind");
  }
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (!flushed && status == ExitStatus::Done) {
    print_error("the answer could not be written to its end");
    status = ExitStatus::Failed;
  }
  return static_cast<int>(status);
}
