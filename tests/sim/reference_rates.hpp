// Max-min fair rates the simple way, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace holdfast::sim::testing {

// Raises all flows together and fixes those that meet a full link or their cap (no caps: empty).
// O(flows x (links + sum of route lengths)) in the worst case.
inline std::vector<double> reference_rates(const std::vector<std::span<const std::uint32_t>>& flows,
                                           const std::vector<double>& capacity,
                                           const std::vector<double>& caps = {}) {
  constexpr double kRounding = 1e-12;
  std::vector<double> rates(flows.size(), -1);
  std::vector<double> left = capacity;
  for (std::size_t open = flows.size(); open > 0;) {
    std::vector<std::uint32_t> users(capacity.size(), 0);
    double least = std::numeric_limits<double>::max();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0) continue;
      for (const std::uint32_t link : flows[f]) ++users[link];
      if (!caps.empty()) least = std::min(least, caps[f]);
    }
    for (std::size_t l = 0; l < capacity.size(); ++l) {
      if (users[l] != 0) least = std::min(least, left[l] / users[l]);
    }
    std::vector<bool> full(capacity.size(), false);
    for (std::size_t l = 0; l < capacity.size(); ++l) {
      full[l] = users[l] != 0 && left[l] / users[l] <= least * (1 + kRounding);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0) continue;
      const bool capped = !caps.empty() && caps[f] <= least * (1 + kRounding);
      const bool blocked = std::any_of(flows[f].begin(), flows[f].end(),
                                       [&](std::uint32_t link) { return full[link]; });
      if (!capped && !blocked) continue;
      rates[f] = least;
      --open;
      for (const std::uint32_t link : flows[f]) left[link] -= least;
    }
  }
  return rates;
}

}  // namespace holdfast::sim::testing
