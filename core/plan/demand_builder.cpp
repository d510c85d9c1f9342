// Groups blocks into classes by one sweep over the sorted ends of everyone's intervals. Between two
// neighbouring ends the sets of holders and receivers do not change, so that blocks need not be
// looked at one by one; equal sets are found by their fingerprints, which each end updates in O(1).
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/mix.hpp"
#include "core/plan/demand.hpp"

namespace holdfast {
namespace {

// Blocks begin .. end - 1 of one worker.
struct Range {
  std::uint32_t worker = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// A bijection of 64-bit integers that scatters neighbours.
std::uint64_t scatter(std::uint64_t x) {
  return mixed(x + kGolden);
}

// A set of workers with O(1) insertion and removal and a 128-bit fingerprint: the sum of a number
// per member. Distinct sets of one sweep share a fingerprint with probability about n^2 / 2^128.
class WorkerSet {
 public:
  explicit WorkerSet(std::size_t workers) : position_(workers, kAbsent) {}

  void insert(std::uint32_t worker) {
    position_[worker] = static_cast<std::uint32_t>(members_.size());
    members_.push_back(worker);
    high_ += scatter(2U * std::uint64_t{worker});
    low_ += scatter(2U * std::uint64_t{worker} + 1U);
  }
  void erase(std::uint32_t worker) {
    const std::uint32_t hole = position_[worker];
    const std::uint32_t last = members_.back();
    members_[hole] = last;
    position_[last] = hole;
    members_.pop_back();
    position_[worker] = kAbsent;
    high_ -= scatter(2U * std::uint64_t{worker});
    low_ -= scatter(2U * std::uint64_t{worker} + 1U);
  }
  [[nodiscard]] bool empty() const { return members_.empty(); }
  [[nodiscard]] std::uint32_t any() const { return members_.front(); }
  [[nodiscard]] Hash128 fingerprint() const { return {high_, low_}; }
  [[nodiscard]] std::vector<WorkerId> sorted() const {
    std::vector<WorkerId> list;
    list.reserve(members_.size());
    for (const std::uint32_t worker : members_) list.emplace_back(worker);
    std::sort(list.begin(), list.end());
    return list;
  }

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffffU;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> position_;
  std::uint64_t high_ = 0;
  std::uint64_t low_ = 0;
};

struct ClassKey {
  Hash128 holders;
  Hash128 receivers;
  friend bool operator==(const ClassKey&, const ClassKey&) = default;
};
struct ClassKeyHash {
  std::size_t operator()(const ClassKey& key) const {
    return static_cast<std::size_t>(key.holders.low ^ scatter(key.receivers.low));
  }
};

// Sorts by worker and block; overlapping and touching ranges of a worker become one.
void normalise(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.worker, a.begin) < std::pair(b.worker, b.begin);
  });
  std::size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept > 0 && ranges[kept - 1].worker == range.worker &&
        ranges[kept - 1].end >= range.begin) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

// What is in `wanted` and not in `held`; both normalised, and so is the answer.
std::vector<Range> difference(const std::vector<Range>& wanted, const std::vector<Range>& held) {
  std::vector<Range> missing;
  missing.reserve(wanted.size());
  auto next = held.begin();
  for (const Range& range : wanted) {
    while (next != held.end() &&
           std::pair(next->worker, next->end) <= std::pair(range.worker, range.begin)) {
      ++next;
    }
    std::uint32_t begin = range.begin;
    for (auto hold = next;
         hold != held.end() && hold->worker == range.worker && hold->begin < range.end; ++hold) {
      if (hold->begin > begin) missing.push_back({range.worker, begin, hold->begin});
      begin = std::max(begin, hold->end);
    }
    if (begin < range.end) missing.push_back({range.worker, begin, range.end});
  }
  return missing;
}

// One end of a range.
struct Event {
  std::uint32_t block = 0;
  std::uint32_t worker = 0;
  bool receives = false;
  bool begins = false;
};

