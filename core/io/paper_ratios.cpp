#include "core/io/paper_ratios.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace holdfast {
namespace {

enum class Measure { Stall, FarStall, Fetch };

struct Headline {
  const char* prefix;  // of the scenario's name
  Measure measure;
  const char* what;
  const char* baseline;
  double published;
};

// Which baseline the paper means is read from its text; see the scenarios' assumptions.
constexpr std::array kHeadlines{
    Headline{"paper-standalone", Measure::Stall, "total GPU stall", "nccl", 6.7},
    Headline{"paper-elastic", Measure::Fetch, "mean fetch of a rollout replica", "ucx", 4.8},
    Headline{"paper-cross-dc", Measure::FarStall, "stall of group 'far'", "ucx", 19},
};

std::optional<double> measured(const RunFigures& run, Measure measure) {
  if (run.failure || !run.workload) return std::nullopt;
  const WorkloadFigures& workload = *run.workload;
  if (measure == Measure::Fetch) return workload.fetch_mean_s;
  double sum = 0;
  for (const GroupStall& stall : workload.stalls) {
    if (measure == Measure::FarStall && stall.group != "far") continue;
    sum += stall.rollout_s;
    if (measure == Measure::Stall) sum += stall.trainer_s + stall.offload_s;
  }
  if (sum <= 0) return std::nullopt;
  return sum;
}

// That policy's run of the same scenario file, in this folder rather than in another.
const RunFigures* find_run(std::span<const Results> folders, const Results& like,
                           const std::string& policy) {
  const RunFigures* elsewhere = nullptr;
  for (const Results& folder : folders) {
    if (folder.inputs.scenario != like.inputs.scenario) continue;
    for (const RunFigures& run : folder.runs) {
      if (run.policy != policy) continue;
      if (&folder == &like) return &run;
      if (elsewhere == nullptr) elsewhere = &run;
    }
  }
  return elsewhere;
}

std::string value_of(const Results& results, const std::string& name) {
  for (const auto& [known, value] : results.assumed) {
    if (known == name) return value;
  }
  return "-";
}

std::vector<std::string> axes_of(const std::vector<const Results*>& members) {
  std::vector<std::string> axes;
  for (const auto& assumed : members.front()->assumed) {
    const bool differs = std::any_of(members.begin(), members.end(), [&](const Results* other) {
      return value_of(*other, assumed.first) != assumed.second;
    });
    if (differs) axes.push_back(assumed.first);
  }
  return axes;
}

std::string words_of(const PaperPoint& point, const std::vector<std::string>& axes) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    text += fmt::format("{}{} {}", a == 0 ? "" : ", ", axes[a], point.values[a]);
  }
  return fmt::format("{} ({:.2f}x)", text, *point.ratio);
}

std::string place_of(const PaperSurface& surface) {
  const PaperPoint* below = nullptr;
  const PaperPoint* above = nullptr;
  for (const PaperPoint& point : surface.points) {
    if (!point.ratio) continue;
    if (*point.ratio <= surface.published) below = &point;
    if (*point.ratio >= surface.published && above == nullptr) above = &point;
  }
  const std::string published = fmt::format("the published {}x", surface.published);
  if (below == nullptr && above == nullptr) {
    return fmt::format("no ratio: it takes the policies auto and {} in one scenario",
                       surface.baseline);
  }
  if (surface.axes.empty()) {
    return fmt::format("{} is {} ours, {:.2f}x", published, above == nullptr ? "above" : "below",
                       *(above == nullptr ? below : above)->ratio);
  }
  if (above == nullptr)
    return published + " is above all: the largest is " + words_of(*below, surface.axes);
  if (below == nullptr)
    return published + " is below all: the least is " + words_of(*above, surface.axes);
  return fmt::format("{} lies between {} and {}", published, words_of(*below, surface.axes),
                     words_of(*above, surface.axes));
}

}  // namespace

std::vector<PaperSurface> paper_surfaces(std::span<const Results> folders) {
  std::vector<PaperSurface> surfaces;
  std::vector<std::string> done;
  for (const Results& first : folders) {
    if (std::find(done.begin(), done.end(), first.scenario) != done.end()) continue;
    const auto headline = std::find_if(
        kHeadlines.begin(), kHeadlines.end(),
        [&](const Headline& each) { return first.scenario.rfind(each.prefix, 0) == 0; });
    if (headline == kHeadlines.end()) continue;
    done.push_back(first.scenario);
    std::vector<const Results*> members;
    for (const Results& folder : folders) {
      const bool seen = std::any_of(members.begin(), members.end(), [&](const Results* member) {
        return member->inputs.scenario == folder.inputs.scenario;
      });
      if (folder.scenario == first.scenario && !seen) members.push_back(&folder);
    }
    PaperSurface surface{first.scenario,
                         headline->what,
                         headline->baseline,
                         headline->published,
                         axes_of(members),
                         {},
                         {}};
    for (const Results* member : members) {
      PaperPoint point{member->folder, {}, std::nullopt};
      for (const std::string& axis : surface.axes) point.values.push_back(value_of(*member, axis));
      const RunFigures* ours = find_run(folders, *member, "auto");
      const RunFigures* theirs = find_run(folders, *member, headline->baseline);
      if (ours != nullptr && theirs != nullptr) {
        const auto mine = measured(*ours, headline->measure);
        const auto other = measured(*theirs, headline->measure);
        if (mine && other) point.ratio = *other / *mine;
      }
      surface.points.push_back(std::move(point));
    }
    std::stable_sort(surface.points.begin(), surface.points.end(),
                     [](const PaperPoint& a, const PaperPoint& b) {
                       return a.ratio.value_or(-1) < b.ratio.value_or(-1);
                     });
    surface.place = place_of(surface);
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

}  // namespace holdfast
