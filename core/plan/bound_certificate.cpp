// Adds a bound's certificate up again. Shares nothing with the search for cuts but the types.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/plan/bound.hpp"
#include "core/plan/bound_walk.hpp"

namespace holdfast {
namespace {

__extension__ using Wide = unsigned __int128;
using bound::Walk;
using Refuted = std::optional<std::string>;

class Audit {
 public:
  Audit(const Cut& cut, const Topology& topology, const Demand& demand)
      : cut_(&cut),
        topology_(&topology),
        demand_(&demand),
        in_sink_(demand.workers.size()),
        counted_(demand.classes.size()) {}

  Refuted run() {
    if (cut_->receivers.empty() && cut_->bytes == Bytes(0) && cut_->time == Time()) return {};
    if (Refuted wrong = check_lists()) return wrong;
    if (Refuted wrong = check_name()) return wrong;
    for (const WorkerId w : cut_->receivers) in_sink_[w.index()] = true;
    for (const ClassId c : cut_->classes) counted_[c.index()] = true;
    Refuted wrong;
    if (cut_->kind == CutKind::Digest) {
      wrong = check_digest();
    } else if (cut_->kind == CutKind::Copies) {
      wrong = check_copies();
    } else {
      wrong = check_separation();
    }
    if (wrong) return wrong;
    if (cut_->kind != CutKind::Digest && (wrong = check_capacity())) return wrong;
    if ((wrong = check_latency())) return wrong;
    return check_time();
  }

 private:
  Refuted check_lists() const {
    const auto ascends = [](const auto& list) {
      return std::adjacent_find(list.begin(), list.end(), [](auto a, auto b) { return a >= b; }) ==
             list.end();
    };
    if (cut_->receivers.empty()) return "the cut has no receivers";
    if (cut_->classes.empty()) return "the cut counts no class";
    if (!ascends(cut_->receivers)) return "the receivers do not ascend";
    if (!ascends(cut_->classes)) return "the classes do not ascend";
    if (!ascends(cut_->channels)) return "the channels do not ascend: one is counted twice";
    if (cut_->receivers.back().index() >= demand_->workers.size()) {
      return "a receiver is no worker of the demand";
    }
    if (cut_->classes.back().index() >= demand_->classes.size()) {
      return "a class is not in the demand";
    }
    if (!cut_->channels.empty() && cut_->channels.back().index() >= topology_->channels()) {
      return "a channel is not in the topology";
    }
    return {};
  }

  [[nodiscard]] const Node& place(WorkerId w) const {
    return topology_->node(demand_->workers[w.index()].node);
  }
  [[nodiscard]] bool inside(NodeId node, DomainId domain) const {
    return !domain.valid() || topology_->around(node, topology_->domain(domain).level) == domain;
  }
  [[nodiscard]] bool inside(WorkerId w, DomainId domain) const {
    return inside(demand_->workers[w.index()].node, domain);
  }
  [[nodiscard]] bool serves(WorkerId w) const {
    return demand_->workers[w.index()].may_serve && place(w).up;
  }

  // That the name says who the receivers are.
  Refuted check_name() const {
    const std::vector<WorkerId>& receivers = cut_->receivers;
    const auto wrong = [&] { return fmt::format("the receivers are not '{}'", cut_->sink); };
    if (cut_->kind == CutKind::Receiver || cut_->kind == CutKind::Digest) {
      if (receivers.size() != 1 || place(receivers[0]).name != cut_->sink) return wrong();
      return {};
    }
    if (cut_->kind == CutKind::Group) {
      const std::uint32_t group = demand_->workers[receivers[0].index()].group;
      const bool one = std::all_of(receivers.begin(), receivers.end(), [&](WorkerId w) {
        return demand_->workers[w.index()].group == group;
      });
      if (!one || cut_->sink != fmt::format("group {}", group)) return wrong();
      return {};
    }
    if (cut_->sink == "all receivers") return {};
    constexpr std::string_view kOutside = "outside ";
    DomainId domain = topology_->find_domain(cut_->sink);
    const bool outside = !domain.valid() && cut_->sink.starts_with(kOutside);
    if (outside) domain = topology_->find_domain(cut_->sink.substr(kOutside.size()));
    if (!domain.valid()) return fmt::format("there is no domain '{}'", cut_->sink);
    const bool right = std::all_of(receivers.begin(), receivers.end(),
                                   [&](WorkerId w) { return inside(w, domain) != outside; });
    if (!right) return wrong();
    return {};
  }

  [[nodiscard]] Bytes bytes_of_class(std::size_t c) const {
    return bytes_of(*demand_, demand_->classes[c]);
  }

