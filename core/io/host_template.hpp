// A class of hosts, as the `hosts:` section of a topology file describes it, and the nodes and
// links that one host of it has.
//
//   hosts:
//     dgx-h100:
//       gpus: {count: 8, memory: 80GB, digest_rate: 2TB/s}
//       nvlink: {rate: 450GB/s, latency: 500ns}     # each GPU to one NVSwitch; left out: no NVLink
//       nics: {count: 8, rate: 400Gbps}             # left out: no NIC
//       memory: {size: 2TB, rate: 250GB/s, latency: 100ns, digest_rate: 200GB/s}
//       pcie:
//         rate: 55GB/s                              # of each PCIe link
//         latency: 250ns
//         sockets: 2                                # root complexes; 1 if left out
//         socket_link: {rate: 60GB/s, latency: 200ns}   # between neighbouring sockets
//         switches: 4                               # PCIe switches, shared out evenly; or a list:
//         # switches:
//         #   - {socket: 0, gpus: [0, 1], nics: [0, 1]}
//
// Host `h` has the nodes h.gpu0 ..., h.mem, h.nvswitch, h.nic0 ..., h.pcie0 ... (PCIe switches) and
// h.root0 ... (root complexes), in this order. Without `switches` GPUs and NICs hang on the root
// complexes. Shared out evenly, the first GPUs and the first NICs go to the first switch and the
// first switches to the first socket, so that NIC i is near GPU i; a number that does not divide is
// refused. Links are called "a--b" after their ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/topology_draft.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {

struct HostTemplate {
  struct Channel {
    Rate rate;
    Time latency;
  };
  struct PcieSwitch {
    std::uint32_t socket = 0;
    std::vector<std::uint32_t> gpus;
    std::vector<std::uint32_t> nics;
  };

  std::string name;
  std::uint32_t gpus = 0;
  Bytes gpu_memory;
  Rate gpu_digest_rate;
  std::optional<Channel> nvlink;
  std::uint32_t nics = 0;
  Rate nic_rate;
  Bytes memory;
  Channel memory_channel;
  Rate memory_digest_rate;
  Channel pcie;
  std::uint32_t sockets = 1;
  std::optional<Channel> socket_link;
  // As many as there are PCIe switches. Without any, `switched` is false and each entry stands for
  // what hangs directly on the socket of that number.
  std::vector<PcieSwitch> groups;
  bool switched = false;

  [[nodiscard]] std::uint64_t nodes() const;
  [[nodiscard]] std::uint64_t links() const;
};

[[nodiscard]] HostTemplate read_host_template(std::string name, const YamlValue& value);

// Adds the host domain `name` with its nodes and links; its NICs in order.
std::vector<NodeId> add_host(TopologyDraft& draft, const HostTemplate& host,
                             const std::string& name, DomainId parent, const YamlValue& origin);

}  // namespace holdfast
