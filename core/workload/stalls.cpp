#include "core/workload/stalls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace holdfast {
namespace {

constexpr std::size_t kParts = 3;
constexpr std::size_t kPresence = kParts;

// Something begins (+1) or ends (-1) to cover the group's time.
struct Edge {
  Time at;
  std::size_t what = 0;  // a part, or kPresence
  std::int64_t change = 0;
};

std::vector<Edge> edges_of(const GroupTime& group) {
  std::vector<Edge> edges;
  const auto add = [&](std::size_t what, Time from, Time to) {
    if (to <= from) return;
    edges.push_back({from, what, 1});
    edges.push_back({to, what, -1});
  };
  for (const Interval& present : group.present) add(kPresence, present.from, present.to);
  for (const Wait& wait : group.waits) add(static_cast<std::size_t>(wait.part), wait.from, wait.to);
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  return edges;
}

GpuTime& counter(StallParts& parts, StallPart part) {
  switch (part) {
    case StallPart::Offload:
      return parts.offload;
    case StallPart::Trainer:
      return parts.trainer;
    case StallPart::Rollout:
      break;
  }
  return parts.rollout;
}

}  // namespace

GpuTime StallParts::total() const {
  return {rollout.picoseconds + trainer.picoseconds + offload.picoseconds};
}

StallParts stall_parts(std::span<const GroupTime> groups) {
  StallParts parts;
  for (const GroupTime& group : groups) {
    std::array<std::int64_t, kParts + 1> open{};
    Time since;
    for (const Edge& edge : edges_of(group)) {
      if (open[kPresence] > 0) {
        for (const StallPart part : {StallPart::Offload, StallPart::Trainer, StallPart::Rollout}) {
          if (open[static_cast<std::size_t>(part)] == 0) continue;
          counter(parts, part).add(edge.at - since, group.gpus);
          break;
        }
      }
      open[edge.what] += edge.change;
      since = edge.at;
    }
  }
  return parts;
}

}  // namespace holdfast
