#include "tests/plan/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace holdfast::testing_support {
namespace {

// Collects what a cluster consists of before anything has an id, so that the order can be shuffled.
class Parts {
 public:
  void node(std::string name, NodeKind kind, std::string domain, Rate digest = {}) {
    nodes_.push_back({std::move(name), kind, std::move(domain), digest});
  }
  void link(std::string a, std::string b, LinkKind kind, Rate rate, Time latency, Rate cap = {}) {
    links_.push_back({std::move(a), std::move(b), kind, rate, latency, cap});
  }
  void domain(std::string name, Level level, std::string parent) {
    domains_.push_back({std::move(name), level, std::move(parent)});
  }

  Topology build(std::uint64_t shuffle) {
    std::mt19937_64 random(shuffle);
    if (shuffle != 0) {
      std::shuffle(nodes_.begin(), nodes_.end(), random);
      std::shuffle(links_.begin(), links_.end(), random);
    }
    TopologyBuilder builder("cluster");
    for (const auto& d : domains_) {
      builder.add_domain(d.name, d.level, builder.so_far().find_domain(d.parent));
    }
    for (const auto& n : nodes_) {
      Node node;
      node.name = n.name;
      node.kind = n.kind;
      node.domain = builder.so_far().find_domain(n.domain);
      if (is_endpoint(n.kind)) node.memory = Bytes(1ULL << 40);
      node.digest_rate = n.digest;
      builder.add_node(node);
    }
    for (const auto& l : links_) {
      Link link;
      link.name = l.a + "-" + l.b;
      link.a = builder.so_far().find_node(l.a);
      link.b = builder.so_far().find_node(l.b);
      link.kind = l.kind;
      link.capacity = l.rate;
      link.latency = l.latency;
      if (l.cap != Rate(0)) link.stream_cap = l.cap;
      builder.add_link(link);
    }
    return builder.build();
  }

