#include "core/plan/cost_model.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

namespace holdfast {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// One edge of the plan as a flow: what it carries in all, and which resources it uses. Resources
// are the channels, then one digest per worker.
struct Flow {
  double bytes = 0;
  double blocks = 0;
  double cap = kUnlimited;  // bytes a second: stream caps
  double bottleneck = 0;    // bytes a second: what the edge alone would get
  double latency = 0;       // seconds, one way
  double digest = 0;        // seconds a block
  std::size_t first_resource = 0;
  std::size_t end_resource = 0;
  std::int64_t above = -1;  // the flow that feeds its parent; -1: the parent is a holder
  std::uint32_t connection = 0;
};

// Stripes that go from one worker to another over the same path share a connection, which serves
// their blocks one after the other.
struct Connection {
  double bytes = 0;
  double blocks = 0;
};

struct Flows {
  std::vector<Flow> flows;
  std::vector<Connection> connections;
  std::vector<std::uint32_t> resources;  // of all flows, one after the other
  std::vector<double> capacity;          // by resource, bytes a second
};

struct ConnectionKey {
  WorkerId parent;
  WorkerId child;
  Path path;
  friend bool operator==(const ConnectionKey&, const ConnectionKey&) = default;
};
struct ConnectionHash {
  std::size_t operator()(const ConnectionKey& key) const noexcept {
    constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio
    std::uint64_t hash = (std::uint64_t{key.parent.value()} << 32) | key.child.value();
    hash = hash * kMix + ((std::uint64_t{key.path.source_port.value()} << 32) |
                          key.path.destination_port.value());
    hash = (hash ^ (hash >> 29)) * kMix + key.path.stream;
    return hash ^ (hash >> 32);
  }
};
using Connections = std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash>;

double rate_of(Rate rate) {
  return static_cast<double>(rate.bytes_per_second());
}

void add_stripe(Flows& all, const Stripe& stripe, const Demand& demand, const Router& router,
                Connections& connections, std::vector<std::int64_t>& flow_of_worker,
                Prediction& prediction) {
  const Topology& topology = router.topology();
  std::uint64_t bytes = 0;
  const std::vector<BlockId> blocks = blocks_of(demand, stripe);
  for (const BlockId block : blocks) bytes += demand.block_bytes[block.index()].count();
  const std::size_t first = all.flows.size();
  for (const Edge& edge : stripe.edges) {
    Flow flow;
    flow.bytes = static_cast<double>(bytes);
    flow.blocks = static_cast<double>(blocks.size());
    flow.first_resource = all.resources.size();
    const NodeId child = demand.workers[edge.child.index()].node;
    const auto route = router.route(demand.workers[edge.parent.index()].node, child, edge.path);
    if (route) {
      for (const ChannelId channel : *route) {
        all.resources.push_back(channel.value());
        prediction.carried[channel.index()] += Bytes(bytes);
        if (const auto cap = topology.link(channel.link()).stream_cap) {
          flow.cap = std::min(flow.cap, rate_of(*cap));
        }
      }
      flow.bottleneck = rate_of(router.bottleneck(*route));
      flow.latency = router.latency(*route).seconds();
    }
    if (demand.verify) {
      all.resources.push_back(static_cast<std::uint32_t>(topology.channels()) + edge.child.value());
      flow.digest = flow.bytes / flow.blocks / rate_of(topology.node(child).digest_rate);
    }
    flow.end_resource = all.resources.size();
    const auto [known, is_new] =
        connections.emplace(ConnectionKey{edge.parent, edge.child, edge.path},
                            static_cast<std::uint32_t>(all.connections.size()));
    if (is_new) all.connections.emplace_back();
    flow.connection = known->second;
    Connection& connection = all.connections[flow.connection];
    connection.bytes += flow.bytes;
    connection.blocks += flow.blocks;
    flow_of_worker[edge.child.index()] = static_cast<std::int64_t>(all.flows.size());
    all.flows.push_back(flow);
  }
  for (std::size_t k = 0; k < stripe.edges.size(); ++k) {
    all.flows[first + k].above = flow_of_worker[stripe.edges[k].parent.index()];
  }
  for (const Edge& edge : stripe.edges) flow_of_worker[edge.child.index()] = -1;
}

// Shares every resource so that flows progress alike, as a part of what they carry, as far as caps
// and other resources let them (weighted max-min fairness by progressive filling). Returns each
// flow's progress in 1/s. O(total resources log resources).
std::vector<double> share(const Flows& all, const std::vector<double>& most) {
  const std::size_t n = all.capacity.size();
  std::vector<double> left = all.capacity;
  std::vector<double> weight(n, 0);
  std::vector<std::uint32_t> first(n + 1, 0);
  for (const std::uint32_t r : all.resources) ++first[r + 1];
  for (std::size_t r = 0; r < n; ++r) first[r + 1] += first[r];
  std::vector<std::uint32_t> users(all.resources.size());
  std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
  for (std::uint32_t f = 0; f < all.flows.size(); ++f) {
    for (std::size_t k = all.flows[f].first_resource; k < all.flows[f].end_resource; ++k) {
      users[fill[all.resources[k]]++] = f;
      weight[all.resources[k]] += all.flows[f].bytes;
    }
  }
  // Candidates to freeze next: resources by what progress they allow, and flows by their own limit.
  using Candidate = std::pair<double, std::uint32_t>;  // progress; resource, or n + flow
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> next;
  for (std::uint32_t r = 0; r < n; ++r) {
    if (weight[r] > 0) next.emplace(left[r] / weight[r], r);
  }
  for (std::uint32_t f = 0; f < all.flows.size(); ++f) {
    if (most[f] < kUnlimited) next.emplace(most[f], static_cast<std::uint32_t>(n) + f);
  }
  std::vector<double> progress(all.flows.size(), -1);
  const auto freeze = [&](std::uint32_t f, double value) {
    if (progress[f] >= 0) return;
    progress[f] = value;
    for (std::size_t k = all.flows[f].first_resource; k < all.flows[f].end_resource; ++k) {
      const std::uint32_t r = all.resources[k];
      left[r] = std::max(0.0, left[r] - value * all.flows[f].bytes);
      weight[r] -= all.flows[f].bytes;
      // What is left of a float subtraction must not look like a user.
      if (weight[r] < 0.5) weight[r] = 0;
    }
  };
  while (!next.empty()) {
    const auto [value, what] = next.top();
    next.pop();
    if (what >= n) {
      freeze(what - static_cast<std::uint32_t>(n), value);
      continue;
    }
    if (weight[what] <= 0) continue;
    const double now = left[what] / weight[what];
    if (now > value * (1 + 1e-9)) {  // others froze since: it allows more than it did
      next.emplace(now, what);
      continue;
    }
    for (std::uint32_t k = first[what]; k < first[what + 1]; ++k) freeze(users[k], now);
  }
  return progress;
}

// No flow runs ahead of the one that feeds it. Parents may come after children in a stripe.
void limit_by_parents(const Flows& all, std::vector<double>& progress) {
  std::vector<bool> done(all.flows.size(), false);
  std::vector<std::size_t> up;
  for (std::size_t f = 0; f < all.flows.size(); ++f) {
    for (auto at = static_cast<std::int64_t>(f); at >= 0 && !done[static_cast<std::size_t>(at)];
         at = all.flows[static_cast<std::size_t>(at)].above) {
      done[static_cast<std::size_t>(at)] = true;  // marked on the way up: a cycle ends here
      up.push_back(static_cast<std::size_t>(at));
    }
    for (; !up.empty(); up.pop_back()) {
      const std::int64_t above = all.flows[up.back()].above;
      if (above < 0) continue;
      progress[up.back()] =
          std::min(progress[up.back()], progress[static_cast<std::size_t>(above)]);
    }
  }
}

// What a connection gets while it moves a block: at least its fair share where it meets others, and
// at least its part of the whole where others have less to carry than it has.
std::vector<double> connection_rates(const Flows& all, const std::vector<double>& alone) {
  const std::size_t n = all.connections.size();
  std::vector<std::uint32_t> users(all.capacity.size(), 0);  // connections, by resource
  std::vector<double> progress(n, 0);
  std::vector<bool> seen(n, false);
  for (std::size_t f = 0; f < all.flows.size(); ++f) {
    const Flow& flow = all.flows[f];
    progress[flow.connection] = std::max(progress[flow.connection], alone[f]);
    if (seen[flow.connection]) continue;
    seen[flow.connection] = true;
    for (std::size_t k = flow.first_resource; k < flow.end_resource; ++k) {
      ++users[all.resources[k]];
    }
  }
  std::vector<double> rates(n, kUnlimited);
  for (const Flow& flow : all.flows) {
    double fair = kUnlimited;
    for (std::size_t k = flow.first_resource; k < flow.end_resource; ++k) {
      const std::uint32_t r = all.resources[k];
      fair = std::min(fair, all.capacity[r] / users[r]);
    }
    const double part = progress[flow.connection] * all.connections[flow.connection].bytes;
    rates[flow.connection] =
        std::min({std::max(fair, part), flow.bottleneck, flow.cap, rates[flow.connection]});
  }
  return rates;
}

// When the first block of each flow is verified at its child.
std::vector<double> first_arrivals(const Flows& all, const std::vector<double>& rates) {
  std::vector<double> arrival(all.flows.size(), -1);
  std::vector<std::size_t> up;
  for (std::size_t f = 0; f < all.flows.size(); ++f) {
    for (auto at = static_cast<std::int64_t>(f);
         at >= 0 && arrival[static_cast<std::size_t>(at)] < 0;
         at = all.flows[static_cast<std::size_t>(at)].above) {
      arrival[static_cast<std::size_t>(at)] = 0;
      up.push_back(static_cast<std::size_t>(at));
    }
    for (; !up.empty(); up.pop_back()) {
      const Flow& flow = all.flows[up.back()];
      const double above = flow.above < 0 ? 0 : arrival[static_cast<std::size_t>(flow.above)];
      const double trips = flow.above < 0 ? 2 : 3;  // request and data; before them, the notice
      arrival[up.back()] = above + flow.bytes / flow.blocks / rates[flow.connection] +
                           trips * flow.latency + flow.digest;
    }
  }
  return arrival;
}

// When each worker has everything: on a connection the blocks follow the first one at the pace of
// its flows.
void complete_workers(const Plan& plan, const Flows& all, const std::vector<double>& progress,
                      const std::vector<double>& arrival, std::vector<double>& completed,
                      Prediction& prediction) {
  double makespan = 0;
  double fill = 0;
  std::size_t f = 0;
  for (const Stripe& stripe : plan.stripes) {
    for (const Edge& edge : stripe.edges) {
      const double blocks = all.connections[all.flows[f].connection].blocks;
      const double rest = (blocks - 1) / blocks / progress[f];
      const double end = arrival[f] + rest;
      completed[edge.child.index()] = std::max(completed[edge.child.index()], end);
      if (end > makespan) {
        makespan = end;
        fill = arrival[f] - 1 / progress[f] / blocks;
      }
      ++f;
    }
  }
  prediction.makespan = time_from_seconds(makespan);
  prediction.fill = time_from_seconds(fill);
}

double stall_of(const Demand& demand, const Topology& topology,
                const std::vector<double>& completed) {
  std::uint32_t groups = 0;
  for (const DemandWorker& worker : demand.workers) groups = std::max(groups, worker.group + 1);
  std::vector<double> last(groups, 0);
  std::vector<double> gpus(groups, 0);
  for (std::size_t w = 0; w < demand.workers.size(); ++w) {
    const DemandWorker& worker = demand.workers[w];
    last[worker.group] = std::max(last[worker.group], completed[w]);
    if (topology.node(worker.node).kind == NodeKind::Gpu) ++gpus[worker.group];
  }
  double stall = 0;
  for (std::uint32_t g = 0; g < groups; ++g) stall += last[g] * gpus[g];
  return stall;
}

}  // namespace

