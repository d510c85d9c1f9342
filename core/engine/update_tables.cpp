#include "core/engine/update_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/plan/alternates.hpp"
#include "core/plan/channel_load.hpp"

namespace holdfast {
namespace {

void check_ids(const Demand& demand, const Plan& plan) {
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    const Stripe& stripe = plan.stripes[s];
    const auto place = [s] {
      Place at;
      at.pointer = fmt::format("/plan/stripes/{}", s);
      return at;
    };
    if (stripe.block_class.index() >= demand.classes.size()) {
      throw Error(ErrorCode::BadPlan,
                  fmt::format("class {} is not there; the demand has {} classes",
                              stripe.block_class.value(), demand.classes.size()),
                  place());
    }
    const std::uint32_t blocks = block_count(demand.classes[stripe.block_class.index()]);
    if (stripe.blocks.step == 0 || stripe.blocks.end > blocks) {
      throw Error(ErrorCode::BadPlan,
                  fmt::format("the selection ends at {} in steps of {}; the class has {} blocks",
                              stripe.blocks.end, stripe.blocks.step, blocks),
                  place());
    }
    for (const Edge& edge : stripe.edges) {
      if (edge.child.index() >= demand.workers.size() ||
          edge.parent.index() >= demand.workers.size()) {
        throw Error(ErrorCode::BadPlan,
                    fmt::format("an edge joins workers {} and {}; the demand has {}",
                                edge.parent.value(), edge.child.value(), demand.workers.size()),
                    place());
      }
    }
  }
}

}  // namespace

Time have_interval(const Router& router, const Route& route, Bytes block) {
  const Time time = transfer_time(block, router.bottleneck(route));
  return time == Time::never() ? Time{} : time / 4;
}

UpdateTables::UpdateTables(const Demand& demand, const Plan& plan, const Router* router,
                           std::vector<std::uint64_t> digests, std::uint32_t transfer)
    : version_(demand.version),
      transfer_(transfer),
      verify_(demand.verify),
      block_bytes_(demand.block_bytes),
      digests_(std::move(digests)) {
  if (verify_ && digests_.size() != block_bytes_.size()) {
    throw Error(ErrorCode::BadValue,
                fmt::format("{} digests for {} blocks; give one for each block of the version",
                            digests_.size(), block_bytes_.size()));
  }
  check_ids(demand, plan);
  holders_.reserve(demand.classes.size());
  for (const BlockClass& c : demand.classes) holders_.push_back(c.holders);
  std::size_t edges = 0;
  for (const Stripe& stripe : plan.stripes) edges += stripe.edges.size();
  edges_.reserve(edges);
  first_block_.push_back(0);
  first_edge_.push_back(0);
  for (const Stripe& stripe : plan.stripes) add_stripe(demand, stripe);
  if (router != nullptr) plan_times(demand, *router);
  for (const Bytes bytes : block_bytes_) largest_block_ = std::max(largest_block_, bytes);
  index_edges(demand.workers.size());
}

void UpdateTables::add_stripe(const Demand& demand, const Stripe& stripe) {
  const StripeId id(class_of_.size());
  class_of_.push_back(stripe.block_class);
  const std::vector<BlockId> blocks = blocks_of(demand, stripe);
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  first_block_.push_back(static_cast<std::uint32_t>(blocks_.size()));
  const std::size_t first = edges_.size();
  for (const Edge& edge : stripe.edges) {
    TableEdge& entry = edges_.emplace_back();
    entry.stripe = id;
    entry.child = edge.child;
    entry.parent = edge.parent;
    entry.path = edge.path;
    entry.window = std::max(edge.window, 1U);
    entry.from_holder = holds(edge.parent, id);
    entry.alternate = edge.alternate;
  }
  std::sort(edges_.begin() + static_cast<std::ptrdiff_t>(first), edges_.end(),
            [](const TableEdge& a, const TableEdge& b) { return a.child < b.child; });
  first_edge_.push_back(static_cast<std::uint32_t>(edges_.size()));
}

