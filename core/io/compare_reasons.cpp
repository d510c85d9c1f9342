#include "core/io/compare_reasons.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace holdfast {
namespace {

constexpr double kClearly = 1.1;       // a factor that is more than rounding and ragged ends
constexpr double kSeveralTimes = 1.5;  // what must cross a border: copies cross it

double ratio(Bytes a, Bytes b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}
double ratio(Rate a, Rate b) {
  return static_cast<double>(a.bytes_per_second()) / static_cast<double>(b.bytes_per_second());
}

// "host 'h0' (trainer[0])"
std::string name_of(const DomainCrossing& crossing) {
  return fmt::format("{} '{}'{}", to_string(crossing.level), crossing.domain,
                     crossing.who.empty() ? "" : fmt::format(" ({})", crossing.who));
}

using Reasons = std::vector<Reason>;

void add(Reasons& reasons, LimitKind kind, double factor, std::string text) {
  reasons.push_back({kind, factor, std::move(text)});
}

bool shares(Bytes bytes, Bytes minimum) {
  return minimum > Bytes() && ratio(bytes, minimum) >= kClearly;
}
bool shares(const std::optional<DomainCrossing>& crossing) {
  return crossing && shares(crossing->bytes, crossing->minimum);
}

std::string times_minimum(Bytes bytes, Bytes minimum) {
  return fmt::format("{:.1f} times the {} that must", ratio(bytes, minimum), rounded(minimum));
}

void add_sharing(const DomainCrossing& crossing, const char* verb, Reasons& reasons) {
  add(reasons, LimitKind::Sharing, ratio(crossing.bytes, crossing.minimum),
      fmt::format("{} {} {}, {}", rounded(crossing.bytes), verb, name_of(crossing),
                  times_minimum(crossing.bytes, crossing.minimum)));
}

// What the domains of the link's level do together, where the one that it leaves need not send.
void add_sharing_of_level(const DomainCrossing& crossing, const RunDetail& detail,
                          Reasons& reasons) {
  for (const LevelCrossing& all : detail.crossings) {
    if (all.level != crossing.level || all.direction != Direction::In) continue;
    if (!shares(all.bytes, all.minimum)) continue;
    add(reasons, LimitKind::Sharing, ratio(all.bytes, all.minimum),
        fmt::format("{} enter all {}s together, {}", rounded(all.bytes), to_string(all.level),
                    times_minimum(all.bytes, all.minimum)));
  }
}

void add_all_sharing(const BusyLink& link, const RunDetail& detail, Reasons& reasons) {
  const std::optional<DomainCrossing>& leaves = link.leaves;
  const std::optional<DomainCrossing>& enters = link.enters;
  if (enters && enters->minimum == Bytes() && enters->bytes > Bytes()) {
    // No factor of nothing: twice is what one unneeded copy beside a needed one would be.
    add(reasons, LimitKind::Sharing, 2,
        fmt::format("{} enter {}, where nothing is missing", rounded(enters->bytes),
                    name_of(*enters)));
  }
  if (shares(leaves) && shares(enters) && leaves->bytes == enters->bytes &&
      leaves->minimum == enters->minimum) {
    add(reasons, LimitKind::Sharing, ratio(leaves->bytes, leaves->minimum),
        fmt::format("{} cross from {} to {}, {}", rounded(leaves->bytes), name_of(*leaves),
                    name_of(*enters), times_minimum(leaves->bytes, leaves->minimum)));
    return;
  }
  if (shares(leaves)) add_sharing(*leaves, "leave", reasons);
  if (shares(enters)) add_sharing(*enters, "enter", reasons);
  if (leaves && leaves->minimum == Bytes()) add_sharing_of_level(*leaves, detail, reasons);
}

void add_uneven(const BusyLink& link, Reasons& reasons) {
  for (const auto* crossing : {&link.leaves, &link.enters}) {
    if (!*crossing) continue;
    const Time spread = transfer_time((*crossing)->bytes, (*crossing)->capacity);
    const double factor = link.busy().seconds() / spread.seconds();
    if (!(factor >= kClearly)) continue;
    // That a slow link takes longer than its neighbours is not another reason.
    add(reasons, LimitKind::Uneven,
        factor * ratio(link.capacity, std::max(link.usual, link.capacity)),
        fmt::format("spread over all links of {} it would take {}", name_of(**crossing),
                    rounded(spread)));
    return;
  }
}

// Whether what the link carries has crossed a border of its level before: more enters the domain
// behind it, or all of its level together, than must. That a domain sends more than it must is not
// enough: it may send to others in turn.
bool copies_cross(const BusyLink& link, const RunDetail& detail) {
  const auto several = [](Bytes bytes, Bytes minimum) {
    return minimum > Bytes() && ratio(bytes, minimum) >= kSeveralTimes;
  };
  if (link.enters && several(link.enters->bytes, link.enters->minimum)) return true;
  return std::any_of(detail.crossings.begin(), detail.crossings.end(),
                     [&](const LevelCrossing& all) {
                       return link.leaves && all.level == link.leaves->level &&
                              all.direction == Direction::In && several(all.bytes, all.minimum);
                     });
}

void add_streams(const BusyLink& link, const std::optional<StreamsAtOnce>& streams,
                 Reasons& reasons) {
  if (streams) {
    const auto fill = static_cast<std::uint64_t>(std::ceil(ratio(link.capacity, *link.stream_cap)));
    add(reasons, LimitKind::Streams, ratio(link.capacity, streams->rate),
        fmt::format("about {} stream{} of {} carr{} it at a time, where {} would fill it",
                    streams->count, streams->count == 1 ? "" : "s", rounded(*link.stream_cap),
                    streams->count == 1 ? "ies" : "y", fill));
  } else if (link.limited_by_stream()) {
    const Time full = transfer_time(link.bytes, link.capacity);
    add(reasons, LimitKind::Streams, link.busy().seconds() / full.seconds(),
        fmt::format("the largest of its {} streams carries {} and gets no more than {}",
                    link.streams, rounded(link.largest_stream), rounded(*link.stream_cap)));
  }
}

}  // namespace

