// One update as the engines of all its workers see it: immutable, built once, shared.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"
#include "core/units.hpp"

namespace holdfast {

// An edge of the plan with what the engine needs to know beside it.
struct TableEdge {
  StripeId stripe;
  WorkerId child;
  WorkerId parent;
  Path path;  // from the parent's port to the child's
  std::uint32_t window = 2;
  bool from_holder = false;  // the parent has all blocks from the start
  // Between two `have` messages on this edge: a quarter of the time that the stripe's largest block
  // takes at the bottleneck of the route. Edges that share the route are not counted: the true
  // block time is never shorter, so that a message is never held back for longer than planned.
  Time have_interval;
  // What the plan lets the stripe's largest block take, if the whole plan goes at the pace of the
  // busiest channel on this edge's route; zero if unknown. Who is much slower is slow.
  Time block_time;
  WorkerId alternate;   // may be invalid
  Path alternate_path;  // from the alternate's port to the child's; default where there is none
};

// A quarter of the time that `block` takes at the bottleneck of the route:
// TableEdge::have_interval.
[[nodiscard]] Time have_interval(const Router& router, const Route& route, Bytes block);

class UpdateTables {
 public:
  // `digests`: one for each block of the version, needed where the demand says verify (a simulated
  // memory answers zero to every digest job: give it zeros). `router` may be null: have intervals
  // and block times are then zero (the engine's least interval counts, nobody is slow), and
  // alternates have no path.
  // The plan must have passed the checker. Throws Error(BadValue) for a digest table of the wrong
  // length, Error(BadPlan) for ids that are not there.
  // `transfer` tells transfers of one version apart in messages: all its workers give the same.
  // O(edges x (log holders + route length) + blocks).
  UpdateTables(const Demand& demand, const Plan& plan, const Router* router,
               std::vector<std::uint64_t> digests, std::uint32_t transfer = 0);

  [[nodiscard]] const Version& version() const { return version_; }
  [[nodiscard]] std::uint32_t transfer() const { return transfer_; }
  [[nodiscard]] bool verify() const { return verify_; }
  [[nodiscard]] std::size_t workers() const { return first_in_.size() - 1; }
  [[nodiscard]] std::size_t stripes() const { return first_block_.size() - 1; }
  // The stripe's blocks in its own order, ascending by id.
  [[nodiscard]] std::span<const BlockId> blocks(StripeId stripe) const;
  [[nodiscard]] std::span<const Bytes> block_bytes() const { return block_bytes_; }
  [[nodiscard]] Bytes largest_block() const { return largest_block_; }
  [[nodiscard]] std::uint64_t digest(BlockId block) const { return digests_[block.index()]; }

  [[nodiscard]] std::span<const TableEdge> edges() const { return edges_; }
  // Numbers of the edges that end (start) at a worker, ascending by stripe (then child).
  [[nodiscard]] std::span<const std::uint32_t> in_edges(WorkerId worker) const;
  [[nodiscard]] std::span<const std::uint32_t> out_edges(WorkerId worker) const;
  // True if the worker had all blocks of the stripe from the start. O(log holders).
  [[nodiscard]] bool holds(WorkerId worker, StripeId stripe) const;
  // The edge through which `child` gets the stripe; null if there is none. O(log edges).
  [[nodiscard]] const TableEdge* edge(StripeId stripe, WorkerId child) const;

 private:
  void add_stripe(const Demand& demand, const Stripe& stripe);
  void plan_times(const Demand& demand, const Router& router);
  void index_edges(std::size_t workers);

  Version version_;
  std::uint32_t transfer_ = 0;
  bool verify_ = true;
  std::vector<Bytes> block_bytes_;
  Bytes largest_block_;
  std::vector<std::uint64_t> digests_;
  std::vector<std::uint32_t> first_block_;  // by stripe, one more than stripes
  std::vector<BlockId> blocks_;
  std::vector<std::uint32_t> first_edge_;  // by stripe, one more than stripes
  std::vector<TableEdge> edges_;
  std::vector<std::uint32_t> first_in_;  // by worker, one more than workers
  std::vector<std::uint32_t> in_;
  std::vector<std::uint32_t> first_out_;
  std::vector<std::uint32_t> out_;
  std::vector<ClassId> class_of_;               // by stripe
  std::vector<std::vector<WorkerId>> holders_;  // by class
};

}  // namespace holdfast
