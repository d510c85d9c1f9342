// Moves edges of a plan to other routes of the fabric until no link between switches is busier than
// it has to be.
//
// Choosing each route in turn leaves some links of a fabric without slack a third too busy: in a
// Clos network all edges fit only if nearly all of them are placed right (an edge colouring of the
// leaves' traffic, after Koenig). This is a local search: take an edge off a link that is too busy,
// put it on the route whose busiest link is least so, even if that only moves the excess elsewhere,
// and do not touch the same edge again for a while.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/plan/channel_load.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

// An edge of a plan between two NICs, already charged to the loads.
struct RoutedEdge {
  Path path;
  Bytes bytes;
};

class RouteSmoother {
 public:
  // References are kept.
  RouteSmoother(const PlanSpace& space, ChannelLoad& load) : space_(space), load_(load) {}

  // Changes streams of paths, and the loads with them. A link is too busy if it takes longer than
  // the busiest NIC, which no route changes, and than all links side by side with it take
  // on average (an oversubscribed level). Lines of a WAN are left alone. Deterministic. Looks at no
  // more than about a hundred routes an edge.
  void smooth(std::vector<RoutedEdge>& edges);

 private:
  struct Way {
    std::uint32_t choices = 0;
    std::uint32_t again = 0;  // of the stream: kept
    Route route;
  };
  void set_limits(const std::vector<RoutedEdge>& edges);
  [[nodiscard]] bool too_busy(ChannelId channel, Bytes more) const;
  void place(std::uint32_t edge, const RoutedEdge& routed);
  // True if the edge left the channel.
  bool move(std::uint32_t edge, RoutedEdge& routed, ChannelId away);

  const PlanSpace& space_;
  ChannelLoad& load_;
  std::vector<Way> ways_;                                            // by edge
  std::unordered_map<ChannelId, std::vector<std::uint32_t>> users_;  // between switches
  std::vector<double> limits_;                                       // by channel: seconds
  std::vector<ChannelId> busy_;                                      // to be looked at
  std::size_t effort_ = 0;                                           // routes looked at
  std::uint32_t turn_ = 0;
};

}  // namespace holdfast
