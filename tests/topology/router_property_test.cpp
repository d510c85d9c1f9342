// The router against brute force: all shortest paths of small random machines, found by a search
// that shares no code with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <set>

#include "core/topology/router.hpp"
#include "tests/topology/small_topologies.hpp"

namespace holdfast {
namespace {

using Paths = std::vector<Route>;

class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed) {
    const auto hosts = pick(2, 4);
    std::vector<NodeId> switches;
    const auto count = pick(1, 6);
    for (std::uint64_t i = 0; i < count; ++i) {
      const NodeKind kind =
          std::array{NodeKind::Switch, NodeKind::Spine, NodeKind::Gateway}[pick(0, 2)];
      switches.push_back(sketch_.node("s" + std::to_string(i), kind));
      if (i > 0) sketch_.link(switches[i], switches[pick(0, i - 1)], LinkKind::Fabric);
    }
    for (std::uint64_t i = 0; i < pick(0, 8); ++i) {
      const NodeId a = any(switches);
      const NodeId b = any(switches);
      if (a != b) sketch_.link(a, b, LinkKind::Fabric);
    }
    for (std::uint64_t h = 0; h < hosts; ++h) add_host("h" + std::to_string(h), switches);
    for (std::uint64_t i = 0; i < pick(0, 2); ++i) {
      const NodeId a = any(nics);
      const NodeId b = any(nics);
      if (a != b) sketch_.link(a, b, LinkKind::Fabric);
    }
    for (std::size_t i = 0; i < sketch_.builder.so_far().links().size(); ++i) {
      if (pick(0, 14) == 0) sketch_.builder.link(LinkId(i)).up = false;
    }
    for (std::size_t i = 0; i < sketch_.builder.so_far().nodes().size(); ++i) {
      if (pick(0, 29) == 0) sketch_.builder.node(NodeId(i)).up = false;
    }
  }

  Topology build() { return sketch_.build(); }

  std::vector<NodeId> endpoints;
  std::vector<NodeId> nics;

 private:
  std::uint64_t pick(std::uint64_t least, std::uint64_t most) {
    return least + random_() % (most - least + 1);
  }
  NodeId any(const std::vector<NodeId>& nodes) { return nodes[pick(0, nodes.size() - 1)]; }

  void add_host(const std::string& name, const std::vector<NodeId>& switches) {
    const DomainId host = sketch_.host(name);
    std::vector<NodeId> pcie;
    const auto roots = pick(1, 3);
    for (std::uint64_t i = 0; i < roots; ++i) {
      pcie.push_back(sketch_.node(name + ".p" + std::to_string(i), NodeKind::PcieSwitch, host));
      if (i > 0) sketch_.link(pcie[i], pcie[pick(0, i - 1)], LinkKind::Pcie);
    }
    if (roots > 1) sketch_.link(pcie[1], pcie[0], LinkKind::Pcie);
    std::vector<NodeId> gpus;
    for (std::uint64_t i = 0; i < pick(1, 3); ++i) {
      gpus.push_back(sketch_.node(name + ".g" + std::to_string(i), NodeKind::Gpu, host));
      sketch_.link(gpus[i], any(pcie), LinkKind::Pcie);
      if (i > 0 && pick(0, 1) == 0) sketch_.link(gpus[i], gpus[i - 1], LinkKind::NvLink);
    }
    if (pick(0, 1) == 0) {
      const NodeId nv = sketch_.node(name + ".nv", NodeKind::NvSwitch, host);
      for (const NodeId gpu : gpus) sketch_.link(nv, gpu, LinkKind::NvLink);
    }
    const NodeId memory = sketch_.node(name + ".m", NodeKind::HostMemory, host);
    for (const NodeId root : pcie) sketch_.link(memory, root, LinkKind::Memory);
    endpoints.insert(endpoints.end(), gpus.begin(), gpus.end());
    endpoints.push_back(memory);
    for (std::uint64_t i = 0; i < pick(1, 2); ++i) {
      const NodeId nic = sketch_.node(name + ".n" + std::to_string(i), NodeKind::Nic, host);
      nics.push_back(nic);
      sketch_.link(any(pcie), nic, LinkKind::Pcie);
      if (pick(0, 3) == 0) sketch_.link(any(gpus), nic, LinkKind::Pcie);
      for (std::uint64_t up = 0; up < pick(1, 3); ++up) {
        sketch_.link(nic, any(switches), LinkKind::Fabric);
      }
    }
  }

