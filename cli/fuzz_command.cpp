#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/fuzz_jobs.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "core/storm/storm.hpp"
#include "sim/storm_run.hpp"

namespace holdfast::cli {
namespace {

using Json = nlohmann::ordered_json;
using CellMap = std::map<std::pair<std::string, std::string>, std::uint64_t>;

// The failures that are shrunk; more are only listed.
constexpr std::size_t kMostShrunk = 3;  // more take long
constexpr std::uint64_t kMostSeeds = 10'000'000;

SeedRange parse_seeds(const std::string& text) {
  const auto refuse = [&] {
    return Error(ErrorCode::BadValue,
                 fmt::format("'{}' is no range of seeds; write 0..199, or one number", text),
                 Place{"--seeds", 0, 0, {}, {}});
  };
  const auto number = [&](std::string_view part) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size()) throw refuse();
    return value;
  };
  const std::size_t dots = text.find("..");
  const std::string_view whole(text);
  SeedRange seeds;
  seeds.first = number(whole.substr(0, dots));
  seeds.last = dots == std::string::npos ? seeds.first : number(whole.substr(dots + 2));
  if (seeds.last < seeds.first || seeds.last - seeds.first >= kMostSeeds) throw refuse();
  return seeds;
}

double median_wall(const std::vector<SeedResult>& results) {
  std::vector<double> walls;
  for (const SeedResult& result : results) walls.push_back(result.wall_s);
  if (walls.empty()) return 0;
  const auto middle = walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2);
  std::nth_element(walls.begin(), middle, walls.end());
  return *middle;
}

struct CellTable {
  std::string name;
  std::vector<std::string> states;
  std::vector<std::string> events;
  const CellMap* cells;
};

std::vector<CellTable> tables_of(const storm::Cells& cells) {
  return {
      {"coordinator", storm::coordinator_states(), storm::coordinator_events(), &cells.coordinator},
      {"agent", storm::agent_states(), storm::agent_events(), &cells.agent}};
}

std::uint64_t count_of(const CellTable& table, const std::string& state, const std::string& event) {
  const auto found = table.cells->find({state, event});
  return found == table.cells->end() ? 0 : found->second;
}

std::string text_of(const CellTable& cells) {
  std::vector<Table::Column> columns{{cells.name, Table::Align::Left}};
  for (const std::string& state : cells.states) columns.push_back({state});
  Table table(columns);
  std::vector<std::string> missing;
  for (const std::string& event : cells.events) {
    std::vector<std::string> row{event};
    std::string where;
    for (const std::string& state : cells.states) {
      const std::uint64_t count = count_of(cells, state, event);
      row.push_back(count == 0 ? "-" : fmt::format("{}", count));
      if (count != 0) continue;
      where += where.empty() ? "" : ", ";
      where += state;
    }
    table.add(row);
    if (!where.empty()) missing.push_back(fmt::format("{} in {}", event, where));
  }
  std::string text = table.text();
  if (missing.empty()) return text;
  std::string list = "never reached: ";
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (i > 0) list += "; ";
    list += missing[i];
  }
  return text +
         wrapped(list + " (rare, not impossible: what is late or comes twice meets any state)") +
         "\n";
}

Json json_of(const CellTable& cells) {
  Json json{{"states", cells.states}, {"events", cells.events}, {"counts", Json::array()}};
  for (const std::string& event : cells.events) {
    Json row = Json::array();
    for (const std::string& state : cells.states) row.push_back(count_of(cells, state, event));
    json["counts"].push_back(std::move(row));
  }
  return json;
}

struct Failure {
  SeedResult result;
  std::string recipe;  // the smallest that fails alike
};

std::vector<Failure> failures_of(const FuzzRun& run, bool shrinks, Progress& progress) {
  std::vector<Failure> failures;
  for (const SeedResult& result : run.results) {
    if (result.rule.empty()) continue;
    Failure failure{result, fmt::format("seed={}", result.seed)};
    if (shrinks && result.rule != "crash" && failures.size() < kMostShrunk) {
      progress.show(fmt::format("shrinking seed {}", result.seed), 0);
      const auto on_its_wire = [](const storm::Recipe& part) {
        return sim::storm_on_its_wire(part);
      };
      storm::Recipe recipe;
      recipe.seed = result.seed;
      failure.recipe = to_string(storm::shrink(on_its_wire(recipe), on_its_wire).recipe);
    }
    failures.push_back(std::move(failure));
  }
  progress.clear();
  return failures;
}