 private:
  struct NodePart {
    std::string name;
    NodeKind kind;
    std::string domain;
    Rate digest;
  };
  struct LinkPart {
    std::string a;
    std::string b;
    LinkKind kind;
    Rate rate;
    Time latency;
    Rate cap;
  };
  struct DomainPart {
    std::string name;
    Level level;
    std::string parent;
  };
  std::vector<NodePart> nodes_;
  std::vector<LinkPart> links_;
  std::vector<DomainPart> domains_;
};

void add_host(Parts& parts, const ClusterShape& s, const std::string& host,
              const std::string& rack) {
  parts.domain(host, Level::Host, rack);
  const std::uint32_t switches = std::max(1U, std::min(s.gpus, s.nics));
  parts.node(host + ".root", NodeKind::PcieSwitch, host);
  parts.node(host + ".mem", NodeKind::HostMemory, host, Rate(200'000'000'000));
  parts.link(host + ".mem", host + ".root", LinkKind::Memory, Rate(400'000'000'000),
             nanoseconds(100));
  if (s.nvlink && s.gpus > 1) parts.node(host + ".nvswitch", NodeKind::NvSwitch, host);
  for (std::uint32_t k = 0; k < switches; ++k) {
    parts.node(fmt::format("{}.pcie{}", host, k), NodeKind::PcieSwitch, host);
    parts.link(fmt::format("{}.pcie{}", host, k), host + ".root", LinkKind::Pcie, s.pcie_rate,
               nanoseconds(200));
  }
  for (std::uint32_t g = 0; g < s.gpus; ++g) {
    const std::string gpu = fmt::format("{}.gpu{}", host, g);
    parts.node(gpu, NodeKind::Gpu, host, s.digest_rate);
    parts.link(gpu, fmt::format("{}.pcie{}", host, g * switches / s.gpus), LinkKind::Pcie,
               s.pcie_rate, nanoseconds(200));
    if (s.nvlink && s.gpus > 1) {
      parts.link(gpu, host + ".nvswitch", LinkKind::NvLink, s.nvlink_rate, nanoseconds(500));
    }
  }
  for (std::uint32_t n = 0; n < s.nics; ++n) {
    const std::string nic = fmt::format("{}.nic{}", host, n);
    parts.node(nic, NodeKind::Nic, host);
    parts.link(nic, fmt::format("{}.pcie{}", host, n * switches / s.nics), LinkKind::Pcie,
               s.pcie_rate, nanoseconds(200));
    parts.link(nic, rack + ".leaf", LinkKind::Fabric, s.nic_rate, s.hop_latency);
  }
}

}  // namespace

Topology make_cluster(const ClusterShape& s, std::uint64_t shuffle) {
  Parts parts;
  for (std::uint32_t d = 0; d < s.datacenters; ++d) {
    const std::string dc = fmt::format("{}d{}", s.prefix, d);
    parts.domain(dc, Level::Datacenter, "");
    for (std::uint32_t k = 0; s.racks > 1 && k < s.spines; ++k) {
      parts.node(fmt::format("{}.spine{}", dc, k), NodeKind::Spine, dc);
    }
    for (std::uint32_t r = 0; r < s.racks; ++r) {
      const std::string rack = fmt::format("{}.r{}", dc, r);
      parts.domain(rack, Level::Rack, dc);
      parts.node(rack + ".leaf", NodeKind::Switch, rack);
      for (std::uint32_t h = 0; h < s.hosts; ++h) {
        add_host(parts, s, fmt::format("{}.h{}", rack, h), rack);
      }
      for (std::uint32_t k = 0; s.racks > 1 && k < s.spines; ++k) {
        parts.link(rack + ".leaf", fmt::format("{}.spine{}", dc, k), LinkKind::Fabric,
                   s.uplink_rate, s.hop_latency);
      }
    }
    if (s.datacenters > 1) {
      const std::string gateway = dc + ".gateway";
      parts.node(gateway, NodeKind::Gateway, dc);
      const std::uint32_t tops = s.racks > 1 ? s.spines : 1;
      for (std::uint32_t k = 0; k < tops; ++k) {
        parts.link(gateway, s.racks > 1 ? fmt::format("{}.spine{}", dc, k) : dc + ".r0.leaf",
                   LinkKind::Fabric, s.uplink_rate, s.hop_latency);
      }
      if (d > 0) {
        parts.link(s.prefix + "d0.gateway", gateway, LinkKind::Wan, s.wan_rate, s.wan_latency,
                   s.stream_cap);
      }
    }
  }
  return parts.build(shuffle);
}

ClusterShape random_shape(std::mt19937_64& random) {
  const auto pick = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  const auto rate = [&](std::uint32_t least, std::uint32_t most) {
    return Rate(std::uint64_t{pick(least, most)} * 1'000'000'000);
  };
  ClusterShape s;
  s.datacenters = pick(1, 5) == 1 ? pick(2, 3) : 1;
  s.racks = pick(1, 3);
  s.hosts = pick(1, 5);
  s.gpus = pick(1, 8);
  s.nics = pick(1, 8);
  s.spines = pick(1, 3);
  s.nvlink = pick(0, 3) != 0;
  s.nic_rate = rate(10, 100);
  s.nvlink_rate = rate(100, 450);
  s.pcie_rate = rate(20, 60);
  s.uplink_rate = rate(20, 800);
  s.wan_rate = rate(5, 50);
  s.stream_cap = rate(1, 5);
  s.hop_latency = nanoseconds(pick(100, 5000));
  s.wan_latency = microseconds(pick(100, 20'000));
  return s;
}

namespace {

std::vector<NodeId> gpus_of(const Topology& topology) {
  std::vector<NodeId> gpus;
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    if (topology.nodes()[i].kind == NodeKind::Gpu) gpus.emplace_back(i);
  }
  // By name, so that a shuffled topology gives the same demand.
  std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) {
    const auto& left = topology.node(a).name;
    const auto& right = topology.node(b).name;
    return std::pair(left.size(), left) < std::pair(right.size(), right);
  });
  return gpus;
}

}  // namespace

Demand make_demand(const Topology& topology, const DemandShape& shape) {
  constexpr std::uint32_t kShards = 8;
  std::vector<NodeId> gpus = gpus_of(topology);
  std::stable_sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) {
    return topology.around(a, Level::Host) < topology.around(b, Level::Host);
  });
  std::vector<Bytes> sizes(shape.blocks * kShards, shape.block_size);
  if (shape.replicated_block) sizes.push_back(shape.block_size / 4);
  DemandBuilder builder("test", {0, 1}, shape.block_size, sizes);
  builder.set_verify(shape.verify);
  std::uint32_t hosts_seen = 0;
  DomainId host;
  std::uint32_t in_host = 0;
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    if (topology.around(gpus[i], Level::Host) != host) {
      host = topology.around(gpus[i], Level::Host);
      ++hosts_seen;
      in_host = 0;
    }
    DemandWorker worker;
    worker.node = gpus[i];
    worker.memory_free = Bytes(1ULL << 40);
    worker.group = shape.sharded ? hosts_seen - 1 : i;
    const WorkerId w = builder.add_worker(worker);
    const bool holds = shape.sharded ? hosts_seen <= shape.replicas : i < shape.replicas;
    const auto give = [&](BlockSpan span) {
      if (holds) {
        builder.holds(w, span);
      } else {
        builder.wants(w, span);
      }
    };
    const std::uint32_t shard = in_host++ % kShards;
    if (shape.sharded) {
      give({BlockId(shard * shape.blocks), shape.blocks});
    } else {
      give({BlockId(0U), shape.blocks * kShards});
    }
    if (shape.replicated_block) give({BlockId(shape.blocks * kShards), 1});
  }
  return std::move(builder).build();
}

