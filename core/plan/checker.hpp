// Accepts or refuses any plan, whoever made it. Shares no code with the planners beyond the types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/holdings.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/plan_delta.hpp"
#include "core/topology/router.hpp"

namespace holdfast {

enum class ViolationCode {
  WrongFormat,      // plan.format is not kPlanFormat
  WrongTopology,    // the topology's hash is another
  WrongDemand,      // the demand's hash is another
  BadStripe,        // a class that is not there, an empty or out of range selection
  UnknownWorker,    // an edge names a worker that the demand does not have
  SelfRead,         // parent and child are the same
  UnwantedBlock,    // the child is not a receiver of the class
  NeverHeld,        // the parent neither holds the blocks nor receives them in this stripe
  ForbiddenSource,  // the parent may not serve
  MissingBlock,     // a receiver gets a block in no stripe
  DuplicateBlock,   // a receiver gets a block twice
  NoPath,           // the path's ports or links are not there, or are down
  WaitCycle,        // workers wait for each other: no way to a holder
  OutOfMemory,      // more bytes than the worker has free
  BadWindow,        // a window below 1 or above 4,096
  BadAlternate,     // an alternate that is the parent, the child, or could never have the blocks
  NotExecutable,    // the block by block execution got stuck or ended with something missing
  BadDelta,         // the delta cannot be applied
  NotYetThere,      // an added edge begins after a block that its child does not have
};

[[nodiscard]] const char* to_string(ViolationCode code);

struct Violation {
  ViolationCode code;
  std::string pointer;  // JSON pointer into the plan file: "/plan/stripes/3/edges/17"
  std::string message;  // what is wrong, with names, and what would be right
};

struct CheckOptions {
  std::size_t most = 1'000;  // violations to list; the rest are counted in a last entry's message
  // Plans with at most this many deliveries (receiver x block) are also executed block by block.
  std::uint64_t execute_below = 2'000'000;
  // What workers have verified already, beside what the demand's holders hold: nobody needs to get
  // it, and who has all blocks of a stripe may be read from like a holder.
  const Holdings* start = nullptr;
};

// Empty: the plan is right. Hashes are recomputed first; the other checks run whatever they say.
// O(edges + classes x receivers + route lengths + deliveries where executed).
[[nodiscard]] std::vector<Violation> check(const Plan& plan, const Demand& demand,
                                           const Router& router, const CheckOptions& options = {});

// Checks a plan that is mended while it is carried out: the delta applies to `base`, each added
// edge begins where its child really is, and the result is right with what is verified as its
// start. `after` is the demand of the result (see plan_delta.hpp); options.start is not looked at.
// O(check + blocks of the stripes with added edges).
[[nodiscard]] std::vector<Violation> check_delta(const Plan& base, const PlanDelta& delta,
                                                 const Demand& after, const Router& router,
                                                 const Holdings& verified,
                                                 CheckOptions options = {});

}  // namespace holdfast
