// Small machines, demands and hand-made plans for tests. The plans are as plain as they can be:
// they share nothing with the planners.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/demand.hpp"
#include "core/plan/plan.hpp"
#include "core/topology/router.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::fixtures {

// Hosts on one switch. Each has `gpus` GPUs joined by an NVSwitch, host memory, and one NIC a GPU;
// GPU i and NIC i share a PCIe switch, and the PCIe switches and the memory meet at a root complex.
struct Cluster {
  Topology topology;
  std::vector<NodeId> gpus;    // "h0g0", "h0g1", ..., "h1g0", ...
  std::vector<NodeId> nics;    // "h0n0", ... the k-th is the nearest of the k-th GPU
  std::vector<NodeId> memory;  // "h0mem", "h1mem", ...
};

inline Cluster cluster(std::uint32_t hosts, std::uint32_t gpus) {
  TopologyBuilder builder("cluster");
  std::vector<NodeId> all_gpus;
  std::vector<NodeId> nics;
  std::vector<NodeId> memory;
  const auto node = [&](std::string name, NodeKind kind, DomainId domain) {
    Node it;
    it.name = std::move(name);
    it.kind = kind;
    it.domain = domain;
    if (is_endpoint(kind)) {
      it.memory = Bytes(80'000'000'000);
      it.digest_rate = Rate(1'000'000'000'000);
    }
    return builder.add_node(std::move(it));
  };
  const auto link = [&](NodeId a, NodeId b, LinkKind kind, Rate capacity, Time latency) {
    Link it;
    it.name = builder.so_far().node(a).name + "-" + builder.so_far().node(b).name;
    it.a = a;
    it.b = b;
    it.kind = kind;
    it.capacity = capacity;
    it.latency = latency;
    builder.add_link(std::move(it));
  };
  const Rate pcie(64'000'000'000);
  const NodeId fabric = node("switch", NodeKind::Switch, {});
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::string host = "h" + std::to_string(h);
    const DomainId domain = builder.add_domain(host, Level::Host);
    const NodeId nvswitch = node(host + "nvs", NodeKind::NvSwitch, domain);
    const NodeId root = node(host + "root", NodeKind::PcieSwitch, domain);
    memory.push_back(node(host + "mem", NodeKind::HostMemory, domain));
    link(memory.back(), root, LinkKind::Memory, Rate(100'000'000'000), nanoseconds(100));
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const std::string number = std::to_string(g);
      const NodeId pcie_switch = node(host + "p" + number, NodeKind::PcieSwitch, domain);
      all_gpus.push_back(node(host + "g" + number, NodeKind::Gpu, domain));
      nics.push_back(node(host + "n" + number, NodeKind::Nic, domain));
      link(all_gpus.back(), nvswitch, LinkKind::NvLink, Rate(450'000'000'000), nanoseconds(500));
      link(all_gpus.back(), pcie_switch, LinkKind::Pcie, pcie, nanoseconds(200));
      link(nics.back(), pcie_switch, LinkKind::Pcie, pcie, nanoseconds(200));
      link(pcie_switch, root, LinkKind::Pcie, pcie, nanoseconds(200));
      link(nics.back(), fabric, LinkKind::Fabric, Rate(50'000'000'000), microseconds(1));
    }
  }
  return {builder.build(), std::move(all_gpus), std::move(nics), std::move(memory)};
}

// Over NVLink or PCIe inside a host, over the nearest NICs between hosts.
inline Path path_between(const Router& router, const Demand& demand, WorkerId from, WorkerId to) {
  const Topology& topology = router.topology();
  const NodeId source = demand.workers[from.index()].node;
  const NodeId target = demand.workers[to.index()].node;
  const bool inside = topology.around(source, Level::Host) == topology.around(target, Level::Host);
  if (inside) return {source, target, 0};
  return {router.nics(source).front(), router.nics(target).front(), 0};
}

inline DemandWorker worker_on(NodeId node, std::uint32_t group = 0, bool may_serve = true) {
  DemandWorker worker;
  worker.node = node;
  worker.group = group;
  worker.memory_free = Bytes(1'000'000'000);
  worker.may_serve = may_serve;
  return worker;
}

// GPU 0 holds `blocks` blocks of 1,000 bytes (the last one of 10), all other GPUs want them.
inline Demand broadcast_demand(const Cluster& cluster, std::uint32_t blocks) {
  std::vector<Bytes> sizes(blocks, Bytes(1'000));
  sizes.back() = Bytes(10);
  DemandBuilder builder("model", {1, 2}, Bytes(1'000), std::move(sizes));
  for (std::size_t i = 0; i < cluster.gpus.size(); ++i) {
    const WorkerId worker =
        builder.add_worker(worker_on(cluster.gpus[i], static_cast<std::uint32_t>(i)));
    if (i == 0) {
      builder.holds(worker, {BlockId(0U), blocks});
    } else {
      builder.wants(worker, {BlockId(0U), blocks});
    }
  }
  return std::move(builder).build();
}

inline Plan empty_plan(const Router& router, const Demand& demand) {
  Plan plan;
  plan.topology = router.topology().hash();
  plan.demand = hash_of(demand);
  return plan;
}

inline std::vector<WorkerId> serving_holders(const Demand& demand, const BlockClass& c) {
  std::vector<WorkerId> holders;
  for (const WorkerId w : c.holders) {
    if (demand.workers[w.index()].may_serve) holders.push_back(w);
  }
  return holders;
}

// Each class in one stripe; each receiver reads from the class's first serving holder.
inline Plan star_plan(const Router& router, const Demand& demand) {
  Plan plan = empty_plan(router, demand);
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& block_class = demand.classes[c];
    Stripe stripe{ClassId(c), {0, 1, block_count(block_class)}, {}};
    const WorkerId holder = serving_holders(demand, block_class).front();
    for (const WorkerId child : block_class.receivers) {
      stripe.edges.push_back(
          {child, holder, WorkerId(), path_between(router, demand, holder, child), 2});
    }
    plan.stripes.push_back(std::move(stripe));
  }
  return plan;
}

// Each class in `stripes` interleaved stripes (fewer if it has fewer blocks). In each, every
// receiver that may serve relays to the next one, in the order of ids; the alternate is the first
// serving holder where that is not the parent.
inline Plan chain_plan(const Router& router, const Demand& demand, std::uint32_t stripes = 1) {
  Plan plan = empty_plan(router, demand);
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& block_class = demand.classes[c];
    const std::uint32_t blocks = block_count(block_class);
    for (std::uint32_t s = 0; s < std::min(stripes, blocks); ++s) {
      Stripe stripe{ClassId(c), {s, std::min(stripes, blocks), blocks}, {}};
      const WorkerId holder = serving_holders(demand, block_class).front();
      WorkerId parent = holder;
      for (const WorkerId child : block_class.receivers) {
        const WorkerId alternate = parent == holder ? WorkerId() : holder;
        stripe.edges.push_back(
            {child, parent, alternate, path_between(router, demand, parent, child), 2});
        if (demand.workers[child.index()].may_serve) parent = child;
      }
      plan.stripes.push_back(std::move(stripe));
    }
  }
  return plan;
}

using Random = std::mt19937_64;

// 0 .. n - 1, the same on every platform.
inline std::uint32_t below(Random& random, std::size_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

// Up to four classes or so: a few workers on GPUs and host memories hold and want random spans;
// some may not serve. GPU 0 holds everything and serves, so that nothing is out of reach.
inline Demand random_demand(const Cluster& cluster, Random& random) {
  const std::uint32_t blocks = 1 + below(random, 12);
  std::vector<Bytes> sizes;
  for (std::uint32_t b = 0; b < blocks; ++b) sizes.emplace_back(1U + below(random, 1'000));
  DemandBuilder builder("model", {1, 2}, Bytes(1'000), std::move(sizes));
  builder.set_verify(below(random, 2) == 0);
  std::vector<NodeId> nodes(cluster.gpus);
  nodes.insert(nodes.end(), cluster.memory.begin(), cluster.memory.end());
  std::shuffle(nodes.begin() + 1, nodes.end(), random);
  nodes.resize(3 + below(random, nodes.size() - 2));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool may_serve = i == 0 || below(random, 5) != 0;
    const WorkerId worker =
        builder.add_worker(worker_on(nodes[i], static_cast<std::uint32_t>(i / 2), may_serve));
    const auto span = [&] {
      const std::uint32_t first = below(random, blocks);
      return BlockSpan{BlockId(first), 1 + below(random, blocks - first)};
    };
    if (i == 0) {
      builder.holds(worker, {BlockId(0U), blocks});
    } else if (i == 1) {
      builder.wants(worker, {BlockId(0U), blocks});
    } else {
      if (below(random, 3) == 0) builder.holds(worker, span());
      if (below(random, 4) != 0) builder.wants(worker, span());
    }
  }
  return std::move(builder).build();
}

// One to three stripes a class; each is a random tree over random roots, with random alternates.
inline Plan random_plan(const Router& router, const Demand& demand, Random& random) {
  Plan plan = empty_plan(router, demand);
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& block_class = demand.classes[c];
    const std::uint32_t blocks = block_count(block_class);
    const std::uint32_t stripes = 1 + below(random, std::min<std::uint32_t>(3, blocks));
    for (std::uint32_t s = 0; s < stripes; ++s) {
      const bool interleaved = stripes > 2;
      BlockSelection selection{s, stripes, blocks};
      if (!interleaved) selection = {s * blocks / stripes, 1, (s + 1) * blocks / stripes};
      Stripe stripe{ClassId(c), selection, {}};
      std::vector<WorkerId> sources = serving_holders(demand, block_class);
      std::vector<WorkerId> order(block_class.receivers);
      std::shuffle(order.begin(), order.end(), random);
      for (const WorkerId child : order) {
        const WorkerId parent = sources[below(random, sources.size())];
        // Whoever came before in `order` does not get the blocks by way of this child.
        WorkerId alternate = sources[below(random, sources.size())];
        if (alternate == parent) alternate = WorkerId();
        stripe.edges.push_back({child, parent, alternate,
                                path_between(router, demand, parent, child), 1 + below(random, 8)});
        if (demand.workers[child.index()].may_serve) sources.push_back(child);
      }
      std::sort(stripe.edges.begin(), stripe.edges.end());
      plan.stripes.push_back(std::move(stripe));
    }
  }
  return plan;
}

}  // namespace holdfast::fixtures
