#include "core/workload/rollouts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace holdfast {

RolloutSlots::RolloutSlots(std::uint32_t slots, Distribution lengths, Time token_time,
                           Random random)
    : slots_(slots), lengths_(std::move(lengths)), token_time_(token_time), random_(random) {}

void RolloutSlots::advance(Time now) {
  if (generating_) generated_ += now - last_;
  last_ = now;
}

void RolloutSlots::resume(Time now) {
  advance(now);
  generating_ = true;
}

void RolloutSlots::pause(Time now) {
  advance(now);
  generating_ = false;
}

std::uint32_t RolloutSlots::begin(std::uint32_t most) {
  const std::uint32_t count = std::min(most, free());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto tokens = std::max<std::int64_t>(1, std::llround(lengths_.draw(random_)));
    ends_.push(generated_ + token_time_ * tokens);
  }
  return count;
}

std::uint32_t RolloutSlots::finish(Time now) {
  advance(now);
  std::uint32_t count = 0;
  while (!ends_.empty() && ends_.top() <= generated_) {
    ends_.pop();
    ++count;
  }
  return count;
}

std::uint32_t RolloutSlots::drop() {
  const std::uint32_t lost = open();
  ends_ = {};
  return lost;
}

Time RolloutSlots::next() const {
  if (!generating_ || ends_.empty()) return Time::never();
  return last_ + (ends_.top() - generated_);
}

}  // namespace holdfast
