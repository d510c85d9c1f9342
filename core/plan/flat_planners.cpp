#include "core/plan/flat_planners.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/plan/binomial_schedule.hpp"
#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/two_tree.hpp"

namespace holdfast {
namespace {

// parents[i] is the position (0: the holder) from which position i of a holder's part reads.
using Parents = std::vector<std::uint32_t>;

// Joins each holder to its part of the relays by `parents_of(part size)`, then hangs the receivers
// that may not serve under holders and relays in turn.
template <class ParentsOf, class PathOf>
void add_trees(const PlanSpace& space, PlanBuilder& builder, StripeId stripe, const BlockClass& c,
               const ParentsOf& parents_of, const PathOf& path_of) {
  const std::vector<WorkerId> holders = serving_holders(space, c);
  const SplitReceivers receivers = split_receivers(space, c);
  const std::vector<WorkerId>& relays = receivers.relays;
  const std::vector<WorkerId>& leaves = receivers.leaves;
  const std::vector<Part> parts = equal_parts(relays.size(), holders.size());
  for (std::size_t h = 0; h < holders.size(); ++h) {
    const Parents parents = parents_of(parts[h].count);
    const auto at = [&](std::uint32_t position) {
      return position == 0 ? holders[h] : relays[parts[h].first + position - 1];
    };
    for (std::uint32_t i = 1; i <= parts[h].count; ++i) {
      builder.add_edge(stripe, at(i), at(parents[i]), path_of(at(parents[i]), at(i)));
    }
  }
  std::vector<WorkerId> sources = relays.empty() ? holders : relays;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const WorkerId parent = sources[i * sources.size() / leaves.size()];
    builder.add_edge(stripe, leaves[i], parent, path_of(parent, leaves[i]));
  }
}

// The same with a path of its own for each edge.
template <class ParentsOf>
void add_trees(const PlanSpace& space, PathChooser& paths, PlanBuilder& builder, StripeId stripe,
               const BlockClass& c, Bytes bytes, const ParentsOf& parents_of) {
  add_trees(space, builder, stripe, c, parents_of,
            [&](WorkerId parent, WorkerId child) { return paths.lay(parent, child, bytes); });
}

using PathOfPair = std::map<std::pair<WorkerId, WorkerId>, Path>;  // parent, child

std::uint32_t classes_of(const PlanSpace& space) {
  return static_cast<std::uint32_t>(space.demand().classes.size());
}

}  // namespace

Plan plan_star(const PlanSpace& space) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  for (std::uint32_t k = 0; k < classes_of(space); ++k) {
    const BlockClass& c = space.demand().classes[k];
    const StripeId stripe = builder.add_stripes(ClassId(k), 1).front();
    const std::vector<WorkerId> holders = serving_holders(space, c);
    const Bytes bytes = bytes_of(space.demand(), c);
    std::map<WorkerId, std::uint32_t> readers;
    for (const WorkerId receiver : c.receivers) {
      const auto cost = [&](WorkerId h) {
        return std::tuple(space.distance(h, receiver), readers[h], h);
      };
      WorkerId best = holders.front();
      for (const WorkerId h : holders) {
        if (cost(h) < cost(best)) best = h;
      }
      ++readers[best];
      builder.add_edge(stripe, receiver, best, paths.lay(best, receiver, bytes));
    }
  }
  return std::move(builder).finish();
}

Plan plan_chain(const PlanSpace& space) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  for (std::uint32_t k = 0; k < classes_of(space); ++k) {
    const StripeId stripe = builder.add_stripes(ClassId(k), 1).front();
    const BlockClass& c = space.demand().classes[k];
    add_trees(space, paths, builder, stripe, c, bytes_of(space.demand(), c), [](std::uint32_t n) {
      Parents parents(n + 1, 0);
      for (std::uint32_t i = 1; i <= n; ++i) parents[i] = i - 1;
      return parents;
    });
  }
  return std::move(builder).finish();
}

Plan plan_binomial(const PlanSpace& space) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  for (std::uint32_t k = 0; k < classes_of(space); ++k) {
    const BlockClass& c = space.demand().classes[k];
    const std::uint32_t blocks = block_count(c);
    std::uint32_t period = 1;
    for (const Part& part :
         equal_parts(split_receivers(space, c).relays.size(), serving_holders(space, c).size())) {
      period = std::lcm(period, BinomialSchedule(part.count + 1, blocks).period());
    }
    const std::uint32_t last = blocks - 1;
    const Bytes share = bytes_of(space.demand(), c) / period;
    PathOfPair path_of_pair;
    for (std::uint32_t b = 0; b < std::min(period, last) + 1; ++b) {
      const bool of_its_own = b == std::min(period, last);
      const StripeId stripe =
          builder.add_stripe(ClassId(k), of_its_own ? BlockSelection{last, 1, blocks}
                                                    : BlockSelection{b, period, last});
      add_trees(
          space, builder, stripe, c,
          [&](std::uint32_t n) {
            const BinomialSchedule schedule(n + 1, blocks);
            Parents parents(n + 1, 0);
            for (std::uint32_t i = 1; i <= n; ++i) {
              parents[i] = schedule.parent(i, of_its_own ? last : b);
            }
            return parents;
          },
          [&](WorkerId parent, WorkerId child) {
            const auto [known, is_new] = path_of_pair.try_emplace({parent, child});
            if (is_new) known->second = paths.any(parent, child, share);
            paths.charge(parent, child, known->second, share);
            return known->second;
          });
    }
  }
  return std::move(builder).finish();
}

Plan plan_two_tree(const PlanSpace& space) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  for (std::uint32_t k = 0; k < classes_of(space); ++k) {
    const BlockClass& c = space.demand().classes[k];
    const Bytes half = bytes_of(space.demand(), c) / 2;
    TreeSide side = TreeSide::First;
    for (const StripeId stripe : builder.add_stripes(ClassId(k), 2)) {
      add_trees(space, paths, builder, stripe, c, half,
                [side](std::uint32_t n) { return two_tree_parents(n, side); });
      side = TreeSide::Second;
    }
  }
  return std::move(builder).finish();
}

}  // namespace holdfast
