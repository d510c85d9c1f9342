#include "core/plan/channel_load.hpp"

#include <algorithm>

namespace holdfast {

ChannelLoad::ChannelLoad(const Topology& topology)
    : seconds_(topology.channels(), 0), per_byte_(topology.channels()) {
  for (std::size_t c = 0; c < per_byte_.size(); ++c) {
    per_byte_[c] = 1 / static_cast<double>(topology.links()[c / 2].capacity.bytes_per_second());
  }
}

void ChannelLoad::add(std::span<const ChannelId> route, Bytes bytes) {
  for (const ChannelId channel : route) seconds_[channel.index()] += seconds(channel, bytes);
}

void ChannelLoad::remove(std::span<const ChannelId> route, Bytes bytes) {
  for (const ChannelId channel : route) seconds_[channel.index()] -= seconds(channel, bytes);
}

double ChannelLoad::time_with(std::span<const ChannelId> route, Bytes bytes) const {
  double most = 0;
  for (const ChannelId channel : route) {
    most = std::max(most, seconds_[channel.index()] + seconds(channel, bytes));
  }
  return most;
}

}  // namespace holdfast
