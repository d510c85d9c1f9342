#include "core/workload/updates.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast {
namespace {

// An update still being put together.
struct Draft {
  UpdateFigures figures;
  Time own_bound;
};

void take(Draft& draft, const FetchRecord& fetch) {
  UpdateFigures& update = draft.figures;
  update.ended = std::max(update.ended, fetch.ended);
  update.workers += fetch.workers;
  update.in_place = update.in_place && fetch.in_place;
  if (fetch.requested != update.first_request) update.bound_kind = BoundKind::Nominal;
  if (!fetch.completed) {
    ++update.failed;
    return;
  }
  ++update.completed;
  update.last_completion = std::max(update.last_completion.value_or(Time()), fetch.ended);
  draft.own_bound = std::max(draft.own_bound, fetch.requested - update.first_request + fetch.bound);
}

}  // namespace

const char* to_string(BoundKind kind) {
  return kind == BoundKind::Static ? "static" : "nominal";
}

std::optional<Time> UpdateFigures::makespan() const {
  if (!last_completion) return std::nullopt;
  return *last_completion - first_request;
}

std::vector<UpdateFigures> updates_of(std::span<const FetchRecord> fetches,
                                      std::span<const JointBound> joint,
                                      std::span<const Time> faults) {
  std::vector<std::size_t> order(fetches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(fetches[a].version, fetches[a].requested) <
           std::pair(fetches[b].version, fetches[b].requested);
  });
  std::vector<Draft> drafts;
  for (const std::size_t i : order) {
    const FetchRecord& fetch = fetches[i];
    const bool same = !drafts.empty() && drafts.back().figures.version == fetch.version &&
                      (fetch.requested < drafts.back().figures.ended ||
                       fetch.requested == drafts.back().figures.first_request);
    if (!same) {
      drafts.emplace_back();
      drafts.back().figures.version = fetch.version;
      drafts.back().figures.first_request = fetch.requested;
    }
    take(drafts.back(), fetch);
  }
  std::vector<UpdateFigures> updates;
  for (Draft& draft : drafts) {
    UpdateFigures& update = draft.figures;
    update.bound = draft.own_bound;
    for (const JointBound& sink : joint) {
      const bool within =
          sink.version == update.version && sink.first_request >= update.first_request &&
          (sink.first_request < update.ended || sink.first_request == update.first_request);
      if (within && update.failed == 0) {
        update.bound =
            std::max(update.bound, sink.first_request - update.first_request + sink.bound);
      }
    }
    const bool hit = std::any_of(faults.begin(), faults.end(), [&](Time at) {
      return at >= update.first_request && at <= update.ended;
    });
    if (hit || update.failed > 0) update.bound_kind = BoundKind::Nominal;
    updates.push_back(update);
  }
  std::stable_sort(
      updates.begin(), updates.end(), [](const UpdateFigures& a, const UpdateFigures& b) {
        return std::pair(a.first_request, a.version) < std::pair(b.first_request, b.version);
      });
  return updates;
}

std::optional<double> UpdateSums::fraction() const {
  if (makespan <= Time()) return std::nullopt;
  return static_cast<double>(bound.picoseconds()) / static_cast<double>(makespan.picoseconds());
}

UpdateSums sums_of(std::span<const UpdateFigures> updates) {
  UpdateSums sums;
  for (const UpdateFigures& update : updates) {
    const std::optional<Time> makespan = update.makespan();
    if (!makespan) continue;
    sums.makespan += *makespan;
    sums.bound += update.bound;
  }
  return sums;
}

std::optional<double> FetchStall::fraction() const {
  if (waited.picoseconds == 0) return std::nullopt;
  return static_cast<double>(bound.picoseconds) / static_cast<double>(waited.picoseconds);
}

FetchStall fetch_stall(std::span<const FetchRecord> fetches) {
  FetchStall stall;
  for (const FetchRecord& fetch : fetches) {
    const bool counts = fetch.in_place && fetch.generates && fetch.completed;
    if (!counts || fetch.ended <= fetch.requested) continue;
    stall.waited.add(fetch.ended - fetch.requested, fetch.gpus);
    stall.bound.add(fetch.bound, fetch.gpus);
  }
  return stall;
}

}  // namespace holdfast
