#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "cli/task.hpp"
#include "core/io/plan_json.hpp"

namespace holdfast::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  Policy policy;
  Planned planned;
  double wall_s = 0;
};

std::optional<double> share_of(const Task& task, const Planned& planned) {
  if (planned.predicted <= Time()) {
    return std::nullopt;
  }
  return exact_seconds(task.bound.time()) / exact_seconds(planned.predicted);
}

Json plan_entry(const Task& task, const Row& row) {
  const auto share = share_of(task, row.planned);
  return {{"policy", to_string(row.policy)},
          {"planner", row.planned.planner},
          {"predicted_s", exact_seconds(row.planned.predicted)},
          {"predicted_fraction", share ? Json(*share) : Json(nullptr)},
          {"plan_hash", to_string(hash_of(row.planned.plan))},
          {"stripes", row.planned.plan.stripes.size()},
          {"edges", edges_of(row.planned.plan)},
          {"wall_s", row.wall_s}};
}

std::string table_of(const Task& task, const std::vector<Row>& rows) {
  using Align = Table::Align;
  Table table({{"policy", Align::Left},
               {"planner", Align::Left},
               {"predicted"},
               {"bound"},
               {"share"},
               {"stripes"},
               {"edges"},
               {"planned in"}});
  for (const Row& row : rows) {
    table.add({to_string(row.policy), row.planned.planner, rounded(row.planned.predicted),
               rounded(task.bound.time()), percent(share_of(task, row.planned)),
               fmt::format("{}", row.planned.plan.stripes.size()),
               fmt::format("{}", edges_of(row.planned.plan)), fmt::format("{:.2f} s", row.wall_s)});
  }
  return table.text();
}

// A file that is not a plan is most likely somebody's input.
void refuse_foreign_file(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return;
  }
  try {
    static_cast<void>(read_plan(path));
  } catch (const Error& error) {
    throw Error(ErrorCode::FileUnwritable,
                fmt::format("this is there and is no plan file, so it is not replaced ({}); name "
                            "another with --out",
                            error.message()),
                Place{path, 0, 0, {}, {}});
  }
}

// Policies that can be planned beforehand. One that cannot is left out with a warning, and refused
// where it is alone.
std::vector<Policy> planned_policies(Task& task, const PlanArguments& given) {
  std::vector<Policy> policies;
  for (const Policy policy : task.policies) {
    if (!is_online(policy)) {
      policies.push_back(policy);
      continue;
    }
    task.warnings.push_back(
        fmt::format("policy '{0}' is left out: it chooses sources while the update runs, so that "
                    "there is no plan of it beforehand; see what it does with 'holdfast simulate "
                    "--policy {0}'",
                    to_string(policy)));
  }
  if (policies.empty()) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("policy '{0}' chooses sources while the update runs, so that there is "
                            "no plan of it beforehand; see what it does with 'holdfast simulate "
                            "--policy {0}', or name another policy with --policy",
                            to_string(task.policies.front())),
                Place{given.policy.empty() ? task.loaded.scenario.file : "--policy", 0, 0, {}, {}});
  }
  return policies;
}

}  // namespace

ExitStatus plan(const PlanArguments& arguments) {
  Task task(arguments.scenario, arguments.policy);
  const auto policies = planned_policies(task, arguments);
  print_warnings(task.warnings);
  if (!arguments.out.empty() && policies.size() != 1) {
    throw Error(ErrorCode::BadValue,
                fmt::format("a plan file holds one plan, and {} policies are chosen; name one with "
                            "--policy",
                            policies.size()),
                Place{"--out", 0, 0, {}, {}});
  }
  if (!arguments.out.empty()) {
    refuse_foreign_file(arguments.out);
  }
  std::vector<Row> rows;
  for (const Policy policy : policies) {
    const auto start = std::chrono::steady_clock::now();
    CheckedPlan checked = make_checked_plan(task, policy, task.loaded.scenario.seed.value_or(0));
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    if (!checked.refused.empty()) {
      print_refused(policy, checked.refused);
      return ExitStatus::Failed;
    }
    rows.push_back({policy, std::move(checked.planned), wall.count()});
  }
  if (!arguments.out.empty()) {
    write_plan(arguments.out,
               make_plan_file(rows.front().planned.plan, task.update.demand, task.loaded.topology));
  }
  if (!arguments.json) {
    print(heading(task) + table_of(task, rows));
    return ExitStatus::Done;
  }
  Json json = plan_summary_json(task.context());
  json["plans"] = Json::array();
  for (const Row& row : rows) {
    json["plans"].push_back(plan_entry(task, row));
  }
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return ExitStatus::Done;
}

}  // namespace holdfast::cli
