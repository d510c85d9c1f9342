// How one thread ends another's wait: a level, with a descriptor that is readable after a rise.
//
// Whoever has something for the waiting thread raises the level; the waiting thread lowers it once
// it has taken all. A wait begins with a look at the level, so no rise is missed.
#pragma once

#include <atomic>

#include "real/descriptor.hpp"

namespace holdfast::real {

class WakeUp {
 public:
  // Throws Error(Unsupported) if the system has no descriptor left.
  WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  ~WakeUp() = default;

  // Any thread.
  void raise();
  [[nodiscard]] bool raised() const { return raised_.load(std::memory_order_acquire); }
  // The waiting thread.
  void lower() { raised_.store(false, std::memory_order_release); }
  [[nodiscard]] int descriptor() const { return event_.get(); }
  // Makes the descriptor unreadable again; the level stays.
  void drain();

 private:
  Descriptor event_;
  std::atomic<bool> raised_{false};
};

}  // namespace holdfast::real
