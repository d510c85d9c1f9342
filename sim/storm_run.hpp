// A storm on SimGrid, in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "core/storm/storm.hpp"
#include "sim/storm_network.hpp"

namespace holdfast::sim {

// As storm::storm, whatever the recipe's wire. A process that dies is a violation of the rule
// "crash". Throws Error(Unsupported) if none can be started.
[[nodiscard]] storm::Outcome storm_in_a_child(const storm::Recipe& recipe,
                                              std::vector<std::string>* story = nullptr,
                                              const storm::Venue& venue = on_simgrid);

// On the recipe's own wire: the virtual network here, or SimGrid in a child.
[[nodiscard]] storm::Outcome storm_on_its_wire(const storm::Recipe& recipe,
                                               std::vector<std::string>* story = nullptr);

}  // namespace holdfast::sim
