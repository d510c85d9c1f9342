// The rollouts that one replica generates at a time. Each takes its drawn number of tokens, and all
// of them stand still together while the replica has no weights to run.
//
//   RolloutSlots slots(64, lengths, milliseconds(20), Random(seed, replica));
//   slots.resume(now);
//   slots.begin(slots.free());
//   slots.finish(slots.next());  // how many ended in that moment
//
// A token takes the same time whatever the number of rollouts: decoding waits for memory, not for
// arithmetic. What is kept of a rollout while it stands still (its cache) costs nothing here.
// Deterministic for a stream of random numbers. O(log slots) a rollout.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "core/units.hpp"
#include "core/workload/distribution.hpp"
#include "core/workload/random.hpp"

namespace holdfast {

class RolloutSlots {
 public:
  // `lengths` in tokens; a rollout has one at least. Nothing is generated before `resume`.
  RolloutSlots(std::uint32_t slots, Distribution lengths, Time token_time, Random random);

  // Generation goes on, or stands still, from `now` on. `now` never falls, in any call.
  void resume(Time now);
  void pause(Time now);
  [[nodiscard]] bool generating() const { return generating_; }

  // Begins at most `most` rollouts in free slots and returns how many. They begin with the last
  // time that was told.
  std::uint32_t begin(std::uint32_t most);
  // Time passes; those that have ended by `now` leave their slots. Returns how many.
  std::uint32_t finish(Time now);
  // All that was begun is lost. Returns how many.
  std::uint32_t drop();

  // When the next one ends; never() while nothing is generated.
  [[nodiscard]] Time next() const;
  [[nodiscard]] std::uint32_t open() const { return static_cast<std::uint32_t>(ends_.size()); }
  [[nodiscard]] std::uint32_t free() const { return slots_ - open(); }

 private:
  void advance(Time now);

  std::uint32_t slots_;
  Distribution lengths_;
  Time token_time_;
  Random random_;
  bool generating_ = false;
  Time last_;       // that was told
  Time generated_;  // time spent generating up to then
  // When each ends, in time spent generating.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> ends_;
};

}  // namespace holdfast