  Refuted check_bytes(Bytes right) const {
    if (cut_->bytes == right) return {};
    return fmt::format("{} bytes must cross, not {}", right.count(), cut_->bytes.count());
  }

  // Receiver, Group and Domain: without the channels nobody who holds a counted class reaches S.
  Refuted check_separation() const {
    Bytes sum;
    std::vector<NodeId> holders;
    for (const ClassId id : cut_->classes) {
      const BlockClass& c = demand_->classes[id.index()];
      const bool wanted = std::any_of(c.receivers.begin(), c.receivers.end(),
                                      [&](WorkerId w) { return in_sink_[w.index()]; });
      if (!wanted) return fmt::format("no receiver of the cut wants class {}", id.value());
      for (const WorkerId w : c.holders) {
        if (!serves(w)) continue;
        if (in_sink_[w.index()]) {
          return fmt::format("'{}' is in the cut and holds class {}", place(w).name, id.value());
        }
        holders.push_back(demand_->workers[w.index()].node);
      }
      sum += bytes_of_class(id.index());
    }
    if (Refuted wrong = check_bytes(sum)) return wrong;
    std::vector<bool> gone(topology_->channels());
    for (const ChannelId channel : cut_->channels) gone[channel.index()] = true;
    const Walk walk(*topology_, *demand_, cut_->classes);
    const std::vector<Time> arrived = walk.from(holders, gone);
    for (const WorkerId w : cut_->receivers) {
      if (arrived[demand_->workers[w.index()].node.index()] != Time::never()) {
        return fmt::format("a holder reaches '{}' without the cut's channels", place(w).name);
      }
    }
    return {};
  }

  Refuted check_copies() const {
    const DomainId domain = topology_->find_domain(cut_->sink);
    std::vector<bool> serving(demand_->workers.size());  // has something to send, sooner or later
    std::vector<bool> wants(demand_->workers.size());
    Bytes copies;
    for (std::size_t i = 0; i < demand_->classes.size(); ++i) {
      const BlockClass& c = demand_->classes[i];
      for (const WorkerId w : c.holders) serving[w.index()] = serving[w.index()] || serves(w);
      bool any = false;
      for (const WorkerId w : c.receivers) {
        serving[w.index()] = serving[w.index()] || serves(w);
        wants[w.index()] = true;
        if (!inside(w, domain)) continue;
        any = true;
        copies += bytes_of_class(i);
      }
      if (any != counted_[i]) return fmt::format("class {} is counted wrongly", i);
    }
    for (std::size_t i = 0; i < wants.size(); ++i) {
      if (in_sink_[i] != (wants[i] && inside(WorkerId(i), domain))) {
        return fmt::format("worker {} is or is not a receiver of the cut, wrongly", i);
      }
    }
    if (Refuted wrong = check_bytes(cut_->unit ? distinct_by_unit(domain) : copies)) return wrong;
    return check_copy_channels(domain, serving);
  }

  // Bytes that the units inside the domain want and do not hold, each unit once.
  [[nodiscard]] Bytes distinct_by_unit(DomainId domain) const {
    Bytes sum;
    for (std::size_t i = 0; i < demand_->classes.size(); ++i) {
      const BlockClass& c = demand_->classes[i];
      std::map<DomainId, bool> held;  // by unit that wants the class
      for (const WorkerId w : c.receivers) {
        const DomainId unit = unit_of(demand_->workers[w.index()].node);
        if (unit.valid() && in_sink_[w.index()]) held.emplace(unit, false);
      }
      for (const WorkerId w : c.holders) {
        const auto at = held.find(unit_of(demand_->workers[w.index()].node));
        if (at != held.end() && serves(w)) at->second = true;
      }
      for (const auto& [unit, has] : held) {
        const bool within = !domain.valid() || unit != domain;
        if (within && !has) sum += bytes_of_class(i);
      }
    }
    return sum;
  }

  [[nodiscard]] DomainId unit_of(NodeId node) const { return topology_->around(node, *cut_->unit); }