  std::mt19937_64 random_;
  Sketch sketch_;
};

// All shortest paths over links and through nodes that are allowed, in order of their link ids.
Paths all_shortest(const Topology& t, NodeId from, NodeId to,
                   const std::function<bool(const Link&)>& link_allowed,
                   const std::function<bool(const Node&)>& may_relay) {
  Paths found;
  Route route;
  std::set<NodeId> visited{from};
  const std::function<void(NodeId, std::size_t)> search = [&](NodeId at, std::size_t left) {
    if (at == to) {
      if (left == 0) found.push_back(route);
      return;
    }
    if (left == 0 || (at != from && !may_relay(t.node(at)))) return;
    for (std::size_t i = 0; i < t.links().size(); ++i) {
      const Link& link = t.links()[i];
      if (!link.up || !link_allowed(link) || (link.a != at && link.b != at)) continue;
      const NodeId next = link.a == at ? link.b : link.a;
      if (!t.node(next).up || !t.node(at).up || visited.count(next) > 0) continue;
      visited.insert(next);
      route.push_back(ChannelId(LinkId(i), link.b == at));
      search(next, left - 1);
      route.pop_back();
      visited.erase(next);
    }
  };
  for (std::size_t length = 1; length <= 10 && found.empty(); ++length) search(from, length);
  return found;
}

Paths over_pcie(const Topology& t, NodeId from, NodeId to) {
  return all_shortest(
      t, from, to,
      [](const Link& link) { return link.kind == LinkKind::Pcie || link.kind == LinkKind::Memory; },
      [](const Node& node) { return node.kind == NodeKind::PcieSwitch; });
}
Paths over_nvlink(const Topology& t, NodeId from, NodeId to) {
  return all_shortest(
      t, from, to, [](const Link& link) { return link.kind == LinkKind::NvLink; },
      [](const Node& node) { return node.kind == NodeKind::NvSwitch; });
}
Paths over_fabric(const Topology& t, NodeId from, NodeId to) {
  return all_shortest(
      t, from, to,
      [](const Link& link) { return link.kind == LinkKind::Fabric || link.kind == LinkKind::Wan; },
      [](const Node& node) {
        return node.kind == NodeKind::Switch || node.kind == NodeKind::Spine ||
               node.kind == NodeKind::Gateway;
      });
}

// The path that `stream` names, and the number of streams after which paths repeat.
Route named(const Paths& all, std::uint32_t stream) {
  Paths left = all;
  for (std::size_t hop = 0; hop < all.front().size(); ++hop) {
    std::set<ChannelId> next;
    for (const Route& route : left) next.insert(route[hop]);
    const auto n = static_cast<std::uint32_t>(next.size());
    const ChannelId chosen = *std::next(next.begin(), stream % n);
    stream /= n;
    std::erase_if(left, [&](const Route& route) { return route[hop] != chosen; });
  }
  return left.front();
}

void check_connected(const Topology& t, NodeId from, NodeId to, const Route& route) {
  NodeId at = from;
  for (const ChannelId channel : route) {
    ASSERT_EQ(t.tail(channel), at);
    ASSERT_TRUE(t.usable(channel.link()));
    at = t.head(channel);
  }
  ASSERT_EQ(at, to);
}

// Streams of one route are its period apart, and none between them takes it.
TEST(RouterProperty, RoutesComeAgainAfterTheirPeriod) {
  std::uint64_t uneven = 0;  // pairs of which one route comes again sooner than another
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Machine machine(seed);
    const Topology t = machine.build();
    const Router router(t);
    for (const NodeId a : machine.nics) {
      for (const NodeId b : machine.nics) {
        std::set<std::uint32_t> periods;
        for (std::uint32_t stream = 0; stream < 6; ++stream) {
          const std::uint32_t period = router.period(a, b, stream);
          const Route route = router.between(a, b, stream);
          ASSERT_EQ(period == 0, route.empty());
          if (period == 0) break;
          periods.insert(period);
          ASSERT_EQ(router.between(a, b, stream + period * 7), route);
          for (std::uint32_t k = 1; k < period; ++k) {
            ASSERT_NE(router.between(a, b, stream + k), route) << stream << " + " << k;
          }
        }
        if (periods.size() > 1) ++uneven;
      }
    }
  }
  EXPECT_GT(uneven, 50U);
}

