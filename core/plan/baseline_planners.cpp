#include "core/plan/baseline_planners.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_builder.hpp"
#include "core/plan/two_tree.hpp"

namespace holdfast {
namespace {

// In the order of the workers.
std::vector<WorkerId> sources_of(const PlanSpace& space, const BlockClass& c) {
  std::vector<WorkerId> sources = serving_holders(space, c);
  std::sort(sources.begin(), sources.end());
  return sources;
}

void refuse_leaves(const PlanSpace& space, const BlockClass& c) {
  for (const WorkerId receiver : c.receivers) {
    if (space.demand().workers[receiver.index()].may_serve) continue;
    throw Error(ErrorCode::Unsupported,
                fmt::format("nccl passes data through every receiver, and '{}' may not serve",
                            space.topology().node(space.node(receiver)).name));
  }
}

}  // namespace

Plan plan_ucx(const PlanSpace& space) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  // Over all classes, so that holders of many small ones share them out too.
  std::vector<std::uint32_t> readers(space.demand().workers.size(), 0);
  for (std::uint32_t k = 0; k < space.demand().classes.size(); ++k) {
    const BlockClass& c = space.demand().classes[k];
    const StripeId stripe = builder.add_stripes(ClassId(k), 1).front();
    std::vector<WorkerId> sources = sources_of(space, c);
    std::stable_sort(sources.begin(), sources.end(), [&](WorkerId a, WorkerId b) {
      return readers[a.index()] < readers[b.index()];
    });
    const Bytes bytes = bytes_of(space.demand(), c);
    for (std::size_t i = 0; i < c.receivers.size(); ++i) {
      const WorkerId source = sources[i % sources.size()];
      ++readers[source.index()];
      builder.add_edge(stripe, c.receivers[i], source, paths.lay(source, c.receivers[i], bytes));
    }
  }
  return std::move(builder).finish();
}

Plan plan_nccl(const PlanSpace& space, NcclAlgorithm algorithm) {
  PlanBuilder builder(space);
  PathChooser paths(space);
  const bool ring = algorithm == NcclAlgorithm::Ring;
  for (std::uint32_t k = 0; k < space.demand().classes.size(); ++k) {
    const BlockClass& c = space.demand().classes[k];
    refuse_leaves(space, c);
    const WorkerId root = sources_of(space, c).front();
    const auto count = static_cast<std::uint32_t>(c.receivers.size());
    const Bytes bytes = bytes_of(space.demand(), c) / (ring ? 1 : 2);
    const auto at = [&](std::uint32_t rank) { return rank == 0 ? root : c.receivers[rank - 1]; };
    TreeSide side = TreeSide::First;
    for (const StripeId stripe : builder.add_stripes(ClassId(k), ring ? 1 : 2)) {
      std::vector<std::uint32_t> parents;
      if (!ring) parents = two_tree_parents(count, side);
      for (std::uint32_t rank = 1; rank <= count; ++rank) {
        const WorkerId parent = at(ring ? rank - 1 : parents[rank]);
        builder.add_edge(stripe, at(rank), parent, paths.lay(parent, at(rank), bytes));
      }
      side = TreeSide::Second;
    }
  }
  return std::move(builder).finish();
}

}  // namespace holdfast
