#include "core/storm/control_network.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::storm {

ControlNetwork::ControlNetwork(std::size_t workers, std::uint64_t seed, Time latency)
    : dice_(seed, 0xc0), latency_(latency), cuts_(workers * 2) {}

void ControlNetwork::cut(WorkerId worker, Direction direction, bool cut) {
  cuts_[slot(worker, direction)] = cut;
}

bool ControlNetwork::is_cut(WorkerId worker, Direction direction) const {
  return cuts_[slot(worker, direction)];
}

bool ControlNetwork::any_cut() const {
  return std::find(cuts_.begin(), cuts_.end(), true) != cuts_.end();
}

template <class Sent>
Fate ControlNetwork::post(WorkerId worker, Direction direction, Sent frame, Time now) {
  Fate fate;
  fate.cut = is_cut(worker, direction);
  const bool lost = dice_.chance(faults_.lost_per_mille);
  const bool doubled = dice_.chance(faults_.doubled_per_mille);
  fate.late = dice_.chance(faults_.late_per_mille);
  fate.copies = lost || fate.cut ? 0 : (doubled ? 2 : 1);
  const auto delivery = std::make_shared<const Delivery>(Delivery{worker, std::move(frame)});
  for (std::uint32_t copy = 0; copy < fate.copies; ++copy) {
    Time at = now + latency_ + dice_.between(Time{}, faults_.jitter);
    if (fate.late && copy == 0) at += dice_.between(Time{}, faults_.late);
    letters_.push({at, order_++, delivery});
  }
  return fate;
}

Fate ControlNetwork::send(WorkerId worker, ToCoordinator frame, Time now) {
  return post(worker, Direction::ToCoordinator, std::move(frame), now);
}

Fate ControlNetwork::send(WorkerId worker, ToWorker frame, Time now) {
  return post(worker, Direction::ToWorker, std::move(frame), now);
}

Time ControlNetwork::next() const {
  return letters_.empty() ? Time::never() : letters_.top().at;
}

std::shared_ptr<const Delivery> ControlNetwork::take() {
  if (letters_.empty()) return nullptr;
  auto delivery = letters_.top().delivery;
  letters_.pop();
  const Direction direction = std::holds_alternative<ToCoordinator>(delivery->frame)
                                  ? Direction::ToCoordinator
                                  : Direction::ToWorker;
  if (is_cut(delivery->worker, direction)) return nullptr;
  return delivery;
}

}  // namespace holdfast::storm
