#include "real/wake_up.hpp"

#include <sys/eventfd.h>

#include <cstdint>

#include "core/error.hpp"

namespace holdfast::real {

WakeUp::WakeUp() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.valid()) {
    throw Error(ErrorCode::Unsupported, "the system gives no event descriptor (too many open?)");
  }
}

void WakeUp::raise() {
  raised_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // A full counter is readable already: nothing to do about a failure.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

void WakeUp::drain() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
}

}  // namespace holdfast::real
