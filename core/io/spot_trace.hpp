// Who comes and goes, recorded: a CSV file of an elastic workload.
//
//   time,worker,event            # worker: a GPU's name; or host: everything on it
//   0s,h0,join
//   90s,h0,notice
//   120s,h0,kill
//
// Columns in any order: `time` (with a unit) or `time_s` (plain seconds, up to 12 decimals);
// `worker` or `host`; `event`: join, notice, leave or kill (membership.hpp). Rows ascend in time.
// Lines that are empty or begin with '#' are skipped; spaces around cells are, too. Cells hold no
// quotes and no commas. Nobody is there before their first join.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/topology/topology.hpp"
#include "core/units.hpp"
#include "core/workload/membership.hpp"

namespace holdfast {

inline constexpr std::uint64_t kMostTraceBytes = 64'000'000;

struct TraceRow {
  Time at;
  std::string who;
  MemberEventKind event = MemberEventKind::Join;
  Place place;  // of the row: file and line
};

// Throws Error with file, line and column: BadSyntax, MissingKey (a column), UnknownKey, Duplicate,
// BadUnit, BadValue, LimitExceeded. O(length of the text).
[[nodiscard]] std::vector<TraceRow> parse_spot_trace(std::string_view text,
                                                     const std::string& file);

// The same for seats: a row about a host, or another domain, is about each seat with a worker in
// it. A notice ends at the next kill or leave of its seat (Time::never() if there is none). Throws
// Error at the row: UnknownName for a name that is no node and no domain, BadValue for one with no
// seat and for what cannot happen (a kill of who is not there). O(rows x seats of a row + seats).
[[nodiscard]] std::vector<MemberEvent> member_events(std::span<const TraceRow> rows,
                                                     std::span<const std::vector<NodeId>> seats,
                                                     const Topology& topology);

}  // namespace holdfast
