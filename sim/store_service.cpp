#include "sim/store_service.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace holdfast::sim {
namespace {

// The space with one more layout: an equal range of blocks on each store host.
std::shared_ptr<const ModelSpace> with_store(const ModelSpace& space, std::uint32_t hosts) {
  if (space.blocks() < hosts) {
    throw Error(ErrorCode::BadValue, "the store has more hosts than the model has blocks");
  }
  auto result = std::make_shared<ModelSpace>(
      space.job(), space.model(), space.block_size(),
      std::vector<Bytes>(space.block_bytes().begin(), space.block_bytes().end()));
  for (LayoutNumber layout = 0; layout < space.layouts(); ++layout) {
    std::vector<std::vector<BlockSpan>> shards;
    for (std::uint32_t rank = 0; rank < space.ranks(layout); ++rank) {
      const auto spans = space.spans({layout, rank});
      shards.emplace_back(spans.begin(), spans.end());
    }
    result->add_layout(space.layout_name(layout), std::move(shards));
  }
  std::vector<std::vector<BlockSpan>> shards;
  std::uint32_t first = 0;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const std::uint32_t end = space.blocks() * (host + 1) / hosts;
    shards.push_back({{BlockId(first), end - first}});
    first = end;
  }
  result->add_layout("store", std::move(shards));
  return result;
}

class StoreService final : public WeightService, private ServiceObserver {
 public:
  StoreService(const Router& router, ServiceSetup setup, const StoreOptions& options)
      : put_time_(options.put_time), get_time_(options.get_time) {
    if (options.hosts.empty()) throw Error(ErrorCode::BadValue, "a store needs hosts");
    for (const ServiceGroup& group : setup.groups) workers_ += group.members.size();
    name_hosts(setup, options.hosts);
    setup.memories.clear();
    ProtocolOptions protocol = options.protocol;
    protocol.sources = Sources::Stores;
    protocol.policy = Policy::Star;
    protocol.planning_time = Time();
    const auto hosts = static_cast<std::uint32_t>(options.hosts.size());
    if (setup.spaces.size() != 1) {
      throw Error(ErrorCode::Unsupported, "a store keeps one model; give each its own run");
    }
    ServiceGroup store;
    store.name = "store";
    store.space = SpaceId(0U);
    store.layout = static_cast<LayoutNumber>(setup.spaces.front()->layouts());
    store.members = options.hosts;
    store.slots = 2;
    setup.spaces.front() = with_store(*setup.spaces.front(), hosts);
    store_ = GroupId(setup.groups.size());
    setup.groups.push_back(std::move(store));
    protocol.stores = {store_};
    protocol_ = std::make_unique<ProtocolService>(router, std::move(setup), protocol);
  }

  void run(ServiceObserver& observer, std::function<void()> begin) override {
    observer_ = &observer;
    protocol_->run(*this, [this, begin = std::move(begin)] {
      protocol_->start(store_);
      begin();
    });
  }
  void stop() override { protocol_->stop(); }
  [[nodiscard]] Time now() const override { return protocol_->now(); }
  void call_at(Time at, std::function<void()> what) override {
    protocol_->call_at(at, std::move(what));
  }
  void start(GroupId group) override { protocol_->start(group); }
  void kill(GroupId group) override { protocol_->kill(group); }
  [[nodiscard]] bool running(GroupId group) const override { return protocol_->running(group); }
  void apply(const FaultChange& change) override { protocol_->apply(change); }
  [[nodiscard]] const SimNetwork::Moved& moved() const override { return protocol_->moved(); }
  [[nodiscard]] std::vector<SimNetwork::Use> channel_use(Time makespan) const override {
    return protocol_->channel_use(makespan);
  }
  [[nodiscard]] FlowDriver driver() const override { return protocol_->driver(); }

  GroupCall call(GroupId group, const Call& what, Time deadline) override {
    const GroupCall number = ++last_;
    if (const auto* fetch = std::get_if<FetchCall>(&what)) {
      pull(group, number, *fetch, deadline);
    } else {
      Inner inner{number, group, {}, deadline};
      if (const auto* publish = std::get_if<PublishCall>(&what)) inner.pushes = publish->version;
      calls_[protocol_->call(group, what, deadline)] = inner;
    }
    return number;
  }

 private:
  // A call of the protocol, and what it is part of.
  struct Inner {
    GroupCall number = 0;
    GroupId group;
    std::optional<Version> pushes;  // a publish, whose version is to be pushed then
    Time deadline;
  };
  struct Push {
    std::vector<Inner> publishers;  // that wait for it
    bool there = false;
  };

