// Random plans lose random workers; what is mended must lead every survivor back to the blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/plan/planner.hpp"
#include "core/plan/repair.hpp"
#include "tests/plan/cluster.hpp"

namespace holdfast {
namespace {

using testing_support::ClusterShape;
using testing_support::DemandShape;

bool in(const std::vector<WorkerId>& list, WorkerId worker) {
  return std::binary_search(list.begin(), list.end(), worker);
}

struct Case {
  Topology topology;
  Demand demand;
  Plan plan;
  RepairTask task;
};

Case draw(std::mt19937_64& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  ClusterShape shape;
  shape.racks = 1 + below(3);
  shape.hosts = 4 + below(3);
  shape.gpus = shape.nics = 1U << below(3);
  DemandShape wanted;
  wanted.sharded = below(2) == 0;
  wanted.replicas = 1 + below(3);
  wanted.blocks = 4 + below(12);
  Topology topology = make_cluster(shape);
  Demand demand = make_demand(topology, wanted);
  const Router router(topology);
  constexpr Policy kPolicies[] = {Policy::Star, Policy::Chain, Policy::TwoTree,
                                  Policy::Hierarchical};
  Plan plan = make_plan(kPolicies[below(4)], router, demand).plan;
  RepairTask task;
  for (std::uint32_t w = 0; w < demand.workers.size(); ++w) {
    const WorkerId worker(w);
    const bool receives = std::any_of(demand.classes.begin(), demand.classes.end(),
                                      [&](const BlockClass& c) { return in(c.receivers, worker); });
    const std::uint32_t fate = below(12);
    if (fate < 2) {
      task.lost.push_back(worker);
    } else if (fate == 2) {
      task.closed.push_back(worker);
      if (receives) task.readers.push_back(worker);
    } else if (fate < 5 && receives) {
      task.complete.push_back(worker);
    } else if (receives) {
      task.readers.push_back(worker);
    }
  }
  for (std::uint32_t s = 0; s < plan.stripes.size(); ++s) {
    for (const Edge& edge : plan.stripes[s].edges) {
      if (below(20) == 0 && in(task.readers, edge.child)) {
        task.orphans.push_back({edge.child, StripeId(s), edge.parent});
      }
    }
  }
  for (const WorkerId worker : task.readers) {
    if (below(15) == 0) task.slow.push_back(worker);
  }
  return {std::move(topology), std::move(demand), std::move(plan), std::move(task)};
}

// Whom each child reads from in a stripe now.
std::map<WorkerId, WorkerId> parents_of(const Case& c, const Repair& repair, StripeId stripe) {
  std::map<WorkerId, WorkerId> parents;
  for (const Edge& edge : c.plan.stripes[stripe.index()].edges) parents[edge.child] = edge.parent;
  for (const MendedEdge& mended : repair.edges) {
    if (mended.stripe == stripe) parents[mended.edge.child] = mended.edge.parent;
  }
  return parents;
}

bool is_root(const Case& c, StripeId stripe, WorkerId worker,
             const std::map<WorkerId, WorkerId>& parents) {
  if (in(c.task.lost, worker)) return false;
  const BlockClass& block_class =
      c.demand.classes[c.plan.stripes[stripe.index()].block_class.index()];
  return in(block_class.holders, worker) ||
         (in(c.task.complete, worker) && parents.contains(worker));
}

TEST(Repair, LeadsEverySurvivorBackToTheBlocks) {
  std::uint64_t mended_edges = 0;
  std::uint64_t unmended = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Case c = draw(random);
    const Router router(c.topology);
    const Repair repair = mend(router, c.demand, c.plan, c.task);
    mended_edges += repair.edges.size();
    unmended += repair.unmended.size();
    for (std::uint32_t s = 0; s < c.plan.stripes.size(); ++s) {
      const StripeId stripe(s);
      const auto parents = parents_of(c, repair, stripe);
      for (const WorkerId reader : c.task.readers) {
        if (!parents.contains(reader)) continue;
        WorkerId at = reader;
        std::size_t steps = 0;
        while (!is_root(c, stripe, at, parents) && !in(c.task.lost, at) && parents.contains(at) &&
               steps <= parents.size()) {
          at = parents.at(at);
          ++steps;
        }
        ASSERT_LE(steps, parents.size()) << "a circle of waits at " << reader.value();
        if (is_root(c, stripe, at, parents)) continue;
        // Somebody on the way found nobody: nobody could be found.
        const bool somebody = std::any_of(parents.begin(), parents.end(), [&](const auto& p) {
          return is_root(c, stripe, p.first, parents) && !in(c.task.closed, p.first);
        });
        const auto& holders = c.demand.classes[c.plan.stripes[s].block_class.index()].holders;
        const bool holder = std::any_of(holders.begin(), holders.end(), [&](WorkerId h) {
          return !in(c.task.lost, h) && !in(c.task.closed, h);
        });
        EXPECT_FALSE(somebody || holder) << "reader " << reader.value() << " stripe " << s;
        EXPECT_FALSE(repair.unmended.empty());
      }
    }
    for (const MendedEdge& mended : repair.edges) {
      const Edge& edge = mended.edge;
      EXPECT_TRUE(in(c.task.readers, edge.child));
      EXPECT_FALSE(in(c.task.lost, edge.parent));
      EXPECT_FALSE(in(c.task.closed, edge.parent));
      EXPECT_TRUE(router.route(c.demand.workers[edge.parent.index()].node,
                               c.demand.workers[edge.child.index()].node, edge.path));
      const auto parents = parents_of(c, repair, mended.stripe);
      EXPECT_EQ(mended.parent_has_all, is_root(c, mended.stripe, edge.parent, parents));
    }
  }
  // The draw is worth something.
  EXPECT_GT(mended_edges, 1'000U);
  EXPECT_GT(unmended, 10U);
}

TEST(Repair, MovesNobodyElse) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Case c = draw(random);
    const Router router(c.topology);
    for (const MendedEdge& mended : mend(router, c.demand, c.plan, c.task).edges) {
      const auto& edges = c.plan.stripes[mended.stripe.index()].edges;
      const auto old = std::find_if(edges.begin(), edges.end(),
                                    [&](const Edge& e) { return e.child == mended.edge.child; });
      ASSERT_NE(old, edges.end());
      const bool orphan =
          std::any_of(c.task.orphans.begin(), c.task.orphans.end(), [&](const LostEdge& lost) {
            return lost.child == mended.edge.child && lost.stripe == mended.stripe;
          });
      EXPECT_TRUE(orphan || in(c.task.lost, old->parent) || in(c.task.slow, old->parent));
      if (!in(c.task.slow, old->parent)) {
        EXPECT_NE(mended.edge.parent, old->parent);
      }
    }
  }
}

