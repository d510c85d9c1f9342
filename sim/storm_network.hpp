// SimGrid as the network of a storm: reads share the links of the world's topology as SimGrid has
// it, words take the latency of their path, and real bytes move (storm_ports.hpp).
//
// What differs from the virtual network: a connection whose way is cut is lost after the detection
// time; one that is cut one way stands still both ways; a port that stalls goes on at a millionth
// of its rate, so that what it is serving stands still too.
#pragma once

#include <functional>

#include "core/storm/data_network.hpp"

namespace holdfast::sim {

// A storm::Venue. At most once in the life of a process (SimGrid's engine cannot be made twice).
// Throws Error(Unsupported) where SimGrid cannot be used.
void on_simgrid(const storm::World& world, const std::function<void(storm::DataNetwork&)>& body);

}  // namespace holdfast::sim