TEST(RouterProperty, FabricPathsAreAllTheShortestOnes) {
  std::uint64_t compared = 0;
  std::uint64_t with_choice = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Machine machine(seed);
    const Topology t = machine.build();
    const Router router(t);
    for (const NodeId a : machine.nics) {
      for (const NodeId b : machine.nics) {
        if (a == b) continue;
        const Paths all = over_fabric(t, a, b);
        ASSERT_EQ(router.choices(a, b), all.size());
        ++compared;
        if (all.size() > 1) ++with_choice;
        // An endpoint on each side, if PCIe still joins them to the NICs.
        for (const NodeId from : machine.endpoints) {
          for (const NodeId to : machine.endpoints) {
            if (from == to) continue;
            const Paths in = over_pcie(t, from, a);
            const Paths out = over_pcie(t, b, to);
            for (std::uint32_t stream : {0U, 1U, 2U, 3U, 5U, 7U, 11U, 64U, 4'000'000'000U}) {
              const auto route = router.route(from, to, {a, b, stream});
              ASSERT_EQ(route.has_value(), !in.empty() && !out.empty() && !all.empty());
              if (!route) break;
              check_connected(t, from, to, *route);
              const Route middle = named(all, stream);
              const Route head(route->begin(),
                               route->begin() + static_cast<std::ptrdiff_t>(in.front().size()));
              ASSERT_EQ(head, *std::min_element(in.begin(), in.end()));
              Route expected = head;
              expected.insert(expected.end(), middle.begin(), middle.end());
              const Route tail = *std::min_element(out.begin(), out.end());
              expected.insert(expected.end(), tail.begin(), tail.end());
              ASSERT_EQ(*route, expected);
            }
          }
        }
      }
    }
  }
  // The machines are varied enough for the comparison to mean something.
  EXPECT_GT(compared, 1000U);
  EXPECT_GT(with_choice, 200U);
}

TEST(RouterProperty, PathsInsideHostsAreShortestAndFirst) {
  std::uint64_t nvlinked = 0;
  std::uint64_t pcie = 0;
  for (std::uint64_t seed = 1001; seed <= 1300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Machine machine(seed);
    const Topology t = machine.build();
    const Router router(t);
    for (const NodeId a : machine.endpoints) {
      for (const NodeId b : machine.endpoints) {
        if (a == b) continue;
        const Paths fast = over_nvlink(t, a, b);
        const Paths slow = over_pcie(t, a, b);
        ASSERT_EQ(router.nvlinked(a, b), !fast.empty());
        const auto route = router.route(a, b, {a, b});
        const Paths& expected = fast.empty() ? slow : fast;
        ASSERT_EQ(route.has_value(), !expected.empty());
        if (!route) continue;
        ASSERT_EQ(*route, *std::min_element(expected.begin(), expected.end()));
        ++(fast.empty() ? pcie : nvlinked);
      }
      std::vector<std::pair<std::size_t, NodeId>> near;
      for (const NodeId nic : machine.nics) {
        const Paths paths = over_pcie(t, a, nic);
        if (!paths.empty()) near.emplace_back(paths.front().size(), nic);
      }
      std::sort(near.begin(), near.end());
      std::vector<NodeId> expected;
      for (const auto& [hops, nic] : near) expected.push_back(nic);
      const auto nics = router.nics(a);
      ASSERT_EQ(std::vector<NodeId>(nics.begin(), nics.end()), expected);
    }
  }
  EXPECT_GT(nvlinked, 300U);
  EXPECT_GT(pcie, 300U);
}

}  // namespace
}  // namespace holdfast
