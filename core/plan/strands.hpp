// Stripes of one class that share a tree, and how a class is cut into them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/class_hosts.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/slow_links.hpp"
#include "core/plan/two_tree.hpp"

namespace holdfast {

struct Strand {
  std::uint32_t number = 0;       // in its class
  std::vector<StripeId> stripes;  // more than one where some receiver needs them apart
  Bytes stripe_bytes;             // of each
  std::uint32_t rail = 0;
  std::uint32_t turn = 0;  // numbers the class's strands rail by rail
  TreeSide side = TreeSide::First;
  std::uint32_t rotation = 0;  // of the list of a site that is fed from outside

  [[nodiscard]] Bytes bytes() const { return stripe_bytes * stripes.size(); }
};

class StrandCutter {
 public:
  // References are kept. O(links + members of classes).
  StrandCutter(const PlanSpace& space, const SlowLinks& slow);

  // One strand for each rail, each of the two trees (where hosts receive from other hosts) and each
  // repeat, adding their stripes to the builder. A strand is cut into several stripes where some
  // host needs them apart: finely where that is rare, since a host with one slow NIC shares out by
  // whole stripes what that NIC cannot take.
  [[nodiscard]] std::vector<Strand> cut(ClassId id, const ClassHosts& hosts,
                                        PlanBuilder& builder) const;

  // How often a class's strands are repeated so that all together fill the lines of a WAN:
  //   - they are half as many streams again as the lines take, so that a stream that pauses or ends
  //     early does not leave one idle;
  //   - they can be shared out between the lines into a datacenter without one of them getting much
  //     more than its part.
  [[nodiscard]] std::uint32_t repeats() const { return repeats_; }

 private:
  [[nodiscard]] std::uint32_t wan_repeats() const;

  const PlanSpace& space_;
  const SlowLinks& slow_;
  Bytes all_bytes_;  // of all classes, each once
  std::uint64_t all_receivers_ = 0;
  std::uint32_t repeats_ = 1;
};

}  // namespace holdfast