Prediction predict(const Plan& plan, const Demand& demand, const Router& router) {
  const Topology& topology = router.topology();
  Prediction prediction;
  prediction.carried.resize(topology.channels());
  Flows all;
  all.capacity.resize(topology.channels() + demand.workers.size());
  for (std::size_t c = 0; c < topology.channels(); ++c) {
    all.capacity[c] = rate_of(topology.links()[c / 2].capacity);
  }
  for (std::size_t w = 0; w < demand.workers.size(); ++w) {
    all.capacity[topology.channels() + w] =
        rate_of(topology.node(demand.workers[w].node).digest_rate);
  }
  Connections connections;
  std::vector<std::int64_t> flow_of_worker(demand.workers.size(), -1);
  for (const Stripe& stripe : plan.stripes) {
    add_stripe(all, stripe, demand, router, connections, flow_of_worker, prediction);
  }
  std::vector<double> most(all.flows.size());
  for (std::size_t f = 0; f < most.size(); ++f) {
    most[f] = all.flows[f].cap / all.connections[all.flows[f].connection].bytes;
  }
  const std::vector<double> alone = share(all, most);
  std::vector<double> progress = alone;
  limit_by_parents(all, progress);
  // What flows that wait for their parents leave over goes to the others.
  progress = share(all, progress);
  limit_by_parents(all, progress);
  const std::vector<double> arrival = first_arrivals(all, connection_rates(all, alone));
  std::vector<double> completed(demand.workers.size(), 0);
  complete_workers(plan, all, progress, arrival, completed, prediction);
  for (std::size_t c = 0; c < topology.channels(); ++c) {
    const Time time = transfer_time(prediction.carried[c], topology.links()[c / 2].capacity);
    if (time <= prediction.busiest_time) continue;
    prediction.busiest_time = time;
    prediction.busiest = ChannelId(static_cast<std::uint32_t>(c));
  }
  prediction.makespan = std::max(prediction.makespan, prediction.busiest_time);
  prediction.stall = stall_of(demand, topology, completed);
  return prediction;
}

}  // namespace holdfast
