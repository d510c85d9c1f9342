// Demands of one's own choice, changed topologies and random plans for tests of the bound.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/topology/router.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::testing_support {

// The topology again with nodes and links changed. Ids stay.
[[nodiscard]] Topology changed(const Topology& topology, const std::function<void(Node&)>& node,
                               const std::function<void(Link&)>& link);

// Capacities from half to all of what they were, one link in thirty down.
[[nodiscard]] Topology roughened(const Topology& topology, std::mt19937_64& random);

// The same demand on a topology with the same names and other ids.
[[nodiscard]] Demand moved(const Demand& demand, const Topology& from, const Topology& to);

// The memories of about half of the hosts hold about half of the classes as well.
[[nodiscard]] Demand with_memories(Demand demand, const Topology& topology,
                                   std::mt19937_64& random);

// All routes between two endpoints that streams 0 to 2 give, over every pair of ports; each found
// once. Keeps a reference.
class RouteBook {
 public:
  explicit RouteBook(const Router& router) : router_(&router) {}
  [[nodiscard]] const Router& router() const { return *router_; }
  [[nodiscard]] const std::vector<Route>& routes(NodeId source, NodeId destination);

 private:
  const Router* router_;
  std::map<std::pair<NodeId, NodeId>, std::vector<Route>> found_;
};

// What a random valid plan (random trees over random routes, three stripes a class) carries.
struct RandomLoad {
  bool possible = false;               // everyone was reached
  std::vector<std::uint64_t> carried;  // by channel
};
[[nodiscard]] RandomLoad random_load(RouteBook& book, const Demand& demand,
                                     std::mt19937_64& random);

}  // namespace holdfast::testing_support
