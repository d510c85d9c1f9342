// The one routing function: which channels a path takes. Simulation, cost model and checker all ask
// here; only the bound may route freely.
//
// A path joins the port of one endpoint to the port of another. A port is
//   - a NIC (its node id): the path leaves the endpoint over PCIe to that NIC, crosses the fabric,
//     and enters the other host through the other NIC;
//   - the NVLink port of a GPU (the GPU's own node id): both ports are GPUs of one host; the path
//     takes NVLink where it joins the two, else PCIe (a host without NVLink);
//   - the host-memory port (the HostMemory's node id): the path stays inside the host on PCIe.
// Both ports are NICs (two different ones), or neither is; then each endpoint's port is itself.
// Inside a host routes are shortest (hops, then lowest link id). Between NICs they are shortest
// over the fabric's switches; where several next hops are equally short, `stream` chooses: at each
// such switch with n choices the path takes choice (stream mod n) and goes on with stream / n, so
// that a planner can name every path, and two streams of the same ports can take different ones.
// Parallel links count as choices. NVLink, PCIe and memory links are never crossed by fabric
// traffic, GPUs and host memory never relay. Links and nodes that are down are not used.
//
// Complexity: a table of hop distances for each destination switch is filled on first use (O(E) of
// the fabric, 2 bytes a switch); a route is then O(hops x degree). Inside a host a breadth-first
// search over the host. Thread safety: none, not even for const calls (the tables are lazy).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace holdfast {

struct Path {
  NodeId source_port;
  NodeId destination_port;
  std::uint32_t stream = 0;
  friend constexpr auto operator<=>(const Path&, const Path&) = default;
};

using Route = std::vector<ChannelId>;

class Router {
 public:
  // Keeps a reference: the topology must outlive the router.
  explicit Router(const Topology& topology);
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  [[nodiscard]] const Topology& topology() const;

  // The channels from `source` to `destination` (GPUs or host memories) over `path`, in order; or
  // why there is none (a port that the endpoint does not have, nothing up that joins them).
  [[nodiscard]] Parsed<Route> route(NodeId source, NodeId destination, const Path& path) const;

  // The NICs of the endpoint's host that it can reach over PCIe, nearest first (hops, then id).
  [[nodiscard]] std::span<const NodeId> nics(NodeId endpoint) const;

  // How many different routes the streams 0, 1, ... give between two NICs (at most 2^16), zero if
  // they are not connected.
  [[nodiscard]] std::uint32_t choices(NodeId source_nic, NodeId destination_nic) const;

  // By how much the streams that take the same route as this one are apart; zero if the NICs are
  // not connected. Routes of one pair differ in it where switches differ in how many ways lead on.
  [[nodiscard]] std::uint32_t period(NodeId source_nic, NodeId destination_nic,
                                     std::uint32_t stream) const;

  // The fabric's part of the route of a stream between two NICs, their own links included; empty if
  // nothing up joins them.
  [[nodiscard]] Route between(NodeId source_nic, NodeId destination_nic,
                              std::uint32_t stream) const;

  // The way over PCIe between an endpoint and a NIC of its host, either first; empty if there is
  // none.
  [[nodiscard]] Route inside(NodeId from, NodeId to) const;

  // True if NVLink (through switches or directly) joins the two GPUs.
  [[nodiscard]] bool nvlinked(NodeId gpu, NodeId other) const;

  // Sum of the latencies of the channels.
  [[nodiscard]] Time latency(const Route& route) const;
  // The least capacity on the way, stream caps included.
  [[nodiscard]] Rate bottleneck(const Route& route) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace holdfast