// Fills in what follows from routes. An edge's share of its busiest channel is in the measure of
// its bytes: all edges of a channel that is busy from beginning to end go on until the end.
void UpdateTables::plan_times(const Demand& demand, const Router& router) {
  const auto node = [&](WorkerId w) { return demand.workers[w.index()].node; };
  struct StripeSize {
    Bytes all;
    Bytes largest;
  };
  std::vector<StripeSize> sizes(stripes());
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    for (const BlockId block : blocks(StripeId(s))) {
      sizes[s].all += block_bytes_[block.index()];
      sizes[s].largest = std::max(sizes[s].largest, block_bytes_[block.index()]);
    }
  }
  ChannelLoad load(router.topology());
  std::vector<ChannelId> channels;  // of all routes, one after the other
  std::vector<std::size_t> first{0};
  first.reserve(edges_.size() + 1);
  for (TableEdge& edge : edges_) {
    const StripeSize& size = sizes[edge.stripe.index()];
    if (const auto route = router.route(node(edge.parent), node(edge.child), edge.path)) {
      channels.insert(channels.end(), route->begin(), route->end());
      load.add(*route, size.all);
      edge.have_interval = have_interval(router, *route, size.largest);
    }
    first.push_back(channels.size());
    if (edge.alternate.valid() && edge.alternate.index() < demand.workers.size()) {
      edge.alternate_path =
          path_to_alternate(router, node(edge.alternate), node(edge.child), edge.path);
    }
  }
  constexpr double kPicoseconds = 1e12;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    double busiest = 0;
    for (std::size_t k = first[e]; k < first[e + 1]; ++k) {
      busiest = std::max(busiest, load.time(channels[k]));
    }
    const StripeSize& size = sizes[edges_[e].stripe.index()];
    if (size.all == Bytes()) continue;
    const double part =
        static_cast<double>(size.largest.count()) / static_cast<double>(size.all.count());
    edges_[e].block_time = Time(static_cast<std::int64_t>(busiest * part * kPicoseconds));
  }
}

void UpdateTables::index_edges(std::size_t workers) {
  const auto index = [&](auto worker_of, std::vector<std::uint32_t>& first,
                         std::vector<std::uint32_t>& numbers) {
    first.assign(workers + 1, 0);
    for (const TableEdge& edge : edges_) ++first[worker_of(edge).index() + 1];
    for (std::size_t w = 0; w < workers; ++w) first[w + 1] += first[w];
    numbers.resize(edges_.size());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::uint32_t e = 0; e < edges_.size(); ++e) {
      numbers[next[worker_of(edges_[e]).index()]++] = e;
    }
  };
  index([](const TableEdge& edge) { return edge.child; }, first_in_, in_);
  index([](const TableEdge& edge) { return edge.parent; }, first_out_, out_);
}

std::span<const BlockId> UpdateTables::blocks(StripeId stripe) const {
  const std::uint32_t first = first_block_[stripe.index()];
  return std::span(blocks_).subspan(first, first_block_[stripe.index() + 1] - first);
}

std::span<const std::uint32_t> UpdateTables::in_edges(WorkerId worker) const {
  const std::uint32_t first = first_in_[worker.index()];
  return std::span(in_).subspan(first, first_in_[worker.index() + 1] - first);
}

std::span<const std::uint32_t> UpdateTables::out_edges(WorkerId worker) const {
  const std::uint32_t first = first_out_[worker.index()];
  return std::span(out_).subspan(first, first_out_[worker.index() + 1] - first);
}

bool UpdateTables::holds(WorkerId worker, StripeId stripe) const {
  const std::vector<WorkerId>& holders = holders_[class_of_[stripe.index()].index()];
  return std::binary_search(holders.begin(), holders.end(), worker);
}

const TableEdge* UpdateTables::edge(StripeId stripe, WorkerId child) const {
  const auto begin = edges_.begin() + first_edge_[stripe.index()];
  const auto end = edges_.begin() + first_edge_[stripe.index() + 1];
  const auto found = std::lower_bound(
      begin, end, child, [](const TableEdge& edge, WorkerId id) { return edge.child < id; });
  return found != end && found->child == child ? &*found : nullptr;
}

}  // namespace holdfast
