// A simulation in a forked child, since SimGrid keeps state for the life of a process.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace holdfast::sim {

using ProgressFunction = std::function<void(double fraction)>;

// Does the work in a child and returns the bytes that it made there; `progress` (may be empty)
// hears here what the work reports there. An Error that the work throws is thrown here, without its
// place. Throws Error(Unsupported) if the child ends without a result or is silent for 10 minutes.
[[nodiscard]] std::vector<std::byte> run_in_a_child(
    const ProgressFunction& progress,
    const std::function<std::vector<std::byte>(const ProgressFunction&)>& work);

}  // namespace holdfast::sim
