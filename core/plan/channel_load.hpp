// How long each channel will be busy with what a plan under construction sends over it.
#pragma once

#include <span>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast {

class ChannelLoad {
 public:
  // O(links).
  explicit ChannelLoad(const Topology& topology);

  void add(std::span<const ChannelId> route, Bytes bytes);
  void remove(std::span<const ChannelId> route, Bytes bytes);

  // Seconds that the channel takes for so many bytes.
  [[nodiscard]] double seconds(ChannelId channel, Bytes bytes) const {
    return static_cast<double>(bytes.count()) * per_byte_[channel.index()];
  }

  // Seconds that the channel takes for what it carries so far.
  [[nodiscard]] double time(ChannelId channel) const { return seconds_[channel.index()]; }
  // Seconds that the busiest channel of the route would take with `bytes` more. O(route).
  [[nodiscard]] double time_with(std::span<const ChannelId> route, Bytes bytes) const;

 private:
  std::vector<double> seconds_;
  std::vector<double> per_byte_;
};

}  // namespace holdfast
