// Why a link has more to carry, or carries it longer, than the bound needs time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/compare_limits.hpp"

namespace holdfast {

// Streams that carry a link at the same time, each at the cap of one, and what they carry together.
struct StreamsAtOnce {
  std::uint64_t count = 0;
  Rate rate;
};

// Where they are too few: the link's rate is most of the time near a whole number of streams at
// their cap, and never near its capacity. Nothing for a link without a cap, or with less than four
// bins. The number of edges over a link does not tell: most of them may come one after the other.
// O(bins log bins).
[[nodiscard]] std::optional<StreamsAtOnce> streams_at_once(const BusyLink& link,
                                                           const LinkTraffic& traffic,
                                                           Time makespan);

struct Reason {
  LimitKind kind = LimitKind::Busy;
  double factor = 1;  // how many times longer it takes for that
  std::string text;
};

// The strongest one first; but where bytes cross the same border several times, they do so before a
// slow link counts: without the copies it would not have to carry them. O(levels).
[[nodiscard]] std::vector<Reason> reasons_of(const BusyLink& link, const RunDetail& detail,
                                             const std::optional<StreamsAtOnce>& streams);

}  // namespace holdfast
