#include "core/io/run_detail.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "core/io/other_traffic.hpp"

namespace holdfast {
namespace {

constexpr std::array kAllLevels{Level::Host, Level::Rack, Level::Pod, Level::Datacenter};

Bytes total_of(const LinkUse& use) {
  Bytes total;
  for (const Bytes bin : use.bins) {
    total += bin;
  }
  return total;
}

// The domain of a level that a channel leads out of, or into; invalid if it does not.
DomainId left_by(const Topology& topology, ChannelId channel, Level level) {
  const DomainId from = topology.around(topology.tail(channel), level);
  const DomainId to = topology.around(topology.head(channel), level);
  return from == to ? DomainId() : from;
}
DomainId entered_by(const Topology& topology, ChannelId channel, Level level) {
  const DomainId from = topology.around(topology.tail(channel), level);
  const DomainId to = topology.around(topology.head(channel), level);
  return from == to ? DomainId() : to;
}

class Detail {
 public:
  Detail(const ResultsContext& context, const MinimumCrossings& minimum, const RunRecord& run)
      : context_(context), topology_(context.topology), minimum_(minimum), run_(run) {
    const std::size_t domains = topology_.domains().size();
    in_.resize(domains);
    out_.resize(domains);
    capacity_.resize(domains);
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      add_capacity(LinkId(i));
    }
    for (const LinkUse& use : run.links) {
      totals_.push_back(total_of(use));
      for (const Level level : kAllLevels) {
        const DomainId left = left_by(topology_, use.channel, level);
        const DomainId entered = entered_by(topology_, use.channel, level);
        if (left.valid()) out_[left.index()] += totals_.back();
        if (entered.valid()) in_[entered.index()] += totals_.back();
      }
    }
  }

  RunDetail take() {
    RunDetail detail;
    detail.depth = run_.shape.depth;
    for (const Level level : kAllLevels) {
      for (const Direction direction : {Direction::In, Direction::Out}) {
        add_level(level, direction, detail.crossings);
      }
    }
    add_busiest(detail.busiest);
    detail.digest = longest_digest();
    const bool done = !run_.failure && !run_.workload && run_.makespan > Time();
    if (done) detail.waits = waits_of(context_, run_.completed);
    return detail;
  }

 private:
  // Of one direction: the other has the same.
  void add_capacity(LinkId link) {
    if (!topology_.usable(link)) return;
    const Rate rate = topology_.link(link).capacity;
    for (const Level level : kAllLevels) {
      const DomainId left = left_by(topology_, ChannelId(link, false), level);
      const DomainId entered = entered_by(topology_, ChannelId(link, false), level);
      if (left.valid()) capacity_[left.index()] += rate;
      if (entered.valid()) capacity_[entered.index()] += rate;
    }
  }

  [[nodiscard]] DomainCrossing crossing(DomainId domain, Direction direction) {
    const std::size_t i = domain.index();
    const bool in = direction == Direction::In;
    return {topology_.domain(domain).name, topology_.domain(domain).level,        who(domain),
            in ? in_[i] : out_[i],         in ? minimum_.in[i] : minimum_.out[i], capacity_[i]};
  }

  // The replicas inside, if one or two; found once for all domains.
  std::string who(DomainId domain) {
    if (replicas_.empty()) {
      replicas_.resize(topology_.domains().size());
      for (const DemandWorker& worker : context_.task.demand.workers) {
        for (const Level level : kAllLevels) {
          const DomainId around = topology_.around(worker.node, level);
          if (!around.valid()) continue;
          auto& inside = replicas_[around.index()];
          const bool known = std::find(inside.begin(), inside.end(), worker.group) != inside.end();
          if (!known && inside.size() <= kMostNamed) inside.push_back(worker.group);
        }
      }
    }
    const auto& inside = replicas_[domain.index()];
    if (inside.size() > kMostNamed) return {};
    std::string text;
    for (const std::uint32_t group : inside) {
      text += (text.empty() ? "" : ", ") + context_.task.replicas[group].name;
    }
    return text;
  }

  void add_level(Level level, Direction direction, std::vector<LevelCrossing>& crossings) {
    LevelCrossing all;
    all.level = level;
    all.direction = direction;
    Bytes least_in;
    DomainId most;
    Time longest;
    for (std::size_t i = 0; i < topology_.domains().size(); ++i) {
      if (topology_.domains()[i].level != level) continue;
      const bool in = direction == Direction::In;
      const Bytes bytes = in ? in_[i] : out_[i];
      all.bytes += bytes;
      all.minimum += in ? minimum_.in[i] : minimum_.out[i];
      least_in += minimum_.in[i];
      if (bytes == Bytes()) continue;
      ++all.domains;
      const Time time = transfer_time(bytes, capacity_[i]);
      if (!most.valid() || time > longest) {
        most = DomainId(i);
        longest = time;
      }
    }
    if (!most.valid()) return;
    // What enters domains has left others, where everybody is in one.
    if (direction == Direction::Out && everyone_inside(level)) {
      all.minimum = std::max(all.minimum, least_in);
    }
    all.most = crossing(most, direction);
    crossings.push_back(std::move(all));
  }

  [[nodiscard]] bool everyone_inside(Level level) const {
    const auto& workers = context_.task.demand.workers;
    return std::all_of(workers.begin(), workers.end(), [&](const DemandWorker& worker) {
      return topology_.around(worker.node, level).valid();
    });
  }

  using Ends = std::tuple<TrafficKind, NodeKind, NodeKind>;
  [[nodiscard]] Ends ends_of(const Link& link) const {
    const NodeKind a = topology_.node(link.a).kind;
    const NodeKind b = topology_.node(link.b).kind;
    return {traffic_kind(link, topology_), std::min(a, b), std::max(a, b)};
  }

