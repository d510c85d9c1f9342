#include "tests/plan/bound_fixtures.hpp"

#include <algorithm>

namespace holdfast::testing_support {

Topology changed(const Topology& topology, const std::function<void(Node&)>& node,
                 const std::function<void(Link&)>& link) {
  TopologyBuilder builder(topology.name());
  for (const Domain& d : topology.domains()) builder.add_domain(d.name, d.level, d.parent);
  for (Node n : topology.nodes()) {
    node(n);
    builder.add_node(std::move(n));
  }
  for (Link l : topology.links()) {
    link(l);
    builder.add_link(std::move(l));
  }
  return builder.build();
}

Topology roughened(const Topology& topology, std::mt19937_64& random) {
  std::uniform_int_distribution<std::uint64_t> percent(50, 100);
  std::uniform_int_distribution<int> thirty(0, 29);
  return changed(
      topology, [](Node&) {},
      [&](Link& l) {
        l.capacity = l.capacity * percent(random) / 100;
        l.up = thirty(random) != 0;
      });
}

Demand moved(const Demand& demand, const Topology& from, const Topology& to) {
  Demand result = demand;
  for (DemandWorker& worker : result.workers) {
    worker.node = to.find_node(from.node(worker.node).name);
  }
  return result;
}

Demand with_memories(Demand demand, const Topology& topology, std::mt19937_64& random) {
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const NodeId node(i);
    const bool there =
        std::any_of(demand.workers.begin(), demand.workers.end(),
                    [node](const DemandWorker& worker) { return worker.node == node; });
    if (topology.node(node).kind != NodeKind::HostMemory || there || random() % 2 == 0) continue;
    const WorkerId memory(demand.workers.size());
    const auto group = static_cast<std::uint32_t>(1'000 + demand.workers.size());
    demand.workers.push_back({node, group, Bytes(1ULL << 40), true});
    for (BlockClass& c : demand.classes) {
      if (random() % 2 == 0) c.holders.push_back(memory);  // ascending: it is the last worker
    }
  }
  return demand;
}

const std::vector<Route>& RouteBook::routes(NodeId source, NodeId destination) {
  const auto [at, fresh] = found_.try_emplace({source, destination});
  std::vector<Route>& routes = at->second;
  if (!fresh) return routes;
  if (auto inside = router_->route(source, destination, {source, destination, 0})) {
    routes.push_back(*inside);
  }
  for (const NodeId out : router_->nics(source)) {
    for (const NodeId in : router_->nics(destination)) {
      for (std::uint32_t stream = 0; stream < 3; ++stream) {
        if (auto route = router_->route(source, destination, {out, in, stream})) {
          routes.push_back(*route);
        }
      }
    }
  }
  return routes;
}

RandomLoad random_load(RouteBook& book, const Demand& demand, std::mt19937_64& random) {
  RandomLoad load;
  load.carried.resize(book.router().topology().channels());
  const auto pick = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  for (const BlockClass& c : demand.classes) {
    std::vector<BlockId> blocks = blocks_of(c);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (std::size_t stripe = 0; stripe < 3; ++stripe) {
      std::uint64_t bytes = 0;
      for (std::size_t k = stripe; k < blocks.size(); k += 3) {
        bytes += demand.block_bytes[blocks[k].index()].count();
      }
      std::vector<WorkerId> sources;
      for (const WorkerId w : c.holders) {
        if (demand.workers[w.index()].may_serve) sources.push_back(w);
      }
      std::vector<WorkerId> waiting = c.receivers;
      std::shuffle(waiting.begin(), waiting.end(), random);
      // A receiver whom nobody reaches yet may be reached from a later one.
      for (std::size_t misses = 0; !waiting.empty();) {
        const WorkerId child = waiting.front();
        waiting.erase(waiting.begin());
        std::shuffle(sources.begin(), sources.end(), random);
        bool reached = false;
        for (const WorkerId parent : sources) {
          const std::vector<Route>& routes =
              book.routes(demand.workers[parent.index()].node, demand.workers[child.index()].node);
          if (routes.empty()) continue;
          for (const ChannelId channel : routes[pick(routes.size())]) {
            load.carried[channel.index()] += bytes;
          }
          reached = true;
          break;
        }
        if (!reached) {
          waiting.push_back(child);
          if (++misses > waiting.size()) return load;
          continue;
        }
        misses = 0;
        if (demand.workers[child.index()].may_serve) sources.push_back(child);
      }
    }
  }
  load.possible = true;
  return load;
}

}  // namespace holdfast::testing_support