void print_run(const FuzzRun& run, const std::vector<Failure>& failures, double wall, bool cells) {
  std::uint64_t steps = 0;
  std::uint64_t calls = 0;
  std::uint64_t ok = 0;
  for (const SeedResult& result : run.results) {
    steps += result.steps;
    calls += result.calls;
    ok += result.calls_ok;
  }
  if (cells) {
    for (const CellTable& table : tables_of(run.cells)) print(text_of(table) + "\n");
  }
  for (const Failure& failure : failures) {
    print(
        fmt::format("seed {} breaks '{}' at {:.6f} s: {}\n  holdfast fuzz --story --replay '{}'\n",
                    failure.result.seed, failure.result.rule, failure.result.at_s,
                    failure.result.text, failure.recipe));
  }
  print(fmt::format(
      "{} seeds, {} failed; {} steps; {} calls, {} Ok; {:.1f} s, median {:.3f} s a "
      "seed\n",
      run.results.size(), failures.size(), steps, calls, ok, wall, median_wall(run.results)));
}

void print_json(const FuzzRun& run, const std::vector<Failure>& failures, double wall) {
  Json json{{"seeds", run.results.size()},
            {"failed", failures.size()},
            {"wall_s", wall},
            {"median_s", median_wall(run.results)},
            {"failures", Json::array()},
            {"cells", Json::object()}};
  for (const Failure& failure : failures) {
    json["failures"].push_back({{"seed", failure.result.seed},
                                {"rule", failure.result.rule},
                                {"text", failure.result.text},
                                {"at_s", failure.result.at_s},
                                {"recipe", failure.recipe}});
  }
  for (const CellTable& table : tables_of(run.cells)) json["cells"][table.name] = json_of(table);
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// One run, told.
ExitStatus replay(const FuzzArguments& arguments, const storm::Recipe& recipe) {
  std::vector<std::string> story;
  const storm::Outcome outcome = sim::storm_on_its_wire(recipe, arguments.story ? &story : nullptr);
  if (arguments.json) {
    Json json{{"recipe", to_string(recipe)},
              {"trace", fmt::format("{:016x}", outcome.trace)},
              {"steps", outcome.steps},
              {"rule", outcome.violation ? Json(outcome.violation->rule) : Json(nullptr)},
              {"text", outcome.violation ? Json(outcome.violation->text) : Json(nullptr)},
              {"story", story}};
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    for (const std::string& line : story) print(line + "\n");
    print(fmt::format("{}: {} steps until {:.6f} s, {} calls, {} Ok, trace {:016x}\n",
                      to_string(recipe), outcome.steps, outcome.ended.seconds(), outcome.calls,
                      outcome.calls_ok, outcome.trace));
    if (outcome.violation) {
      print(fmt::format("breaks '{}' at {:.6f} s: {}\n", outcome.violation->rule,
                        outcome.violation->at.seconds(), outcome.violation->text));
    }
  }
  return outcome.violation ? ExitStatus::Failed : ExitStatus::Done;
}

}  // namespace

ExitStatus fuzz(const FuzzArguments& arguments) {
  if (arguments.replay) {
    const Parsed<storm::Recipe> recipe = storm::parse_recipe(*arguments.replay);
    if (!recipe) throw Error(ErrorCode::BadValue, recipe.error(), Place{"--replay", 0, 0, {}, {}});
    return replay(arguments, *recipe);
  }
  const SeedRange seeds = parse_seeds(arguments.seeds);
  if (arguments.story) {
    if (seeds.first != seeds.last) {
      throw Error(ErrorCode::BadValue, "a story is of one seed; write --seeds N or --replay",
                  Place{"--story", 0, 0, {}, {}});
    }
    storm::Recipe recipe;
    recipe.seed = seeds.first;
    return replay(arguments, recipe);
  }
  Progress progress;
  const auto start = std::chrono::steady_clock::now();
  const double count = static_cast<double>(seeds.last - seeds.first) + 1;
  double heard = 0;
  bool failed = false;
  const FuzzRun run = run_seeds(seeds, arguments.jobs, [&](const SeedResult& result) {
    progress.show("seeds", ++heard / count);
    failed = failed || !result.rule.empty();
    return !(arguments.first && failed);
  });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const std::vector<Failure> failures = failures_of(run, !arguments.first, progress);
  if (arguments.json) {
    print_json(run, failures, wall.count());
  } else {
    print_run(run, failures, wall.count(), arguments.cells);
  }
  return failures.empty() ? ExitStatus::Done : ExitStatus::Failed;
}

}  // namespace holdfast::cli
