// The binomial pipeline: who sends which block to whom in which step, as pure functions.
//
// After RDMC (Behrens, Jha, Birman and Tremel, "RDMC: A Reliable RDMA Multicast for Large Objects",
// DSN 2018), which takes it from Ganesan and Seshadri, "On Cooperative Content Distribution and the
// Price of Barter" (ICDCS 2005). Positions 0 .. n - 1, of which 0, the root, has all blocks. Of
// n = 2^l positions, position i exchanges blocks with i xor 2^(j mod l) in step j; the last of B
// blocks arrives everywhere after B + l - 1 steps, which is the least for steps in which everyone
// sends and receives at most one block.
//
// Other n: l = floor(log2 n), and each of the first n - 2^l vertices of the hypercube behind the
// root is a pair of twins, neighbours in position. What enters a vertex goes to one of them and on
// to the other l + 1 steps after its number. In full: a vertex sends one block at a time, its
// current one, until the next current one has come in (block b becomes current where bit b mod l of
// the vertex is set). The twin that has the current block sends it; the other one takes what comes
// in and hands over what it alone has. With each current block the two change places, so that here
// too everyone sends and receives at most one block a step, and B + l steps are enough. (Deviates
// from the second paper, which chooses the sending twin by what the two happen to hold: then the
// trees of blocks do not repeat.)
//
// The way of block b, its tree, depends on b mod period() only, but for the last block, which has
// one of its own. All functions are O(l). Deterministic; const members may be called from several
// threads.
//
//   const BinomialSchedule schedule(16, 32);
//   for (std::uint32_t j = 0; j < schedule.steps(); ++j) {
//     if (const auto send = schedule.sent(3, j)) ...  // send->block to send->peer
//   }
#pragma once

#include <cstdint>
#include <optional>

namespace holdfast {

class BinomialSchedule {
 public:
  struct Transfer {
    std::uint32_t peer = 0;  // position
    std::uint32_t block = 0;
  };

  // At least one position and one block. Steps must fit 32 bits.
  BinomialSchedule(std::uint32_t positions, std::uint32_t blocks);

  // B + l - 1 where n is a power of two (0 for the root alone), else B + l.
  [[nodiscard]] std::uint32_t steps() const;
  // What a position sends in a step below steps(), and to whom.
  [[nodiscard]] std::optional<Transfer> sent(std::uint32_t position, std::uint32_t step) const;

  // From whom position > 0 gets the block; consistent with `sent`, but not computed by it.
  [[nodiscard]] std::uint32_t parent(std::uint32_t position, std::uint32_t block) const;
  // Blocks b and b + period() have the same parents everywhere, if neither is the last one: l for
  // powers of two, else 2 l; at least 1.
  [[nodiscard]] std::uint32_t period() const;

 private:
  // A vertex of the hypercube and which of its twins: 0, or 1 for the second.
  struct Place {
    std::uint32_t vertex = 0;
    std::uint32_t twin = 0;
  };
  [[nodiscard]] Place place(std::uint32_t position) const;
  [[nodiscard]] std::uint32_t position(const Place& place) const;
  [[nodiscard]] bool is_pair(std::uint32_t vertex) const { return vertex > 0 && vertex <= pairs_; }
  // Through which twin a block enters the vertex; it also sends the block to other vertices.
  [[nodiscard]] std::uint32_t entry(std::uint32_t vertex, std::uint32_t block) const;
  [[nodiscard]] std::uint32_t entry_position(std::uint32_t vertex, std::uint32_t block) const {
    return position({vertex, entry(vertex, block)});
  }
  // What a vertex sends to another one in a step.
  [[nodiscard]] std::optional<Transfer> sent_by_vertex(std::uint32_t vertex,
                                                       std::uint32_t step) const;

  std::uint32_t blocks_;
  std::uint32_t dimension_;  // l
  std::uint32_t pairs_;      // vertices 1 .. pairs_ are twins
};

}  // namespace holdfast
