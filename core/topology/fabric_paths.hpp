// Shortest paths between NICs over the switches of the fabric, all of them nameable by a number.
//
// NICs never relay: a path is a single link from NIC to NIC or crosses switches, spines and
// gateways only. Where several links (parallel ones included) continue equally short paths they are
// taken in the order of their ids: with n of them, number `stream` takes the (stream mod n)-th and
// goes on with stream / n. The links out of the first NIC are such a choice too.
//
// For each switch that a destination hangs on: hop distances of all switches, made on first use,
// O(switches + links between them), 2 bytes a switch; path counts, 4 bytes a switch, if asked for.
// Paths of more than 65,534 hops do not count as connections. Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast {

class FabricPaths {
 public:
  // Keeps a reference: the topology must outlive this. O(V + E).
  explicit FabricPaths(const Topology& topology);

  // Appends the channels of path number `stream` between two different NICs. Returns by how much
  // streams that take this path are apart (the product of the choices on it); zero, with nothing
  // appended, if nothing up joins them. O(hops x degree among switches).
  std::uint32_t append(NodeId source, NodeId destination, std::uint32_t stream,
                       std::vector<ChannelId>& channels);

  // Number of shortest paths, at most kMostChoices; zero without any.
  static constexpr std::uint32_t kMostChoices = 1U << 16;
  [[nodiscard]] std::uint32_t choices(NodeId source, NodeId destination);

 private:
  // Switches are numbered densely among themselves.
  struct Hop {
    ChannelId channel;
    std::uint32_t to = 0;  // switch
  };
  static constexpr std::uint16_t kFar = 0xFFFF;

  [[nodiscard]] std::span<const Hop> out(std::uint32_t from) const;
  const std::vector<std::uint16_t>& distances(std::uint32_t to);
  const std::vector<std::uint32_t>& counts(std::uint32_t to);
  // Into entries_: the channels through which `destination` is entered from switches.
  void find_entries(NodeId destination);
  // Hops from a switch to the nearest of entries_; kFar if none.
  [[nodiscard]] std::uint16_t rest(std::uint32_t from);
  // Into hops_: the links that continue shortest paths, in id order.
  void find_first_hops(NodeId source);
  void find_direct(NodeId source, NodeId destination);
  [[nodiscard]] ChannelId outward(NodeId from, LinkId link) const;
  [[nodiscard]] bool crosses(LinkId link) const;

  const Topology* topology_;
  std::vector<std::uint32_t> switch_of_;  // by node; kNoSwitch elsewhere
  std::vector<std::uint32_t> first_;      // by switch, into hops_out_
  std::vector<Hop> hops_out_;
  std::vector<std::vector<std::uint16_t>> distances_;  // by destination switch; empty: not made
  std::vector<std::vector<std::uint32_t>> counts_;     // the same
  std::vector<Hop> entries_;                           // scratch: channel into the NIC, its switch
  std::vector<Hop> hops_;                              // scratch
};

}  // namespace holdfast
