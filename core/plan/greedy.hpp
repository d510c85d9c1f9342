// The baseline that decides while the update runs: each receiver reads a piece of at most 64 blocks
// from the source that looks best now, and asks again when the piece is complete. It is what the
// TensorHub paper (arXiv 2604.09107) describes of its reads: nearest, least loaded, receivers that
// are still receiving included.
//
// Rules
//   1. A class is cut into pieces of 64 consecutive blocks in its own order, the last one shorter.
//   A
//      receiver takes the pieces of a class in order, its classes in ascending order, one request
//      at a time.
//   2. A source is usable for a piece if it may serve, a path joins it to the receiver, and it
//   holds
//      the class or was itself given the piece before (it has it, or reads it and passes blocks on
//      as they arrive).
//   3. Of the usable sources with fewer readers than the cap: least PlanSpace::distance, then
//   fewest
//      readers (open requests, of any class), then lowest id.
//   4. If there is none for the first unfinished class, the next class is tried; if there is none
//   at
//      all, the receiver waits. After each request that ends, who waits is tried in the order in
//      which they began to wait (the one whose request ended last), from the first again after each
//      one that was served.
//
// No cycle of waits: by rule 2 a source was given the piece before its reader, so that the requests
// for one piece form trees below holders; requests never wait for other pieces, and only requests
// that run take up readers. So while something is missing, something runs.
//
// Pure: no clock, no randomness; the same calls give the same answers.
//
//   GreedyPolicy policy(space, 2U);
//   for (const GreedyRequest& request : policy.start()) ...
//   for (const GreedyRequest& request : policy.finished(reader)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/path_chooser.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

inline constexpr std::uint32_t kGreedyPiece = 64;

// The blocks of a class's piece.
[[nodiscard]] BlockSelection greedy_piece(const Demand& demand, ClassId block_class,
                                          std::uint32_t piece);
[[nodiscard]] std::uint32_t greedy_pieces(const Demand& demand, ClassId block_class);
// A plan with a stripe for each piece of each class, by class and piece, all without edges.
[[nodiscard]] Plan greedy_outline(const Topology& topology, const Demand& demand);

// `reader` is to read a piece from `source`.
struct GreedyRequest {
  WorkerId reader;
  WorkerId source;
  ClassId block_class;
  std::uint32_t piece = 0;
  bool source_has_all = false;  // now: a holder, or its own request for the piece has ended
  friend bool operator==(const GreedyRequest&, const GreedyRequest&) = default;
};

class GreedyPolicy {
 public:
  // Keeps a reference to `space`. `cap`: readers that a source may have at a time, above zero;
  // nothing: as many as come. Throws Error(Unsupported) if no holder of a class may serve.
  GreedyPolicy(const PlanSpace& space, std::optional<std::uint32_t> cap);

  // All receivers ask, in the order of their ids. To be called once, first.
  // O(receivers x members of a class), like everything below in the worst case.
  [[nodiscard]] std::vector<GreedyRequest> start();
  // All blocks of the reader's open request have been verified. Precondition: it has one.
  // O(members of a class) without a cap; with one also O(waiting) for each request that it starts.
  [[nodiscard]] std::vector<GreedyRequest> finished(WorkerId reader);

  [[nodiscard]] std::uint32_t readers(WorkerId source) const { return readers_[source.index()]; }
  [[nodiscard]] const std::vector<WorkerId>& waiting() const { return waiting_; }
  [[nodiscard]] std::uint64_t missing_pieces() const { return missing_; }  // not finished

 private:
  // A class as its holders and receivers: parallel lists in domain order.
  struct Members {
    std::uint32_t pieces = 0;
    std::vector<WorkerId> workers;
    std::vector<std::uint32_t> given;  // pieces given so far: the first so many; holders: all
    // By distance 0..3 and member: the members that are at most so far away are those from `first`
    // to before `end`. Farther ones are all.
    std::vector<std::uint32_t> first[4];
    std::vector<std::uint32_t> end[4];
  };
  // A class that a receiver misses something of.
  struct Want {
    ClassId block_class;
    std::uint32_t member = 0;  // the receiver's own place
  };
  struct Open {
    GreedyRequest request;
    std::uint32_t member = 0;  // of the reader
    bool running = false;
  };

  void add_class(ClassId block_class, const BlockClass& c);
  void find_ranges(Members& members) const;
  [[nodiscard]] bool is_free(WorkerId source) const;
  [[nodiscard]] bool joined(WorkerId source, WorkerId reader) const;
  [[nodiscard]] std::optional<WorkerId> choose(const Members& members, std::uint32_t member) const;
  [[nodiscard]] bool may_profit(WorkerId reader) const;
  bool ask(WorkerId reader, std::vector<GreedyRequest>& out);
  void serve_waiting(std::vector<GreedyRequest>& out);

  const PlanSpace& space_;
  std::optional<std::uint32_t> cap_;
  std::vector<Members> classes_;
  std::vector<std::vector<Want>> wants_;  // by worker, ascending by class
  std::vector<std::uint32_t> readers_;    // by worker
  std::vector<Open> open_;                // by worker
  std::vector<WorkerId> waiting_;         // since longest first
  std::vector<WorkerId> news_;            // sources that became usable or free since all were tried
  std::uint64_t missing_ = 0;
};

}  // namespace holdfast
