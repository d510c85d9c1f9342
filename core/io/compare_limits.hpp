// What limits a run, from its figures: the makespan cut into the time that no plan can beat, the
// time that its busiest link (or digest) needs beyond that, and the time in which that one rests.
//
//   bound     bound                                no plan does without it
//   excess    busy time of the busiest - bound     why: more bytes than must cross (Sharing), a
//   slow
//                                                  link, too few streams, an uneven spread
//   rest      makespan - the greater of both       the pipeline fills and drains (Fill), or waits
//   in
//                                                  between (Waiting)
//
// The parts add up to the makespan. "Busy" is bytes / capacity, or over what its streams can carry
// together where each has a cap.
#pragma once

#include <string>
#include <vector>

#include "core/io/results_reader.hpp"

namespace holdfast {

enum class LimitKind {
  Failure,   // the run failed: the only entry then
  Bound,     // the cut
  Sharing,   // more bytes cross a border than must, so that its links carry them several times
  SlowLink,  // the busiest link has less than links of its kind usually have
  Streams,   // too few streams to fill it
  Uneven,    // other links of the border carry less
  Busy,      // none of these
  Digest,    // a worker verifies all the time
  Fill,      // the busiest rests at the start and the end
  Waiting,   // and in between
};

struct Limit {
  LimitKind kind = LimitKind::Bound;
  Time time;         // its part of the makespan
  double share = 0;  // the same as a fraction
  std::string text;  // why, in words and numbers; names in it are as the files have them
};

// How long a link was less than full while the run went on: before its first full bin, between
// full ones, after the last. A bin counts as full from 90 % of the link's fullest one on. Nothing
// for a link with a single bin.
struct Rests {
  Time before;
  Time between;
  Time after;
};
[[nodiscard]] std::optional<Rests> rests_of(const LinkTraffic& link, Rate usable, Time makespan);

// The bound first where it is 95 % or more; else by time, longest first. Parts below 1 % of the
// makespan are left out, but never the bound. O(links x bins).
[[nodiscard]] std::vector<Limit> limits_of(const RunFigures& run);

// "at the bound (97.6 %)", "66.9 % of the bound; most is lost to the fill of its pipeline".
[[nodiscard]] std::string headline_of(const RunFigures& run, const std::vector<Limit>& limits);

[[nodiscard]] const char* to_string(LimitKind kind);  // "bound", "slow_link", ...

}  // namespace holdfast
