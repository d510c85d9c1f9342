#include "core/io/compare_stall.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace holdfast {
namespace {

constexpr double kClearlyLower = 0.1;
constexpr std::size_t kMostGroups = 3;
constexpr double kWorthNaming = 0.05;  // of all GPU-seconds beyond the bounds

// "5.20 s", or "1.00 s to 5.20 s"; times that look alike are one.
std::string range(Time least, Time most) {
  const std::string from = rounded(least);
  const std::string to = rounded(most);
  return from == to ? from : fmt::format("{} to {}", from, to);
}

std::string group_words(const GroupWait& wait, double all) {
  return fmt::format(
      "'{}' ({}, {} replica{}) is complete after {}, its own bound is {} ({:.0f} % "
      "of the excess)",
      wait.group, wait.role, wait.replicas, wait.replicas == 1 ? "" : "s",
      range(wait.fastest, wait.slowest), range(wait.least_bound, wait.most_bound),
      wait.excess_gpu_s / all * 100);
}

}  // namespace

std::optional<std::string> stall_words(const RunFigures& run) {
  const std::optional<double> share = run.bound_fraction();
  if (!share || !run.stall_fraction || *run.stall_fraction > *share - kClearlyLower) {
    return std::nullopt;
  }
  std::vector<GroupWait> waits = run.detail.waits;
  std::stable_sort(waits.begin(), waits.end(), [](const GroupWait& a, const GroupWait& b) {
    return a.excess_gpu_s > b.excess_gpu_s;
  });
  double all = 0;
  for (const GroupWait& wait : waits) all += wait.excess_gpu_s;
  if (!(all > 0)) return std::nullopt;
  std::string text;
  for (std::size_t g = 0; g < std::min(kMostGroups, waits.size()); ++g) {
    if (waits[g].excess_gpu_s < kWorthNaming * all) break;
    text += (g == 0 ? "" : "; ") + group_words(waits[g], all);
  }
  return fmt::format("GPUs wait {:.1f} times what they must, {} GPU-seconds more: {}",
                     1 / std::max(*run.stall_fraction, 1e-9),
                     all >= 100 ? fmt::format("{:.0f}", all) : fmt::format("{:.3g}", all), text);
}

}  // namespace holdfast
