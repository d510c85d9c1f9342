// Finds the way on which some stripe disturbs a plan under construction least.
//
// Who may send and who may receive is given as ports, nearest first. The way taken is the one whose
// busiest channel, with the stripe added to what it carries already, stays least busy; what stays
// below the goal (the time that the plan aims at) is equally good, and of equals the nearest is
// taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/plan/path_chooser.hpp"

namespace holdfast {

// A worker and the NIC through which it would send or receive.
struct Port {
  WorkerId worker;
  NodeId nic;
};

struct Way {
  WorkerId parent;
  WorkerId child;
  Path path;
};

class WayFinder {
 public:
  // References are kept; `goal` in seconds.
  WayFinder(const PlanSpace& space, PathChooser& paths, double goal)
      : space_(space), paths_(paths), goal_(goal) {}

  // The best way for `bytes` from one of `sources` to one of `targets` over the fabric, or inside a
  // host from one of `insiders` to a target's worker. Nothing if none is joined. The way is not yet
  // charged. Stripes that take the same ports share their path. O(sources + targets + a few
  // routes).
  [[nodiscard]] std::optional<Way> find(std::span<const WorkerId> insiders,
                                        std::span<const Port> sources,
                                        std::span<const Port> targets, Bytes bytes);

 private:
  struct Ranked {
    double cost = 0;
    std::size_t place = 0;  // in the list: how near
    friend auto operator<=>(const Ranked&, const Ranked&) = default;
  };
  enum class Direction { Out, In };
  [[nodiscard]] double beyond_goal(double time) const { return time > goal_ ? time : goal_; }
  [[nodiscard]] const Route& ends(const Port& port, Direction direction);
  [[nodiscard]] std::vector<Ranked> best_ports(std::span<const Port> ports, Direction direction,
                                               std::size_t most, Bytes bytes);
  [[nodiscard]] Path path_between(const Port& source, const Port& target, Bytes bytes);

  const PlanSpace& space_;
  PathChooser& paths_;
  double goal_;
  std::unordered_map<std::uint64_t, Route> out_;  // from a worker through a NIC to its first switch
  std::unordered_map<std::uint64_t, Route> in_;
  std::unordered_map<std::uint64_t, std::vector<std::tuple<WorkerId, WorkerId, Path>>> shared_;
};

}  // namespace holdfast