  void name_hosts(const ServiceSetup& setup, const std::vector<NodeId>& hosts) {
    for (const NodeId host : hosts) {
      WorkerId named;
      for (std::size_t m = 0; m < setup.memories.size(); ++m) {
        if (setup.memories[m].node == host) named = WorkerId(workers_ + m);
      }
      named_.push_back(named);
    }
  }

  // `latest` is the latest that is in the store.
  void pull(GroupId group, GroupCall number, FetchCall fetch, Time deadline) {
    const bool named = fetch.version.has_value();
    for (const auto& [version, push] : pushes_) {
      if (push.there && (!fetch.version || *fetch.version < version) && !named) {
        fetch.version = version;
      }
    }
    const auto known = fetch.version ? pushes_.find(*fetch.version) : pushes_.end();
    if (known == pushes_.end() || !known->second.there) {
      CallResult unknown;
      unknown.status = CallStatus::UnknownVersion;
      unknown.reason = "it is not in the store";
      call_at(now(), [this, group, number, unknown] { end(group, number, unknown); });
      return;
    }
    call_at(now() + get_time_, [this, group, number, fetch, deadline] {
      calls_[protocol_->call(group, fetch, deadline)] = Inner{number, group, {}, deadline};
    });
  }

  void push(const Inner& publish) {
    Push& push = pushes_[*publish.pushes];
    if (push.there) {
      CallResult done;
      done.version = *publish.pushes;
      end(publish.group, publish.number, done);
      return;
    }
    push.publishers.push_back(publish);
    if (push.publishers.size() > 1) return;
    call_at(now() + put_time_, [this, version = *publish.pushes, deadline = publish.deadline] {
      FetchCall fetch;
      fetch.version = version;
      fetch.destination = Destination::Shadow;
      stores_[protocol_->call(store_, fetch, deadline)] = version;
    });
  }

  void end(GroupId group, GroupCall number, const CallResult& result) {
    observer_->call_ended(group, number, result);
  }

  void call_ended(GroupId group, GroupCall call, const CallResult& result) override {
    if (group == store_) {
      const auto at = stores_.find(call);
      if (at == stores_.end()) return;
      Push& push = pushes_[at->second];
      push.there = result.status == CallStatus::Ok;
      CallResult told = result;
      told.version = at->second;
      for (const Inner& publish : std::exchange(push.publishers, {})) {
        end(publish.group, publish.number, told);
      }
      return;
    }
    const auto at = calls_.find(call);
    if (at == calls_.end()) return;
    const Inner inner = at->second;
    calls_.erase(at);
    if (inner.pushes && result.status == CallStatus::Ok) {
      push(inner);
    } else {
      end(inner.group, inner.number, result);
    }
  }
  void runs_changed(GroupId group, const std::optional<Version>& version) override {
    if (group != store_) observer_->runs_changed(group, version);
  }
  void block_delivered(WorkerId receiver, BlockId block, WorkerId source) override {
    const WorkerId to = outside(receiver);
    if (to.valid()) observer_->block_delivered(to, block, outside(source));
  }
  void planned(const Demand& demand, const Plan* plan, const std::string& problem) override {
    observer_->planned(demand, plan, problem);
  }
  void fault_detected(WorkerId lost, WorkerId by) override {
    if (outside(lost).valid()) observer_->fault_detected(outside(lost), outside(by));
  }

  [[nodiscard]] WorkerId outside(WorkerId worker) const {
    if (!worker.valid() || worker.index() < workers_) return worker;
    return named_[worker.index() - workers_];
  }

  Time put_time_;
  Time get_time_;
  std::size_t workers_ = 0;      // of the groups outside
  std::vector<WorkerId> named_;  // by store host
  GroupId store_;
  std::unique_ptr<ProtocolService> protocol_;
  ServiceObserver* observer_ = nullptr;
  std::map<GroupCall, Inner> calls_;     // by the protocol's number
  std::map<GroupCall, Version> stores_;  // likewise
  std::map<Version, Push> pushes_;
  GroupCall last_ = 0;
};

}  // namespace

std::unique_ptr<WeightService> make_store_service(const Router& router, ServiceSetup setup,
                                                  const StoreOptions& options) {
  return std::make_unique<StoreService>(router, std::move(setup), options);
}

std::unique_ptr<WeightService> make_ucx_service(const Router& router, ServiceSetup setup,
                                                ProtocolOptions options, Time connect_time) {
  options.sources = Sources::Trainers;
  options.policy = Policy::Star;
  options.planning_time = connect_time;
  return std::make_unique<ProtocolService>(router, std::move(setup), options);
}

}  // namespace holdfast::sim
