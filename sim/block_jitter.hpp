// Block times that vary: a read takes (1 + x) times as long as its share of the links would give,
// with x drawn evenly from [-width, +width], so that times stay the same on average.
//
// It is done by the amount: the flow of a block of B bytes carries B x (1 + x) over its links. So a
// slow block costs the links of its path the time that it takes (others get less meanwhile), and
// sharing stays what it is. What meters count is the payload, B: on a link that is full, the bytes
// of a short time may differ from what its capacity allows by as much as x does on average over
// them, either way, and a whole run may be faster than a bound made of nominal capacities by the
// luck of its draw (less, the more blocks there are).
//
// x is a function of the seed, the reader, its source, the path and where the block lies in the
// source's memory; not of when or how often it is read. So no order of events changes what is
// drawn, and two policies that move one block along one path draw alike.
#pragma once

#include <cstdint>

#include "core/ids.hpp"
#include "core/topology/router.hpp"
#include "core/units.hpp"

namespace holdfast::sim {

class BlockJitter {
 public:
  BlockJitter() = default;  // none: amounts are what they are
  // `width` in millionths, below 1'000'000.
  BlockJitter(std::uint32_t width, std::uint64_t seed) : width_(width), seed_(seed) {}

  // A number for who reads from whom over which path.
  [[nodiscard]] std::uint64_t connection(WorkerId reader, WorkerId source, const Path& path) const;
  // What the flow of `bytes` at `offset` of the source's memory carries; at least one byte of some.
  [[nodiscard]] Bytes amount(Bytes bytes, std::uint64_t connection, std::uint64_t offset) const;

 private:
  std::uint32_t width_ = 0;
  std::uint64_t seed_ = 0;
};

// How much of `bytes` has arrived when `moved` of the flow's `amount` has.
[[nodiscard]] Bytes payload_of(Bytes bytes, Bytes moved, Bytes amount);

}  // namespace holdfast::sim
