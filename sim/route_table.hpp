// The routes of a simulation, each computed once, in terms of the simulation's own dense links.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/topology/router.hpp"

namespace holdfast::sim {

// A way for data: from an endpoint to an endpoint over a path.
struct DataPath {
  NodeId source;
  NodeId destination;
  Path path;
  friend bool operator==(const DataPath&, const DataPath&) = default;
};

class RouteTable {
 public:
  struct Entry {
    std::uint32_t first = 0;  // in the list of links
    std::uint32_t count = 0;
    std::uint32_t flow_first = 0;  // in the list of links that flows take
    std::uint32_t flow_count = 0;
    Time latency;
    std::optional<Rate> stream_cap;  // the least one on the way
    bool over_nic = false;           // enters a host from the fabric
    std::uint32_t wan = 0;           // WAN links on the way
    bool up = false;                 // false: no such way, and nothing else is set
  };

  // Keeps a reference to the router.
  explicit RouteTable(const Router& router) : router_(&router) {}

  // Numbers the links of a path that data is to take. O(route length).
  std::uint32_t add(const DataPath& path);
  // Instead of `drop_redundant_links`, before the first `add`, where paths are added while flows
  // run: numbers every channel that is up. Flows then take all links of their paths. O(channels).
  void add_all_links();
  [[nodiscard]] bool has_all_links() const { return has_all_links_; }
  // For messages, which need the latency alone: the entry of the path or of its reverse (whose
  // links are the other directions of the same ones); one is computed if there is neither, and it
  // may have no links.
  std::uint32_t find_for_messages(const DataPath& path);
  // The entry added for exactly this path, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> find(const DataPath& path) const;

  [[nodiscard]] const Entry& entry(std::uint32_t route) const { return entries_[route]; }
  [[nodiscard]] std::span<const std::uint32_t> links(std::uint32_t route) const {
    return std::span(links_).subspan(entries_[route].first, entries_[route].count);
  }

  // Leaves out of the flows the links that can never bind: those of which every route that takes
  // them also takes one of a few other links that together are not wider. (What crosses the first
  // is part of what crosses those, so its constraint follows; shares are the same without it, and
  // SimGrid has less to solve.) Every route keeps a link. Call it once, after the last `add`. O(sum
  // of squared route lengths).
  void drop_redundant_links();
  // What a flow on this route takes: `links` without the redundant ones.
  [[nodiscard]] std::span<const std::uint32_t> flow_links(std::uint32_t route) const {
    return std::span(flow_links_).subspan(entries_[route].flow_first, entries_[route].flow_count);
  }
  // How many of the routes depend on each other: the most that are joined by common links of their
  // flows, directly or through others. O(links of all routes).
  [[nodiscard]] std::size_t most_coupled() const;
  // What a flow can have at best on the routes that enter a host; on any, if none does.
  [[nodiscard]] Rate widest_between_hosts() const;
  [[nodiscard]] std::size_t link_count() const { return channels_.size(); }
  [[nodiscard]] ChannelId channel(std::uint32_t link) const { return channels_[link]; }
  // Nothing for a channel that has no number.
  [[nodiscard]] std::optional<std::uint32_t> find_link(ChannelId channel) const;
  [[nodiscard]] Rate capacity(std::uint32_t link) const;
  [[nodiscard]] std::vector<Rate> capacities() const;

 private:
  struct PathHash {
    std::size_t operator()(const DataPath& path) const noexcept;
  };
  std::uint32_t insert(const DataPath& path, bool with_links);
  std::uint32_t number_of(ChannelId channel);

  const Router* router_;
  std::unordered_map<DataPath, std::uint32_t, PathHash> routes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> links_;
  std::vector<std::uint32_t> flow_links_;
  std::vector<ChannelId> channels_;             // by link
  std::vector<std::uint32_t> link_of_channel_;  // one more than the link; zero: none yet
  bool has_all_links_ = false;
};

}  // namespace holdfast::sim