  // The upper median of the capacities of the usable links like this one.
  Rate usual(const Link& link) {
    if (rates_.empty()) {
      for (std::size_t i = 0; i < topology_.links().size(); ++i) {
        const Link& other = topology_.links()[i];
        if (topology_.usable(LinkId(i))) rates_[ends_of(other)].push_back(other.capacity);
      }
      for (auto& [ends, rates] : rates_) {
        const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
        std::nth_element(rates.begin(), middle, rates.end());
        rates.assign(1, *middle);
      }
    }
    const auto found = rates_.find(ends_of(link));
    return found == rates_.end() ? link.capacity : found->second.front();
  }

  BusyLink busy_link(std::size_t use) const {
    const ChannelId channel = run_.links[use].channel;
    const Link& link = topology_.link(channel.link());
    BusyLink busy;
    busy.bytes = totals_[use];
    busy.capacity = link.capacity;
    if (!run_.shape.streams.empty()) {
      busy.streams = run_.shape.streams[channel.index()];
      busy.largest_stream = run_.shape.largest[channel.index()];
    }
    busy.stream_cap = link.stream_cap;
    return busy;
  }

  void add_busiest(std::vector<BusyLink>& busiest) {
    std::vector<std::pair<Time, std::size_t>> order;
    for (std::size_t u = 0; u < run_.links.size(); ++u) {
      order.emplace_back(busy_link(u).busy(), u);
    }
    const std::size_t count = std::min(kBusiestLinks, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first : a.second < b.second;
                      });
    for (std::size_t k = 0; k < count; ++k) {
      BusyLink busy = busy_link(order[k].second);
      describe(run_.links[order[k].second].channel, busy);
      busiest.push_back(std::move(busy));
    }
  }

  void describe(ChannelId channel, BusyLink& busy) {
    const Link& link = topology_.link(channel.link());
    busy.link = topology_.channel_name(channel);
    busy.kind = to_string(traffic_kind(link, topology_));
    busy.usual = usual(link);
    for (const Level level : kAllLevels) {  // the outermost comes last
      const DomainId left = left_by(topology_, channel, level);
      const DomainId entered = entered_by(topology_, channel, level);
      if (left.valid()) busy.leaves = crossing(left, Direction::Out);
      if (entered.valid()) busy.enters = crossing(entered, Direction::In);
    }
  }

  [[nodiscard]] std::optional<DigestLoad> longest_digest() const {
    const Demand& demand = context_.task.demand;
    if (!demand.verify) return std::nullopt;
    const std::vector<Bytes> missing = missing_bytes(demand);
    std::optional<DigestLoad> longest;
    for (std::size_t w = 0; w < missing.size(); ++w) {
      const Node& node = topology_.node(demand.workers[w].node);
      const DigestLoad load{{}, missing[w], node.digest_rate};
      if (missing[w] > Bytes() && (!longest || load.busy() > longest->busy())) {
        longest = load;
        longest->worker = node.name;
      }
    }
    return longest;
  }

  static constexpr std::size_t kMostNamed = 2;

  const ResultsContext& context_;
  const Topology& topology_;
  const MinimumCrossings& minimum_;
  const RunRecord& run_;
  std::vector<Bytes> totals_;  // by used link of the run
  std::vector<Bytes> in_;      // by domain
  std::vector<Bytes> out_;
  std::vector<Rate> capacity_;
  std::vector<std::vector<std::uint32_t>> replicas_;  // by domain: at most kMostNamed + 1
  std::map<Ends, std::vector<Rate>> rates_;
};

}  // namespace

Time BusyLink::busy() const {
  const Time all = transfer_time(bytes, capacity);
  return stream_cap ? std::max(all, transfer_time(largest_stream, *stream_cap)) : all;
}

bool BusyLink::limited_by_stream() const {
  return busy() > transfer_time(bytes, capacity);
}

Time DigestLoad::busy() const {
  return transfer_time(bytes, rate);
}

MinimumCrossings minimum_crossings(const Topology& topology, const Demand& demand) {
  const std::size_t domains = topology.domains().size();
  MinimumCrossings minimum{std::vector<Bytes>(domains), std::vector<Bytes>(domains)};
  // The last class that was seen to be held, or to be counted, in a domain. Levels share no domain.
  std::vector<std::size_t> mark(domains, demand.classes.size());
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    const BlockClass& block_class = demand.classes[c];
    const Bytes bytes = bytes_of(demand, block_class);
    for (const Level level : kAllLevels) {
      const auto domain_of = [&](WorkerId worker) {
        return topology.around(demand.workers[worker.index()].node, level);
      };
      DomainId only;  // the domain of all holders
      bool first = true;
      for (const WorkerId holder : block_class.holders) {
        if (!demand.workers[holder.index()].may_serve) continue;
        const DomainId domain = domain_of(holder);
        only = first || only == domain ? domain : DomainId();
        first = false;
        if (domain.valid()) mark[domain.index()] = c;
      }
      bool elsewhere = false;
      for (const WorkerId receiver : block_class.receivers) {
        const DomainId domain = domain_of(receiver);
        elsewhere = elsewhere || domain != only;
        if (domain.valid() && mark[domain.index()] != c) {
          mark[domain.index()] = c;
          minimum.in[domain.index()] += bytes;
        }
      }
      if (only.valid() && elsewhere) minimum.out[only.index()] += bytes;
    }
  }
  return minimum;
}

RunDetail detail_of(const ResultsContext& context, const MinimumCrossings& minimum,
                    const RunRecord& run) {
  return Detail(context, minimum, run).take();
}

const char* to_string(Direction direction) {
  return direction == Direction::In ? "in" : "out";
}

}  // namespace holdfast
