// links.csv read back: bytes of each link direction over time, policy by policy.
//
// The file says "policy,link,start_s,end_s,bytes,capacity_bytes_per_s" and then one row a bin: the
// rows of a link follow each other from zero to the end of the run without a gap, the links of a
// policy stand together, and no link comes twice. Text with a comma or a quote is quoted, a quote
// inside is doubled; no field has a line break.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace holdfast {

struct LinkTraffic {
  std::string link;
  Rate capacity;
  Bytes bytes;              // the sum of the bins
  std::vector<Bytes> bins;  // of equal length, one at least
};

struct PolicyTraffic {
  std::string policy;
  Time end;  // of the last bin of each link
  std::vector<LinkTraffic> links;
};

// Reads all of `in`; `file` names it in errors. Throws Error with line and column: BadSyntax (the
// head, the number of fields, quotes, a last line without an end: the file is cut off), BadValue (a
// number, a gap between bins), Duplicate, LimitExceeded (a line beyond 64 KiB, sums beyond 64
// bits). Memory grows with links x bins. O(length of the file).
[[nodiscard]] std::vector<PolicyTraffic> read_links(std::istream& in, const std::string& file);

}  // namespace holdfast