// A tree that uses each port fully: what the dead worker no longer gets is what its children need.
TEST(Repair, SpreadsOrphansOverPortsThatAreFree) {
  ClusterShape shape;
  shape.hosts = 16;
  shape.gpus = shape.nics = 1;
  const Topology topology = make_cluster(shape);
  DemandShape wanted;
  wanted.blocks = 64;
  const Demand demand = make_demand(topology, wanted);
  const Router router(topology);
  const Plan plan = make_plan(Policy::TwoTree, router, demand).plan;
  // Somebody in the middle of a tree.
  std::map<WorkerId, int> children;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) ++children[edge.parent];
  }
  const WorkerId holder = demand.classes[0].holders[0];
  WorkerId dead;
  for (const auto& [worker, count] : children) {
    if (worker != holder && count == 2) dead = worker;
  }
  ASSERT_TRUE(dead.valid());
  RepairTask task;
  task.lost = {dead};
  for (const WorkerId worker : demand.classes[0].receivers) {
    if (worker != dead) task.readers.push_back(worker);
  }
  const Repair repair = mend(router, demand, plan, task);
  EXPECT_EQ(repair.edges.size(), 2U);
  std::map<WorkerId, int> after;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      if (edge.child != dead && edge.parent != dead) ++after[edge.parent];
    }
  }
  for (const MendedEdge& mended : repair.edges) ++after[mended.edge.parent];
  for (const auto& [worker, count] : after) EXPECT_LE(count, 2) << worker.value();
}

}  // namespace
}  // namespace holdfast
