// Results of several runs side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/io/compare_limits.hpp"
#include "core/io/paper_ratios.hpp"
#include "core/io/results_reader.hpp"

namespace holdfast {

inline constexpr std::uint32_t kCompareFormat = 1;

struct ComparedRun {
  std::string label;       // the policy; "policy@folder" where there are several folders
  std::size_t folder = 0;  // index into Comparison::folders
  std::size_t run = 0;     // index into its runs
  std::vector<Limit> limits;
  std::string headline;
  std::optional<std::string> stall;  // stall_words()
};

// One link direction in every run.
struct ComparedLink {
  std::string link;
  // By run: bytes / (capacity x makespan); nothing where it carried nothing or the run failed.
  std::vector<std::optional<double>> used;
};

// A link's use over all runs in which it carried anything, one at least.
struct LinkRange {
  std::size_t busiest = 0;  // the first run with the greatest share
  double most = 0;
  double least = 0;
  std::size_t runs = 0;
};
[[nodiscard]] LinkRange range_of(const ComparedLink& link);

struct Comparison {
  std::vector<Results> folders;
  std::vector<std::string> warnings;  // what makes runs hard to compare
  std::vector<ComparedRun> runs;      // folder by folder
  std::vector<ComparedLink> links;    // the busiest of each run, the busiest of all first
  std::vector<PaperSurface> paper;    // of scenarios named paper-*

  [[nodiscard]] const RunFigures& figures(const ComparedRun& run) const {
    return folders[run.folder].runs[run.run];
  }
};

// `top`: how many links of each run are shown. Nothing is refused: what differs is said.
// O(links x log links) a run.
[[nodiscard]] Comparison compare(std::vector<Results> folders, std::size_t top);

// For programs: schemas/compare.schema.json.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

}  // namespace holdfast
