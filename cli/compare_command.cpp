#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "cli/task.hpp"
#include "core/io/compare.hpp"
#include "core/io/printable.hpp"

namespace holdfast::cli {
namespace {

using Align = Table::Align;

std::string or_dash(const std::optional<Time>& time) {
  return time ? rounded(*time) : "-";
}

std::string heading_of(const Comparison& comparison) {
  std::string text;
  for (const Results& results : comparison.folders) {
    text += wrapped(fmt::format("{}: {}, {} of {} on {}", results.folder, results.scenario,
                                rounded(results.model_bytes), results.model, results.topology)) +
            "\n";
  }
  return text;
}

std::string policies_table(const Comparison& comparison) {
  Table table({{"run", Align::Left},
               {"planner", Align::Left},
               {"makespan"},
               {"bound"},
               {"share"},
               {"stall share"},
               {"predicted"},
               {"into hosts"},
               {"WAN"},
               {"seed"}});
  for (const ComparedRun& compared : comparison.runs) {
    const RunFigures& run = comparison.figures(compared);
    table.add({compared.label, run.planner, run.makespan ? rounded(*run.makespan) : "failed",
               rounded(run.bound), percent(run.bound_fraction()), percent(run.stall_fraction),
               or_dash(run.predicted), rounded(run.moved.nic), rounded(run.moved.wan),
               fmt::format("{}", run.seed)});
  }
  return table.text();
}

// `text` wrapped with `indent` spaces before each line but the first, which has `first`.
std::string hanging(const std::string& first, const std::string& text) {
  constexpr std::size_t kWidth = 100;
  std::string lines = wrapped(text, kWidth - first.size());
  std::string result = first;
  for (const char c : lines) {
    result += c;
    if (c == '\n') result.append(first.size(), ' ');
  }
  return result + "\n";
}

std::string limits_text(const Comparison& comparison) {
  std::string text = "What limits each run\n";
  for (const ComparedRun& compared : comparison.runs) {
    text += hanging(printable(compared.label) + ": ", compared.headline);
    for (const Limit& limit : compared.limits) {
      const std::string part =
          limit.kind == LimitKind::Failure
              ? "  "
              : fmt::format("  {:>7} {:>8}  ", percent(limit.share), rounded(limit.time));
      text += hanging(part, limit.text);
    }
    if (compared.stall)
      text += hanging(fmt::format("  {:>7} {:>8}  ", "stall", ""), *compared.stall);
  }
  return text;
}

std::string times_minimum(Bytes bytes, Bytes minimum) {
  if (minimum == Bytes()) return "-";
  return fmt::format("{:.2f}",
                     static_cast<double>(bytes.count()) / static_cast<double>(minimum.count()));
}

// A row for each run, level and direction.
std::string domains_table(const Comparison& comparison) {
  Table table({{"run", Align::Left},
               {"across", Align::Left},
               {"moved"},
               {"minimum"},
               {"times"},
               {"most loaded", Align::Left},
               {"moved"},
               {"minimum"},
               {"times"},
               {"links busy"}});
  bool any = false;
  for (const ComparedRun& compared : comparison.runs) {
    const RunFigures& run = comparison.figures(compared);
    if (run.workload) continue;  // the minimum is that of one update
    for (const LevelCrossing& crossing : run.detail.crossings) {
      const DomainCrossing& most = crossing.most;
      const Time busy = transfer_time(most.bytes, most.capacity);
      const auto share = run.makespan
                             ? std::optional(exact_seconds(busy) / exact_seconds(*run.makespan))
                             : std::nullopt;
      table.add({compared.label,
                 fmt::format("{} {}s", crossing.direction == Direction::In ? "into" : "out of",
                             to_string(crossing.level)),
                 rounded(crossing.bytes), rounded(crossing.minimum),
                 times_minimum(crossing.bytes, crossing.minimum), most.domain, rounded(most.bytes),
                 most.minimum == Bytes() ? "-" : rounded(most.minimum),
                 times_minimum(most.bytes, most.minimum), percent(share)});
      any = true;
    }
  }
  return any ? "Bytes across the borders of domains, against what any plan moves\n" + table.text()
             : "";
}

// Where a column for each run would be wider than people can read.
std::string link_ranges(const Comparison& comparison) {
  Table table(
      {{"link", Align::Left}, {"busiest in", Align::Left}, {"used"}, {"least"}, {"in runs"}});
  for (const ComparedLink& link : comparison.links) {
    const LinkRange range = range_of(link);
    table.add({link.link, comparison.runs[range.busiest].label, percent(range.most),
               percent(range.least), fmt::format("{}", range.runs)});
  }
  return "Busiest links, by the share of capacity x makespan that they carried, of the runs that "
         "use them\n" +
         table.text();
}

std::string links_table(const Comparison& comparison) {
  constexpr std::size_t kMostColumns = 6;
  if (comparison.links.empty()) return "";
  if (comparison.runs.size() > kMostColumns) return link_ranges(comparison);
  std::vector<Table::Column> columns = {{"link", Align::Left}};
  for (const ComparedRun& run : comparison.runs) columns.push_back({run.label});
  Table table(columns);
  for (const ComparedLink& link : comparison.links) {
    std::vector<std::string> cells = {link.link};
    for (const auto& used : link.used) cells.push_back(percent(used));
    table.add(std::move(cells));
  }
  return "Busiest links, by the share of capacity x makespan that they carried\n" + table.text();
}

std::string paper_text(const Comparison& comparison) {
  std::string text;
  for (const PaperSurface& surface : comparison.paper) {
    text +=
        fmt::format("{}{}: {}, {} over auto; the paper states {}x\n", text.empty() ? "" : "\n",
                    printable(surface.scenario), surface.what, surface.baseline, surface.published);
    std::vector<Table::Column> columns;
    for (const std::string& axis : surface.axes) columns.push_back({axis});
    columns.push_back({"ratio"});
    columns.push_back({"folder", Align::Left});
    Table table(columns);
    for (const PaperPoint& point : surface.points) {
      std::vector<std::string> cells = point.values;
      cells.push_back(point.ratio ? fmt::format("{:.2f}x", *point.ratio) : "-");
      cells.push_back(point.folder);
      table.add(std::move(cells));
    }
    text += table.text() + wrapped(printable(surface.place) + ".") + "\n";
  }
  return text;
}

// A folder twice would only compare a run with itself.
void refuse_twice(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  for (std::size_t a = 0; a < folders.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::error_code ignored;
      if (folders[a] == folders[b] || fs::equivalent(folders[a], folders[b], ignored)) {
        throw Error(ErrorCode::Duplicate, "this folder is named twice; name each once",
                    Place{folders[a], 0, 0, {}, {}});
      }
    }
  }
}

}  // namespace

ExitStatus compare_results(const CompareArguments& arguments) {
  refuse_twice(arguments.folders);
  std::vector<Results> folders;
  for (const std::string& folder : arguments.folders) {
    folders.push_back(read_results(folder));
  }
  const Comparison comparison = compare(std::move(folders), arguments.top);
  print_warnings(comparison.warnings);
  if (arguments.json) {
    print(compare_json(comparison)
              .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n");
    return ExitStatus::Done;
  }
  std::string text = heading_of(comparison);
  for (const std::string& part :
       {policies_table(comparison), limits_text(comparison), domains_table(comparison),
        links_table(comparison), paper_text(comparison)}) {
    if (!part.empty()) text += "\n" + part;
  }
  print(text);
  return ExitStatus::Done;
}

}  // namespace holdfast::cli
