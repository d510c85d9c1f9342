#include "core/plan/bound_lone.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::bound {
namespace {

// A worker's classes that no other member of its host holds or passes on.
struct Lone {
  std::vector<ClassId> classes;  // ascending
  std::uint64_t bytes = 0;
};

class LoneShards {
 public:
  LoneShards(const DemandIndex& index, const Latencies& latencies, Result& result)
      : index_(&index),
        latencies_(&latencies),
        result_(&result),
        receives_(index.demand().workers.size()),
        holds_(index.demand().workers.size()),
        members_(index.topology().domains().size(), 0) {
    for (std::size_t c = 0; c < index.demand().classes.size(); ++c) look_at(ClassId(c));
  }

  void offer() {
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      if (receives_[i].bytes != 0) offer_receiver(WorkerId(i));
      if (holds_[i].bytes != 0) offer_holder(WorkerId(i));
    }
  }

 private:
  [[nodiscard]] std::size_t host(WorkerId w) const {
    return index_->nest(w)[static_cast<std::size_t>(Level::Host)].index();
  }

  // Every worker lies in a host: it is an endpoint.
  void look_at(ClassId id) {
    const BlockClass& c = index_->demand().classes[id.index()];
    const auto holders = index_->holders(index_->holder_set(id));
    for (const WorkerId w : holders) ++members_[host(w)];
    for (const WorkerId w : c.receivers) members_[host(w)] += index_->may_relay(w) ? 1U : 0U;
    for (const WorkerId w : c.receivers) {
      if (members_[host(w)] == (index_->may_relay(w) ? 1U : 0U)) add(receives_[w.index()], id);
    }
    if (holders.size() == 1 && members_[host(holders.front())] == 1) {
      add(holds_[holders.front().index()], id);
    }
    for (const WorkerId w : holders) members_[host(w)] = 0;
    for (const WorkerId w : c.receivers) members_[host(w)] = 0;
  }

  void add(Lone& lone, ClassId id) const {
    lone.classes.push_back(id);
    lone.bytes += index_->bytes(id);
  }

  // The worker's links but NVLink, in one direction.
  [[nodiscard]] std::vector<ChannelId> channels(WorkerId w, bool in) const {
    const Topology& topology = index_->topology();
    const NodeId node = index_->demand().workers[w.index()].node;
    std::vector<ChannelId> result;
    for (const Neighbour& next : topology.neighbours(node)) {
      const Link& link = topology.link(next.link);
      if (link.kind == LinkKind::NvLink || !topology.usable(next.link)) continue;
      result.emplace_back(next.link, (link.b == node) != in);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  [[nodiscard]] Ratio ratio(const Lone& lone, const std::vector<ChannelId>& channels) const {
    Ratio ratio{lone.bytes, 0};
    for (const ChannelId channel : channels) {
      ratio.capacity += index_->topology().link(channel.link()).capacity.bytes_per_second();
    }
    return ratio;
  }

  void offer_receiver(WorkerId w) {
    const Lone& lone = receives_[w.index()];
    const std::vector<ChannelId> in = channels(w, true);
    const Ratio found = ratio(lone, in);
    Time latency = Time::never();
    for (const ClassId c : lone.classes) latency = std::min(latency, latencies_->least(c, w));
    const DemandWorker& worker = index_->demand().workers[w.index()];
    result_->raise_group(worker.group, add_times(crossing_time(found), latency));
    result_->offer(found, latency, [&] {
      Cut cut;
      cut.kind = CutKind::Receiver;
      cut.sink = index_->topology().node(worker.node).name;
      cut.receivers = {w};
      cut.classes = lone.classes;
      cut.channels = in;
      return cut;
    });
  }

  void offer_holder(WorkerId holder) {
    const Lone& lone = holds_[holder.index()];
    const std::vector<ChannelId> out = channels(holder, false);
    const Ratio found = ratio(lone, out);
    if (crossing_time(found) <= result_->best()) return;  // before the receivers are gone through
    Time latency = Time::never();
    std::vector<WorkerId> receivers;
    std::vector<ClassId> classes;
    Ratio counted{0, found.capacity};
    for (const ClassId c : lone.classes) {
      bool any = false;
      for (const WorkerId w : index_->demand().classes[c.index()].receivers) {
        if (host(w) == host(holder)) continue;
        any = true;
        receivers.push_back(w);
        latency = std::min(latency, latencies_->least(c, w));
      }
      if (!any) continue;
      classes.push_back(c);
      counted.bytes += index_->bytes(c);
    }
    if (classes.empty()) return;
    std::sort(receivers.begin(), receivers.end());
    receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
    result_->offer(counted, latency, [&] {
      Cut cut;
      cut.kind = CutKind::Domain;
      cut.sink = "all receivers";
      cut.receivers = receivers;
      cut.classes = classes;
      cut.channels = out;
      return cut;
    });
  }

  const DemandIndex* index_;
  const Latencies* latencies_;
  Result* result_;
  std::vector<Lone> receives_;          // by worker
  std::vector<Lone> holds_;             // by worker: it alone, of all
  std::vector<std::uint32_t> members_;  // by host; zero between classes
};

}  // namespace

void offer_lone_shards(const DemandIndex& index, const Latencies& latencies, Result& result) {
  LoneShards(index, latencies, result).offer();
}

}  // namespace holdfast::bound
