// The network between workers and the coordinator, in virtual time: frames take a latency, and by
// seed some are lost, some come twice, some overtake others, and some come so late that whoever
// waited for them has given up. Directions are cut and joined again for each worker.
//
// Frames are not tied to lives: what was sent to a worker or a coordinator that died meanwhile
// reaches whoever has taken its place. Incarnations and epochs are there to tell them apart.
//
// Deterministic: the same calls with the same seed bring the same deliveries in the same order;
// those of one moment come in the order in which they were sent. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <variant>
#include <vector>

#include "core/catalog/frames.hpp"
#include "core/storm/dice.hpp"

namespace holdfast::storm {

enum class Direction : std::uint8_t { ToCoordinator, ToWorker };

// From now on, of each frame.
struct ControlFaults {
  std::uint32_t lost_per_mille = 0;
  std::uint32_t doubled_per_mille = 0;
  std::uint32_t late_per_mille = 0;
  Time jitter;  // on top of the latency: frames overtake each other
  Time late;    // most that a late one is late
  friend bool operator==(const ControlFaults&, const ControlFaults&) = default;
};

// What became of a frame that was sent.
struct Fate {
  std::uint32_t copies = 1;  // zero: lost
  bool cut = false;          // lost because of a cut
  bool late = false;
};

struct Delivery {
  WorkerId worker;
  std::variant<ToCoordinator, ToWorker> frame;
};

class ControlNetwork {
 public:
  ControlNetwork(std::size_t workers, std::uint64_t seed, Time latency);

  void set_faults(const ControlFaults& faults) { faults_ = faults; }
  void cut(WorkerId worker, Direction direction, bool cut);
  [[nodiscard]] bool is_cut(WorkerId worker, Direction direction) const;
  [[nodiscard]] bool any_cut() const;

  Fate send(WorkerId worker, ToCoordinator frame, Time now);
  Fate send(WorkerId worker, ToWorker frame, Time now);

  // Time of the next delivery; Time::never() if nothing is on the way.
  [[nodiscard]] Time next() const;
  // The next delivery. Null: a cut has swallowed it, or there is none.
  std::shared_ptr<const Delivery> take();

 private:
  struct Letter {
    Time at;
    std::uint64_t order = 0;
    std::shared_ptr<const Delivery> delivery;
    friend bool operator>(const Letter& a, const Letter& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  template <class Sent>
  Fate post(WorkerId worker, Direction direction, Sent frame, Time now);
  [[nodiscard]] static std::size_t slot(WorkerId worker, Direction direction) {
    return worker.index() * 2 + static_cast<std::size_t>(direction);
  }

  Dice dice_;
  Time latency_;
  ControlFaults faults_;
  std::vector<bool> cuts_;
  std::uint64_t order_ = 0;
  std::priority_queue<Letter, std::vector<Letter>, std::greater<>> letters_;
};

}  // namespace holdfast::storm