  // Every channel that a counted byte might take out of a server, or into the domain, is there.
  Refuted check_copy_channels(DomainId domain, const std::vector<bool>& serving) const {
    std::vector<bool> sends(topology_->nodes().size());
    std::vector<bool> unit_sends(topology_->domains().size());
    for (std::size_t i = 0; i < serving.size(); ++i) {
      const NodeId node = demand_->workers[i].node;
      if (!serving[i]) continue;
      sends[node.index()] = true;
      if (cut_->unit && unit_of(node).valid()) unit_sends[unit_of(node).index()] = true;
    }
    for (std::uint32_t i = 0; i < topology_->channels(); ++i) {
      const ChannelId channel(i);
      if (!topology_->usable(channel.link())) continue;
      const NodeId tail = topology_->tail(channel);
      const NodeId head = topology_->head(channel);
      bool needed = domain.valid() && !inside(tail, domain) && inside(head, domain);
      if (inside(tail, domain)) {
        if (cut_->unit) {
          const DomainId unit = unit_of(tail);
          needed = needed || (unit.valid() && unit_sends[unit.index()] && unit != unit_of(head));
        } else {
          needed = needed || sends[tail.index()];
        }
      }
      if (needed && !std::binary_search(cut_->channels.begin(), cut_->channels.end(), channel)) {
        return fmt::format("{} is missing from the cut", topology_->channel_name(channel));
      }
    }
    return {};
  }

  Refuted check_digest() const {
    if (!demand_->verify) return "nothing is digested in this demand";
    const WorkerId w = cut_->receivers[0];
    Bytes sum;
    for (std::size_t i = 0; i < demand_->classes.size(); ++i) {
      const auto& receivers = demand_->classes[i].receivers;
      const bool wanted = std::binary_search(receivers.begin(), receivers.end(), w);
      if (wanted != counted_[i]) return fmt::format("class {} is counted wrongly", i);
      if (wanted) sum += bytes_of_class(i);
    }
    if (Refuted wrong = check_bytes(sum)) return wrong;
    if (!cut_->channels.empty()) return "a digest uses no channels";
    if (cut_->capacity == place(w).digest_rate) return {};
    return fmt::format("'{}' digests {}, not {}", cut_->sink, to_string(place(w).digest_rate),
                       to_string(cut_->capacity));
  }

  Refuted check_capacity() const {
    Rate sum;
    for (const ChannelId channel : cut_->channels) {
      if (topology_->usable(channel.link())) sum += topology_->link(channel.link()).capacity;
    }
    if (sum == cut_->capacity) return {};
    return fmt::format("the channels carry {}, not {}", to_string(sum), to_string(cut_->capacity));
  }

  // The cut may claim no more latency than what nobody avoids: request and data on the shortest
  // way, and the digest of the smallest block.
  Refuted check_latency() const {
    const Walk walk(*topology_, *demand_, cut_->classes);
    const std::vector<bool> nothing(topology_->channels());
    std::map<std::vector<NodeId>, std::vector<Time>> ways;
    Time least = Time::never();
    for (const ClassId id : cut_->classes) {
      const BlockClass& c = demand_->classes[id.index()];
      std::vector<NodeId> holders;
      for (const WorkerId w : c.holders) {
        if (serves(w)) holders.push_back(demand_->workers[w.index()].node);
      }
      auto at = ways.find(holders);
      if (at == ways.end()) at = ways.emplace(holders, walk.from(holders, nothing)).first;
      for (const WorkerId w : c.receivers) {
        if (!in_sink_[w.index()]) continue;
        const Time way = at->second[demand_->workers[w.index()].node.index()];
        if (way == Time::never()) continue;
        const bool digested = demand_->verify && cut_->kind != CutKind::Digest;
        const Time digest =
            digested ? transfer_time(smallest_block(c), place(w).digest_rate) : Time();
        least = std::min(least, way + way + digest);
      }
    }
    if (cut_->latency <= least) return {};
    return fmt::format("the least latency is {}, not {}", to_string(least),
                       to_string(cut_->latency));
  }

  [[nodiscard]] Bytes smallest_block(const BlockClass& c) const {
    Bytes smallest(std::numeric_limits<std::uint64_t>::max());
    for (const BlockId block : blocks_of(c)) {
      smallest = std::min(smallest, demand_->block_bytes[block.index()]);
    }
    return smallest;
  }

  Refuted check_time() const {
    Time right = Time::never();
    if (cut_->capacity != Rate(0) && cut_->latency != Time::never()) {
      const Wide crossing =
          Wide{cut_->bytes.count()} * 1'000'000'000'000U / cut_->capacity.bytes_per_second();
      const Wide sum = crossing + static_cast<std::uint64_t>(cut_->latency.picoseconds());
      const Wide most = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
      if (sum < most) right = Time(static_cast<std::int64_t>(sum));
    }
    if (cut_->time == right) return {};
    return fmt::format("the time is {}, not {}", to_string(right), to_string(cut_->time));
  }

  const Cut* cut_;
  const Topology* topology_;
  const Demand* demand_;
  std::vector<bool> in_sink_;  // by worker
  std::vector<bool> counted_;  // by class
};

}  // namespace

std::optional<std::string> refute(const Cut& cut, const Topology& topology, const Demand& demand) {
  return Audit(cut, topology, demand).run();
}

}  // namespace holdfast