Demand random_demand(const Topology& topology, std::mt19937_64& random) {
  const auto pick = [&](std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
  };
  const std::vector<NodeId> gpus = gpus_of(topology);
  const std::uint32_t blocks = pick(1, 200);
  std::vector<Bytes> sizes(blocks);
  for (Bytes& size : sizes) size = Bytes(pick(0, 9) == 0 ? pick(1, 1 << 20) : 1 << 20);
  DemandBuilder builder("random", {1, 2}, Bytes(1 << 20), sizes);
  builder.set_verify(pick(0, 1) == 1);
  const auto span = [&] {
    const std::uint32_t first = pick(0, blocks - 1);
    return BlockSpan{BlockId(first), pick(1, blocks - first)};
  };
  const std::uint32_t full = pick(0, static_cast<std::uint32_t>(gpus.size()) - 1);
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    DemandWorker worker;
    worker.node = gpus[i];
    worker.group = i / pick(1, 3);
    worker.memory_free = Bytes(1ULL << 40);
    worker.may_serve = i == full || pick(0, 9) != 0;
    const WorkerId w = builder.add_worker(worker);
    const bool must_want = i == (full + 1) % gpus.size();  // somebody has to want something
    if (i == full || (pick(0, 9) == 0 && !must_want)) {
      builder.holds(w, {BlockId(0U), blocks});
      continue;
    }
    if (pick(0, 4) == 0 && !must_want) builder.holds(w, span());
    builder.wants(w, pick(0, 2) == 0 ? span() : BlockSpan{BlockId(0U), blocks});
  }
  if (gpus.size() == 1) {
    const Node& gpu = topology.node(gpus[0]);
    DemandWorker memory;
    memory.node = topology.find_node(gpu.name.substr(0, gpu.name.rfind('.')) + ".mem");
    memory.memory_free = Bytes(1ULL << 40);
    memory.group = 1;
    builder.wants(builder.add_worker(memory), {BlockId(0U), blocks});
  }
  return std::move(builder).build();
}

}  // namespace holdfast::testing_support
