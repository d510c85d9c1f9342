#include "core/workload/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <set>
#include <string_view>
#include <utility>

#include "core/nearest.hpp"

namespace holdfast {
namespace {

constexpr std::array kNamed{
    std::pair{MemberEventKind::Join, "join"}, std::pair{MemberEventKind::Notice, "notice"},
    std::pair{MemberEventKind::Leave, "leave"}, std::pair{MemberEventKind::Kill, "kill"}};

// Longer than any horizon, short enough to add to another time.
constexpr double kMostSeconds = 4e6;

Time bounded(double seconds) {
  return time_from_seconds(std::min(seconds, kMostSeconds));
}

class Pool {
 public:
  Pool(const SpotProcess& process, std::uint32_t seats, Time horizon, std::uint64_t seed)
      : process_(process), horizon_(horizon), arrivals_(seed, 0), lives_(seed, 1) {
    for (std::uint32_t seat = 0; seat < seats; ++seat) free_.insert(free_.end(), seat);
  }

  std::vector<MemberEvent> run() {
    for (std::uint32_t seat = 0; seat < process_.initial && !free_.empty(); ++seat) start(Time());
    if (process_.arrivals_per_hour > 0) {
      const Distribution gap = Distribution::exponential(3600 / process_.arrivals_per_hour);
      for (Time at = bounded(gap.draw(arrivals_));
           at < horizon_ && events_.size() < kMostMemberEvents;
           at += std::max(picoseconds(1), bounded(gap.draw(arrivals_)))) {
        release(at);
        start(at);
      }
    }
    const auto order = [](const MemberEvent& a, const MemberEvent& b) {
      return std::pair(a.at, a.seat) < std::pair(b.at, b.seat);
    };
    std::stable_sort(events_.begin(), events_.end(), order);
    const auto late = [&](const MemberEvent& event) { return event.at >= horizon_; };
    events_.erase(std::find_if(events_.begin(), events_.end(), late), events_.end());
    events_.resize(std::min(events_.size(), kMostMemberEvents));
    return std::move(events_);
  }

 private:
  // Seats whose machine is gone by `at`.
  void release(Time at) {
    while (!taken_.empty() && taken_.top().first <= at) {
      free_.insert(taken_.top().second);
      taken_.pop();
    }
  }

  // An offer. Its numbers are drawn even if no seat is free, so that the number of seats does not
  // change the machines that come.
  void start(Time at) {
    const Time life = std::max(picoseconds(1), bounded(process_.lifetime.draw(lives_)));
    const bool told = lives_.uniform() * 1e6 >= process_.unannounced;
    if (free_.empty()) return;
    const std::uint32_t seat = *free_.begin();
    free_.erase(free_.begin());
    const Time end = at + life;
    events_.push_back({at, MemberEventKind::Join, seat, {}});
    if (told && process_.notice > Time()) {
      events_.push_back({std::max(at, end - process_.notice), MemberEventKind::Notice, seat, end});
    }
    events_.push_back({end, MemberEventKind::Kill, seat, {}});
    taken_.emplace(end, seat);
  }

  using Taken = std::pair<Time, std::uint32_t>;  // until when, which seat

  const SpotProcess& process_;
  Time horizon_;
  Random arrivals_;
  Random lives_;
  std::set<std::uint32_t> free_;
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken_;
  std::vector<MemberEvent> events_;
};

}  // namespace

const char* to_string(MemberEventKind kind) {
  for (const auto& [value, name] : kNamed) {
    if (value == kind) return name;
  }
  return "unknown";
}

Parsed<MemberEventKind> parse_member_event(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [value, known] : kNamed) {
    if (name == known) return value;
    names.emplace_back(known);
  }
  return tl::unexpected(fmt::format("'{}' is not an event (join, notice, leave, kill){}", name,
                                    suggestion(name, names)));
}

std::vector<MemberEvent> spot_events(const SpotProcess& process, std::uint32_t seats, Time horizon,
                                     std::uint64_t seed) {
  return Pool(process, seats, horizon, seed).run();
}

std::optional<MemberFault> fault_of(std::span<const MemberEvent> events,
                                    std::vector<char> present) {
  std::vector<char> told(present.size(), 0);
  Time before;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const MemberEvent& event = events[i];
    if (event.seat >= present.size()) return MemberFault{i, "there is no such seat"};
    if (event.at < before) return MemberFault{i, "the time is before that of the event above it"};
    before = event.at;
    char& here = present[event.seat];
    if (event.kind == MemberEventKind::Join) {
      if (here != 0) return MemberFault{i, "it is there already: it cannot join"};
      here = 1;
      told[event.seat] = 0;
      continue;
    }
    if (here == 0) {
      return MemberFault{
          i, fmt::format("it is not there: '{}' needs a 'join' before it", to_string(event.kind))};
    }
    if (event.kind == MemberEventKind::Notice) {
      if (told[event.seat] != 0) return MemberFault{i, "it has had its notice already"};
      told[event.seat] = 1;
    } else {
      here = 0;
    }
  }
  return std::nullopt;
}

}  // namespace holdfast
