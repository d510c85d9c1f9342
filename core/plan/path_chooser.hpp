// Chooses the paths of a plan's edges.
//
// Between NICs that several equally short routes join, it takes the one whose busiest channel stays
// least busy with what the plan sends so far, so that edges spread over spines, cores and gateways
// in the measure of what each of their links can carry. Of many routes some are looked at, other
// ones each time; on equal terms they take turns. Two edges over a WAN never share a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/plan/channel_load.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

// From parent to child inside one host; nothing if they are in different hosts or not joined.
[[nodiscard]] std::optional<Path> local_path(const PlanSpace& space, WorkerId parent,
                                             WorkerId child);

class PathChooser {
 public:
  // A reference is kept.
  explicit PathChooser(const PlanSpace& space) : space_(space), load_(space.topology()) {}

  // Between the two NICs, for so many bytes; nothing if no route joins them.
  // O(routes looked at, at most 16).
  [[nodiscard]] std::optional<Path> fabric(NodeId parent_nic, NodeId child_nic, Bytes bytes);
  // Seconds that the busiest channel between them would take on the route that `fabric` would
  // choose now; nothing if no route joins them.
  [[nodiscard]] std::optional<double> least_time(NodeId parent_nic, NodeId child_nic, Bytes bytes);
  // Local where possible, else the first pair of NICs that is joined, same rail preferred.
  // Throws Error(Unsupported) if there is none.
  [[nodiscard]] Path any(WorkerId parent, WorkerId child, Bytes bytes);

  // The same, charged.
  [[nodiscard]] Path lay(WorkerId parent, WorkerId child, Bytes bytes);

  // Adds what an edge sends to the loads.
  void charge(WorkerId parent, WorkerId child, const Path& path, Bytes bytes);
  [[nodiscard]] const ChannelLoad& load() const { return load_; }
  [[nodiscard]] ChannelLoad& load() { return load_; }

 private:
  struct Best {
    std::uint32_t choices = 0;
    std::uint32_t choice = 0;
    double time = 0;
  };
  [[nodiscard]] Best least_loaded(NodeId parent_nic, NodeId child_nic, Bytes bytes);

  const PlanSpace& space_;
  ChannelLoad load_;
  std::unordered_map<std::uint64_t, std::uint32_t> choices_;  // by pair of switches
  std::unordered_map<NodeId, std::uint32_t> turns_;           // by the switch that is left
  std::unordered_map<std::uint64_t, std::uint32_t> streams_;  // by pair of NICs
};

}  // namespace holdfast
