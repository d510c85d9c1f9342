#include "core/io/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "core/io/compare_inputs.hpp"
#include "core/io/compare_stall.hpp"

namespace holdfast {
namespace {

// "DIR/a/" is "a".
std::string short_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  const std::string name = path.filename().string();
  return name.empty() ? path.parent_path().filename().string() : name;
}

// Policies alone in a single folder, else all with the folder as far as that tells them apart.
void name_runs(Comparison& comparison) {
  std::map<std::string, int> folders;
  for (const Results& results : comparison.folders) ++folders[short_name(results.folder)];
  for (ComparedRun& run : comparison.runs) {
    const std::string& policy = comparison.figures(run).policy;
    const std::string& folder = comparison.folders[run.folder].folder;
    const std::string name = short_name(folder);
    run.label = comparison.folders.size() == 1
                    ? policy
                    : policy + "@" + (name.empty() || folders[name] > 1 ? folder : name);
  }
}

double used(const LinkTraffic& link, Time makespan) {
  return static_cast<double>(link.bytes.count()) /
         (static_cast<double>(link.capacity.bytes_per_second()) * makespan.seconds());
}

void add_links(Comparison& comparison, std::size_t top) {
  std::map<std::string, std::size_t> rows;
  for (const ComparedRun& run : comparison.runs) {
    const RunFigures& figures = comparison.figures(run);
    if (!figures.makespan) continue;
    std::vector<std::pair<double, const LinkTraffic*>> order;
    for (const LinkTraffic& link : figures.links) {
      order.emplace_back(used(link, *figures.makespan), &link);
    }
    const std::size_t count = std::min(top, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first : a.second < b.second;
                      });
    for (std::size_t k = 0; k < count; ++k) {
      if (rows.emplace(order[k].second->link, rows.size()).second) {
        comparison.links.push_back({order[k].second->link, {}});
      }
    }
  }
  for (ComparedLink& row : comparison.links) row.used.resize(comparison.runs.size());
  for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
    const RunFigures& figures = comparison.figures(comparison.runs[r]);
    if (!figures.makespan) continue;
    for (const LinkTraffic& link : figures.links) {
      const auto row = rows.find(link.link);
      if (row != rows.end()) {
        comparison.links[row->second].used[r] = used(link, *figures.makespan);
      }
    }
  }
  const auto most = [](const ComparedLink& row) {
    double greatest = 0;
    for (const auto& share : row.used) greatest = std::max(greatest, share.value_or(0));
    return greatest;
  };
  std::stable_sort(comparison.links.begin(), comparison.links.end(),
                   [&](const ComparedLink& a, const ComparedLink& b) { return most(a) > most(b); });
}

}  // namespace

LinkRange range_of(const ComparedLink& link) {
  LinkRange range;
  for (std::size_t r = 0; r < link.used.size(); ++r) {
    if (!link.used[r]) continue;
    const double share = *link.used[r];
    if (range.runs == 0 || share > range.most) {
      range.busiest = r;
      range.most = share;
    }
    range.least = range.runs == 0 ? share : std::min(range.least, share);
    ++range.runs;
  }
  return range;
}

Comparison compare(std::vector<Results> folders, std::size_t top) {
  Comparison comparison;
  comparison.folders = std::move(folders);
  if (comparison.folders.empty()) return comparison;
  for (std::size_t f = 0; f < comparison.folders.size(); ++f) {
    for (std::size_t r = 0; r < comparison.folders[f].runs.size(); ++r) {
      ComparedRun run;
      run.folder = f;
      run.run = r;
      const RunFigures& figures = comparison.folders[f].runs[r];
      if (figures.workload && !figures.failure) {
        // What limits one update says little of many.
        run.headline = fmt::format("updates of {} in all, at least {}, in a run of {}",
                                   rounded(*figures.makespan), rounded(figures.bound),
                                   rounded(figures.workload->length));
      } else {
        run.limits = limits_of(figures);
        run.headline = headline_of(figures, run.limits);
        run.stall = stall_words(figures);
      }
      comparison.runs.push_back(std::move(run));
    }
  }
  name_runs(comparison);
  comparison.warnings = differences(comparison.folders);
  add_links(comparison, top);
  comparison.paper = paper_surfaces(comparison.folders);
  return comparison;
}

}  // namespace holdfast
