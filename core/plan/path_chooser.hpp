// Chooses the paths of a plan's edges.
//
// Between NICs that several equally short routes join, it takes the one that it has used least at
// both ends, so that edges spread over spines and gateways. Where links of the fabric differ, a
// count says too little: given the loads of the plan so far, it takes the route whose busiest
// channel stays least busy. Two edges over a WAN never share a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/plan/channel_load.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

class PathChooser {
 public:
  // References are kept. `load` may be null: routes are then counted, not weighed.
  explicit PathChooser(const PlanSpace& space, ChannelLoad* load = nullptr)
      : space_(space), load_(load) {}

  // From parent to child inside one host; nothing if they are in different hosts or not joined.
  [[nodiscard]] std::optional<Path> local(WorkerId parent, WorkerId child) const;
  // Between the two NICs, for so many bytes; nothing if no route joins them. O(routes, at most 64).
  [[nodiscard]] std::optional<Path> fabric(NodeId parent_nic, NodeId child_nic, Bytes bytes = {});
  // Seconds that the busiest channel between their first switches would take on the route that
  // `fabric` would choose; nothing if no route joins the NICs. Needs loads.
  [[nodiscard]] std::optional<double> least_time(NodeId parent_nic, NodeId child_nic, Bytes bytes);
  // Local where possible, else the first pair of NICs that is joined, same rail preferred.
  // Throws Error(Unsupported) if there is none.
  [[nodiscard]] Path any(WorkerId parent, WorkerId child, Bytes bytes = {});

  // Adds what an edge sends to the loads, if there are any.
  void charge(WorkerId parent, WorkerId child, const Path& path, Bytes bytes);

 private:
  // What lies between two switches that NICs hang on.
  struct Between {
    std::uint32_t choices = 0;
    std::vector<Route> middles;  // without the links of the NICs; only where loads are weighed
  };
  Between& between(NodeId from, NodeId to, NodeId parent_nic, NodeId child_nic);
  [[nodiscard]] std::uint32_t least_used(NodeId from_switch, NodeId to_switch,
                                         std::uint32_t choices);
  [[nodiscard]] std::uint32_t least_loaded(const Between& between, Bytes bytes) const;

  const PlanSpace& space_;
  ChannelLoad* load_;
  std::unordered_map<std::uint64_t, Between> between_;        // by pair of switches
  std::unordered_map<std::uint64_t, std::uint32_t> used_;     // by switch, direction and choice
  std::unordered_map<std::uint64_t, std::uint32_t> streams_;  // by pair of NICs
};

}  // namespace holdfast
