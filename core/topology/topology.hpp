// The machine: a graph of GPUs, host memory, NICs and switches joined by full-duplex links, with
// nested domains (host < rack < pod < datacenter) and free fault domains.
//
// A Topology is immutable. It is made by TopologyBuilder, which refuses what cannot work, so that
// everyone else may rely on the invariants:
//   1. names of nodes, of links and of domains are unique and not empty;
//   2. every link joins two different nodes, has a capacity above zero and up to 100 TB/s each way,
//      and a latency of up to a minute (so that sums over a route or a cluster fit 64 bits);
//   3. every GPU, NIC, host memory, PCIe switch and NVSwitch lies in exactly one host;
//   4. a domain's parent has a higher level; a host's nodes lie in that host's own domain;
//   5. the graph without the links and nodes that are down may be disconnected, the whole is not;
//   6. a link's kind fits its ends: NVLink joins GPUs and NVSwitches, PCIe and memory links join
//   the
//      other things inside one host, fabric links join NICs and switches of every kind, WAN links
//      join gateways; nothing but fabric and WAN links leaves a host.
//
// Ids are dense and follow the order in which things were added: the order of the file.
// Thread safety: const members may be called from several threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace holdfast {

enum class NodeKind {
  Gpu,         // endpoint: device memory of one GPU
  HostMemory,  // endpoint: a host's DRAM
  PcieSwitch,  // PCIe switch or root complex
  NvSwitch,    // joins the GPUs of one host
  Nic,         // the port through which a host's endpoints reach the fabric
  Switch,      // a single switch or a leaf: NICs hang on it
  Spine,       // joins leaves or, as a core, spines
  Gateway,     // ends of WAN links
};

enum class LinkKind { Memory, Pcie, NvLink, Fabric, Wan };

enum class Level : std::uint8_t { Host = 0, Rack = 1, Pod = 2, Datacenter = 3 };
inline constexpr std::size_t kLevels = 4;

struct Node {
  std::string name;
  NodeKind kind = NodeKind::Gpu;
  DomainId domain;   // innermost domain; invalid for a node outside all domains
  Bytes memory;      // endpoints: bytes of memory; zero elsewhere
  Rate digest_rate;  // endpoints: how fast it verifies blocks in its memory; zero elsewhere
  bool up = true;
};

struct Link {
  std::string name;
  NodeId a;
  NodeId b;
  LinkKind kind = LinkKind::Fabric;
  Rate capacity;  // each way
  Time latency;   // one way
  std::optional<Rate>
      stream_cap;  // most that one stream over this link gets (a TCP stream's limit)
  bool up = true;
};

struct Domain {
  std::string name;
  Level level = Level::Host;
  DomainId parent;  // invalid at the top
};

// Nodes and domains that fail together for a reason that the nesting does not show: a power feed.
struct FaultDomain {
  std::string name;
  std::vector<NodeId> nodes;
};

struct Neighbour {
  LinkId link;
  NodeId node;
};

// Lets a string_view look up a string without a copy.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>{}(name);
  }
};
template <class Id>
using NameTable = std::unordered_map<std::string, Id, NameHash, std::equal_to<>>;

class Topology {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const Link> links() const { return links_; }
  [[nodiscard]] std::span<const Domain> domains() const { return domains_; }
  [[nodiscard]] std::span<const FaultDomain> fault_domains() const { return fault_domains_; }

  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.index()]; }
  [[nodiscard]] const Domain& domain(DomainId id) const { return domains_[id.index()]; }

  // Links at a node in id order, those that are down included.
  [[nodiscard]] std::span<const Neighbour> neighbours(NodeId id) const;

  // By name; invalid id if there is none. O(1).
  [[nodiscard]] NodeId find_node(std::string_view name) const;
  [[nodiscard]] LinkId find_link(std::string_view name) const;
  [[nodiscard]] DomainId find_domain(std::string_view name) const;

  // The domain of that level around a node or domain; invalid if there is none.
  [[nodiscard]] DomainId around(NodeId id, Level level) const;
  [[nodiscard]] DomainId around(DomainId id, Level level) const;
  // Nodes whose innermost domain is `id` or lies inside it, in id order. O(size of the answer).
  [[nodiscard]] std::span<const NodeId> members(DomainId id) const;

  [[nodiscard]] bool usable(LinkId id) const;  // the link and both its ends are up

  [[nodiscard]] NodeId tail(ChannelId id) const;  // where the channel starts
  [[nodiscard]] NodeId head(ChannelId id) const;  // where it ends
  [[nodiscard]] std::size_t channels() const { return links_.size() * 2; }
  // "link name >" from a to b, "link name <" from b to a.
  [[nodiscard]] std::string channel_name(ChannelId id) const;

  // Over everything above, names included. Computed once.
  [[nodiscard]] const Hash128& hash() const { return hash_; }

 private:
  friend class TopologyBuilder;
  Topology() = default;

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Domain> domains_;
  std::vector<FaultDomain> fault_domains_;
  std::vector<std::uint32_t> first_neighbour_;
  std::vector<Neighbour> neighbours_;
  std::vector<std::vector<NodeId>> members_;
  std::vector<std::array<DomainId, kLevels>> around_;  // by domain
  NameTable<NodeId> node_by_name_;
  NameTable<LinkId> link_by_name_;
  NameTable<DomainId> domain_by_name_;
  Hash128 hash_;
};

// Collects nodes, links and domains; `build` checks the whole. Each `add_*` throws Error
// (Duplicate, UnknownName, BadTopology) at once where the fault is visible at once, so that a
// reader can add the place of the text that it came from.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(std::string name);
  // Starts from a whole topology, to build one like it.
  explicit TopologyBuilder(const Topology& base);

  DomainId add_domain(std::string name, Level level, DomainId parent = {});
  NodeId add_node(Node node);
  LinkId add_link(Link link);
  void add_fault_domain(FaultDomain domain);

  // For overrides ("this link is slower"): change what was added. Names stay as they are.
  [[nodiscard]] Node& node(NodeId id) { return topology_.nodes_[id.index()]; }
  [[nodiscard]] Link& link(LinkId id) { return topology_.links_[id.index()]; }
  [[nodiscard]] const Topology& so_far() const { return topology_; }  // find_* work on it

  // The connected parts of what was added so far, links and nodes that are down included, each with
  // its first node; by that node. O(V + E).
  struct Part {
    NodeId first;
    std::size_t nodes = 0;
  };
  [[nodiscard]] std::vector<Part> parts() const;

  // Checks invariants 2 to 6 and builds the tables. Throws Error(BadTopology) that names what is
  // wrong; a disconnected graph is reported with the parts and an example node of each.
  // O(V + E). Leaves the builder empty.
  [[nodiscard]] Topology build();

 private:
  Topology topology_;
  NameTable<std::size_t> fault_domain_by_name_;
};

[[nodiscard]] const char* to_string(NodeKind kind);
[[nodiscard]] const char* to_string(LinkKind kind);
[[nodiscard]] const char* to_string(Level level);
[[nodiscard]] constexpr bool is_endpoint(NodeKind kind) {
  return kind == NodeKind::Gpu || kind == NodeKind::HostMemory;
}
[[nodiscard]] constexpr bool is_inside_host(NodeKind kind) {
  return kind != NodeKind::Switch && kind != NodeKind::Spine && kind != NodeKind::Gateway;
}

}  // namespace holdfast