std::vector<Event> events_of(const std::vector<Range>& held, const std::vector<Range>& missing) {
  std::vector<Event> events;
  events.reserve(2 * (held.size() + missing.size()));
  const auto add = [&events](const std::vector<Range>& ranges, bool receives) {
    for (const Range& range : ranges) {
      events.push_back({range.begin, range.worker, receives, true});
      events.push_back({range.end, range.worker, receives, false});
    }
  };
  add(held, false);
  add(missing, true);
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.block, a.worker) < std::pair(b.block, b.worker);
  });
  return events;
}

std::vector<BlockClass> sweep(const std::vector<Event>& events, std::size_t workers) {
  std::vector<BlockClass> classes;
  std::unordered_map<ClassKey, std::size_t, ClassKeyHash> class_of;
  WorkerSet holders(workers);
  WorkerSet receivers(workers);
  for (std::size_t i = 0; i < events.size();) {
    const std::uint32_t begin = events[i].block;
    for (; i < events.size() && events[i].block == begin; ++i) {
      WorkerSet& set = events[i].receives ? receivers : holders;
      if (events[i].begins) {
        set.insert(events[i].worker);
      } else {
        set.erase(events[i].worker);
      }
    }
    if (receivers.empty()) continue;
    if (holders.empty()) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("block {} is wanted by worker {} and no worker that may serve holds "
                              "it; add a holder of it",
                              begin, receivers.any()));
    }
    // A receiver is active, so that the end of its range still lies ahead.
    const std::uint32_t count = events[i].block - begin;
    const auto [entry, added] =
        class_of.try_emplace({holders.fingerprint(), receivers.fingerprint()}, classes.size());
    if (added) classes.push_back({{}, holders.sorted(), receivers.sorted()});
    std::vector<BlockSpan>& spans = classes[entry->second].blocks;
    if (!spans.empty() && spans.back().first.value() + spans.back().count == begin) {
      spans.back().count += count;
    } else {
      spans.push_back({BlockId(begin), count});
    }
  }
  return classes;
}

}  // namespace

DemandBuilder::DemandBuilder(std::string model, Version version, Bytes block_size,
                             std::vector<Bytes> block_bytes) {
  demand_.model = std::move(model);
  demand_.version = version;
  demand_.block_size = block_size;
  demand_.block_bytes = std::move(block_bytes);
}

WorkerId DemandBuilder::add_worker(DemandWorker worker) {
  demand_.workers.push_back(worker);
  return WorkerId(demand_.workers.size() - 1);
}

void DemandBuilder::holds(WorkerId worker, BlockSpan blocks) {
  held_.push_back({worker, blocks});
}

void DemandBuilder::wants(WorkerId worker, BlockSpan blocks) {
  wanted_.push_back({worker, blocks});
}

Demand DemandBuilder::build() && {
  const auto ranges_of = [this](const std::vector<Interval>& intervals) {
    std::vector<Range> ranges;
    ranges.reserve(intervals.size());
    for (const auto& [worker, blocks] : intervals) {
      const std::uint64_t end = std::uint64_t{blocks.first.value()} + blocks.count;
      if (worker.index() >= demand_.workers.size() || end > demand_.block_bytes.size()) {
        throw Error(ErrorCode::BadValue,
                    fmt::format("worker {}, blocks {} to {}: the demand has {} workers and {} "
                                "blocks",
                                worker.value(), blocks.first.value(), end, demand_.workers.size(),
                                demand_.block_bytes.size()));
      }
      if (blocks.count == 0) continue;
      ranges.push_back({worker.value(), blocks.first.value(), static_cast<std::uint32_t>(end)});
    }
    normalise(ranges);
    return ranges;
  };
  std::vector<Range> held = ranges_of(held_);
  const std::vector<Range> missing = difference(ranges_of(wanted_), held);
  if (missing.empty()) {
    throw Error(ErrorCode::BadValue,
                wanted_.empty() ? "nobody wants any block; add a worker that wants some"
                                : "every worker already holds all blocks that it wants; add a "
                                  "worker that misses some");
  }
  std::erase_if(held, [this](const Range& r) { return !demand_.workers[r.worker].may_serve; });
  demand_.classes = sweep(events_of(held, missing), demand_.workers.size());
  return std::move(demand_);
}

}  // namespace holdfast
