// The plan file: a plan and the demand that it answers, as JSON.
//
//   {"format": 1,
//    "plan": {"format": 1, "topology": "<hash>", "demand": "<hash>",
//             "stripes": [{"class": 0, "blocks": {"first": 0, "step": 2, "end": 1024},
//                          "edges": [[child, parent, alternate, source_port, destination_port,
//                                     stream, window], ...]}, ...]},
//    "demand": {"model": "llama", "version": {"lineage": 1, "number": 7}, "block_size": 4194304,
//               "verify": true,
//               "block_bytes": [[bytes, count], ...],
//               "workers": [{"node": 12, "name": "h0g0", "group": 0, "memory_free": 85899345920,
//                            "may_serve": true}, ...],
//               "classes": [{"blocks": [[first, count], ...], "holders": [0],
//                            "receivers": [1, 2]}, ...]}}
//
// Workers, classes and blocks are numbered by their place in the demand, ports and nodes by the ids
// of the topology whose hash the plan states. The name of a worker's node stands beside its id, for
// people, and so that a file for another topology is noticed. An edge without an alternate has
// null. The order of keys does not matter; there are no others, and none may be left out. A schema
// is in core/io/schemas/plan.schema.json.
//
// Limits: 64 MB, 2^24 blocks. All numbers are integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/topology.hpp"

namespace holdfast {

inline constexpr std::uint64_t kPlanFileMost = 64'000'000;

struct PlanFile {
  Plan plan;
  Demand demand;
  std::vector<std::string> node_names;  // of the workers' nodes, by worker
  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

// Adds the names; the demand must be valid for the topology.
[[nodiscard]] PlanFile make_plan_file(Plan plan, Demand demand, const Topology& topology);

// The same bytes for the same value. Throws Error(BadValue) if a name is not UTF-8, and
// Error(LimitExceeded) where the text would be longer than the limit. O(size of the plan and
// demand).
[[nodiscard]] std::string to_json(const PlanFile& file);

// Reads what to_json wrote, and what people wrote: the result equals what was written, hashes
// included. Needs no topology and checks none of the demand's invariants: call validate. Throws
// Error with line, column and pointer: BadSyntax, Duplicate, UnknownKey, MissingKey, BadValue,
// Unsupported (another format), LimitExceeded. `name` names the text in errors.
[[nodiscard]] PlanFile parse_plan(std::string_view text, const std::string& name);

// Throws Error with a pointer: BadPlan for a broken invariant of the demand, UnknownName where a
// worker's node has another name in the topology. Whether the plan is right is for check() to say.
void validate(const PlanFile& file, const Topology& topology);

// Throws as parse_plan does, and FileNotFound, FileUnreadable.
[[nodiscard]] PlanFile read_plan(const std::string& path);

// Replaces the file as a whole: whoever opens it finds the old or the new one, never a part. Throws
// Error(FileUnwritable), and as to_json does.
void write_plan(const std::string& path, const PlanFile& file);

}  // namespace holdfast