std::optional<StreamsAtOnce> streams_at_once(const BusyLink& link, const LinkTraffic& traffic,
                                             Time makespan) {
  constexpr double kNear = 0.07;   // of a stream, either way
  constexpr double kFull = 0.9;    // of the capacity
  constexpr double kMostly = 0.5;  // of the bins in which anything crosses
  if (!link.stream_cap || traffic.bins.size() < 4 || makespan == Time()) return std::nullopt;
  const double cap = static_cast<double>(link.stream_cap->bytes_per_second());
  const double width = makespan.seconds() / static_cast<double>(traffic.bins.size());
  std::vector<double> used;  // in streams at their cap
  for (const Bytes bin : traffic.bins) {
    if (bin > Bytes()) used.push_back(static_cast<double>(bin.count()) / (width * cap));
  }
  if (used.empty()) return std::nullopt;
  std::sort(used.begin(), used.end());
  const double capacity = ratio(link.capacity, *link.stream_cap);
  const double count = std::round(used[used.size() / 2]);
  if (count < 1 || count > kFull * capacity || used.back() > kFull * capacity) return std::nullopt;
  if (link.streams > 0 && count > static_cast<double>(link.streams)) return std::nullopt;
  const auto near = std::count_if(used.begin(), used.end(), [&](double streams) {
    return streams > kNear && std::abs(streams - std::round(streams)) <= kNear;
  });
  if (static_cast<double>(near) < kMostly * static_cast<double>(used.size())) return std::nullopt;
  return StreamsAtOnce{
      static_cast<std::uint64_t>(count),
      Rate(static_cast<std::uint64_t>(count) * link.stream_cap->bytes_per_second())};
}

std::vector<Reason> reasons_of(const BusyLink& link, const RunDetail& detail,
                               const std::optional<StreamsAtOnce>& streams) {
  Reasons reasons;
  add_streams(link, streams, reasons);
  add_all_sharing(link, detail, reasons);
  const double slow = ratio(link.usual, link.capacity);
  if (slow >= kClearly) {
    double factor = slow;
    if (copies_cross(link, detail)) {
      double sharing = 1;
      for (const Reason& reason : reasons) {
        if (reason.kind == LimitKind::Sharing) sharing = std::max(sharing, reason.factor);
      }
      factor = std::min(slow, sharing);  // behind it: the sort is stable
    }
    add(reasons, LimitKind::SlowLink, factor,
        fmt::format("links like it usually have {}", rounded(link.usual)));
  }
  if (!streams && !link.limited_by_stream()) add_uneven(link, reasons);
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason& a, const Reason& b) { return a.factor > b.factor; });
  return reasons;
}

}  // namespace holdfast
