#include "core/plan/binomial_schedule.hpp"

#include <algorithm>
#include <bit>

namespace holdfast {

BinomialSchedule::BinomialSchedule(std::uint32_t positions, std::uint32_t blocks)
    : blocks_(blocks),
      dimension_(static_cast<std::uint32_t>(std::bit_width(positions)) - 1),
      pairs_(positions - (1U << dimension_)) {}

std::uint32_t BinomialSchedule::steps() const {
  if (dimension_ == 0) return 0;
  return blocks_ + dimension_ - (pairs_ == 0 ? 1 : 0);
}

std::uint32_t BinomialSchedule::period() const {
  // Vertex 1 becomes current once in l blocks: its twins, if it is a pair, change places.
  return std::max(1U, pairs_ == 0 ? dimension_ : 2 * dimension_);
}

std::optional<BinomialSchedule::Transfer> BinomialSchedule::sent(std::uint32_t position,
                                                                 std::uint32_t step) const {
  const Place from = place(position);
  if (step + 1 < blocks_ + dimension_) {
    const auto send = sent_by_vertex(from.vertex, step);
    if (send && entry(from.vertex, send->block) == from.twin) {
      return Transfer{entry_position(send->peer, send->block), send->block};
    }
  }
  if (!is_pair(from.vertex)) return std::nullopt;
  // Between twins: block b in step b + l + 1, and in the last step the two last blocks both ways.
  const auto hand_over = [&](std::uint32_t block) -> std::optional<Transfer> {
    if (entry(from.vertex, block) != from.twin) return std::nullopt;
    return Transfer{this->position({from.vertex, 1 - from.twin}), block};
  };
  const bool last_step = step + 1 == steps();
  if (last_step) {
    if (const auto last = hand_over(blocks_ - 1)) return last;
  }
  if (step <= dimension_ || step - dimension_ - 1 >= blocks_ - 1) return std::nullopt;
  return hand_over(step - dimension_ - 1);
}

std::optional<BinomialSchedule::Transfer> BinomialSchedule::sent_by_vertex(
    std::uint32_t vertex, std::uint32_t step) const {
  const std::uint32_t turn = step % dimension_;
  const std::uint32_t peer = vertex ^ (1U << turn);
  if (peer == 0) return std::nullopt;
  const std::uint32_t last = blocks_ - 1;
  if (vertex == 0) return Transfer{peer, std::min(step, last)};
  // The peer, turned so that the bit in which the two differ is the lowest.
  const std::uint32_t low = (1U << turn) - 1;
  const std::uint32_t turned = (peer >> turn) | ((peer & low) << (dimension_ - turn));
  std::uint32_t ahead = 0;
  if (turned == 1) {
    ahead = dimension_;
  } else if (turned % 2 == 1) {
    ahead = 1 + static_cast<std::uint32_t>(std::countr_zero(turned >> 1));
  }
  if (step + ahead < dimension_) return std::nullopt;
  return Transfer{peer, std::min(step + ahead - dimension_, last)};
}

std::uint32_t BinomialSchedule::parent(std::uint32_t position, std::uint32_t block) const {
  const Place to = place(position);
  if (entry(to.vertex, block) != to.twin) return entry_position(to.vertex, block);
  // A block that does not become current comes from the neighbour across its own bit, for which it
  // is; one that does comes across the bit of the current block before. The last block is taken
  // for whatever would become current next.
  std::uint32_t bit = block % dimension_;
  const bool current = ((to.vertex >> bit) & 1U) != 0 || block == blocks_ - 1;
  if (current) {
    do {
      bit = (bit == 0 ? dimension_ : bit) - 1;
    } while (((to.vertex >> bit) & 1U) == 0);
  }
  return entry_position(to.vertex ^ (1U << bit), block);
}

std::uint32_t BinomialSchedule::entry(std::uint32_t vertex, std::uint32_t block) const {
  if (!is_pair(vertex)) return 0;
  const std::uint32_t bit = block % dimension_;
  // Blocks before this one that became current: the twins have changed places as often.
  const auto before = block / dimension_ * static_cast<std::uint32_t>(std::popcount(vertex)) +
                      static_cast<std::uint32_t>(std::popcount(vertex & ((1U << bit) - 1)));
  const bool current = ((vertex >> bit) & 1U) != 0 || block == blocks_ - 1;
  return (before + (current ? 0 : 1)) % 2;
}

BinomialSchedule::Place BinomialSchedule::place(std::uint32_t position) const {
  if (position == 0) return {0, 0};
  if (position <= 2 * pairs_) return {(position + 1) / 2, (position + 1) % 2};
  return {position - pairs_, 0};
}

std::uint32_t BinomialSchedule::position(const Place& place) const {
  if (place.vertex == 0) return 0;
  return is_pair(place.vertex) ? 2 * place.vertex - 1 + place.twin : place.vertex + pairs_;
}

}  // namespace holdfast
