// The machine's monotonic clock in the units of core.
#pragma once

#include "core/units.hpp"

namespace holdfast::real {

// Since the first call in this process: a count of picoseconds since boot would overflow after 106
// days. Never falls. Any thread.
[[nodiscard]] Time steady_now();

}  // namespace holdfast::real
