// The network through which the bound lets bytes flow: the topology, with each node split so that
// exactly what hardware does is possible, and nothing that a plan may do is impossible.
//
//   - Endpoints have an arrival and a departure; only workers that receive something and may serve
//     join the two (a relay).
//   - A NIC has a side that leaves towards the fabric and a side that enters the host, so that
//     fabric traffic never crosses a host and PCIe traffic never turns at a NIC.
//   - A switch inside a host exists three times: for NVLink, for PCIe traffic from an endpoint (to
//     NICs and host memory), and for PCIe traffic to an endpoint (from NICs and host memory). So
//     GPUs do not read each other over PCIe, unless some two GPUs of the host are not joined by
//     NVLink: then all of them may.
//
// A channel between two switches may appear once for each of the two PCIe directions of use, each
// time with its whole capacity. That widens the network (a bound stays a bound); whoever adds up a
// cut counts a channel once. Host memory that serves NICs and GPUs alike uses both, so that a flow
// would find twice the capacity that its host has. PcieUse::Joined widens in another way instead:
// each channel appears once, and what enters a PCIe switch may leave it everywhere. Cuts of either
// network are cuts of the hardware.
//
// Everything down is left out. Stream caps are ignored: any number of streams may run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast::bound {

inline constexpr std::uint32_t kNone = 0xFFFF'FFFF;

struct Arc {
  std::uint32_t tail = kNone;  // states
  std::uint32_t head = kNone;
  std::uint32_t channel = kNone;  // value of the ChannelId; kNone: within a node, without limit
};

enum class PcieUse { Apart, Joined };

class RoutingGraph {
 public:
  // `relays`: by node, true where arriving bytes may depart again. Keeps a reference to `topology`.
  // O(nodes + links + NVLink links x GPUs of a host).
  RoutingGraph(const Topology& topology, const std::vector<bool>& relays,
               PcieUse use = PcieUse::Apart);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] std::uint32_t states() const { return first_state_.back(); }
  // States of a node: first .. last - 1.
  [[nodiscard]] std::uint32_t first_state(NodeId node) const { return first_state_[node.index()]; }
  [[nodiscard]] std::uint32_t last_state(NodeId node) const {
    return first_state_[node.index() + 1];
  }
  // Of an endpoint.
  [[nodiscard]] std::uint32_t arrival(NodeId node) const { return first_state(node); }
  [[nodiscard]] std::uint32_t departure(NodeId node) const { return first_state(node) + 1; }
  // Of a NIC: the side that enters the host.
  [[nodiscard]] std::uint32_t entering(NodeId nic) const { return first_state(nic) + 1; }

  // All arcs, by tail, then channel.
  [[nodiscard]] std::span<const Arc> arcs() const { return arcs_; }
  [[nodiscard]] std::span<const Arc> arcs_from(std::uint32_t state) const {
    return std::span(arcs_).subspan(first_arc_[state], first_arc_[state + 1] - first_arc_[state]);
  }

 private:
  void number_states();
  void add_channel(ChannelId channel);
  void add_pcie(ChannelId channel);
  void sort_arcs();
  [[nodiscard]] std::uint32_t meeting_point(NodeId endpoint, LinkId link, bool departing) const;

  const Topology* topology_;
  PcieUse use_;
  std::vector<bool> peers_over_pcie_;  // by node: GPUs of a host that NVLink does not join wholly
  std::vector<std::uint32_t> first_state_;
  std::vector<std::uint32_t> first_arc_;
  std::vector<Arc> arcs_;
};

}  // namespace holdfast::bound
