#include "sim/storm_network.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "sim/storm_ports.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint32_t kWhole = 1'000'000;
constexpr std::uint32_t kStalled = 1;  // none at all would take the link down

NetworkOptions options_of(const storm::World& world) {
  NetworkOptions options;
  options.driver = best_flow_driver();
  options.links = PlatformLinks::All;
  options.detection = world.times.peer_detection;
  for (const auto& space : world.spaces) {
    options.block = std::max(options.block, space->block_size());
  }
  return options;
}

std::vector<NodeId> nodes_of(const storm::World& world) {
  std::vector<NodeId> nodes;
  for (const WorkerCard& card : world.cards) nodes.push_back(card.node);
  return nodes;
}

class SimGridNetwork final : public storm::DataNetwork {
 public:
  explicit SimGridNetwork(const storm::World& world)
      : world_(world),
        router_(*world.topology),
        network_(router_, nodes_of(world), {}, {}, options_of(world)),
        ports_(network_, world.cards.size(), world.seed, world.times.most_cancelling),
        doors_(world.cards.size()),
        unheard_(world.cards.size()) {}

  void run(const std::function<void(storm::DataNetwork&)>& body) {
    network_.run_one_actor([&] { body(*this); });
  }

  [[nodiscard]] Transport& transport(WorkerId worker) override { return ports_.transport(worker); }
  [[nodiscard]] Memory& memory(WorkerId worker) override { return ports_.memory(worker); }
  [[nodiscard]] Time now() const override { return network_.now(); }
  bool step(Time until, bool then_too) override {
    const Time now = network_.now();
    if (until < now || (until == now && !then_too)) return false;
    network_.wait(until);
    return network_.any_ready() && (then_too || network_.now() < until);
  }
  [[nodiscard]] std::vector<WorkerId> take_ready() override { return network_.take_ready(); }

  void crash(WorkerId worker) override { ports_.kill(worker); }
  void restart(WorkerId worker) override {
    ports_.restart(worker);
    stall(worker, now());
  }
  [[nodiscard]] bool alive(WorkerId worker) const override { return network_.alive(worker); }

  // One cut for each worker that does not reach some others: there may be 64 of them.
  void cut(WorkerId from, WorkerId to, bool cut) override {
    Unheard& unheard = unheard_[from.index()];
    const bool changed = cut ? unheard.by.insert(to).second : unheard.by.erase(to) > 0;
    if (!changed) return;
    const std::vector<WorkerId> by(unheard.by.begin(), unheard.by.end());
    if (unheard.cut) network_.heal(*unheard.cut);
    unheard.cut.reset();
    if (!by.empty()) unheard.cut = network_.cut(std::span(&from, 1), by);
  }

  void set_rate(WorkerId worker, Rate rate) override {
    const std::uint64_t whole = world_.times.port.bytes_per_second();
    const std::uint64_t share = rate.bytes_per_second() * kWhole / whole;
    doors_[worker.index()].share =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, kStalled, kWhole));
    look_at_door(worker);
  }
  void stall(WorkerId worker, Time until) override {
    doors_[worker.index()].stalled_until = until;
    look_at_door(worker);
    if (until > now()) network_.call_at(until, [this, worker] { look_at_door(worker); });
  }
  void corrupt(WorkerId source, std::uint64_t skip) override { ports_.corrupt(source, skip); }
  void set_message_faults(std::uint32_t lost_per_mille, std::uint32_t doubled_per_mille,
                          Time jitter) override {
    ports_.set_message_faults({lost_per_mille, doubled_per_mille, jitter});
  }
  void watch_reads(std::function<void(const ReadSight&)> watcher) override {
    ports_.watch(std::move(watcher));
  }

 private:
  // The links by which a worker is joined to everything else.
  struct Door {
    std::uint32_t share = kWhole;
    std::uint32_t set = kWhole;  // what they have
    Time stalled_until;
  };
  struct Unheard {
    std::set<WorkerId> by;
    std::optional<CutId> cut;
  };

  void look_at_door(WorkerId worker) {
    Door& door = doors_[worker.index()];
    const std::uint32_t share = door.stalled_until > now() ? kStalled : door.share;
    if (share == door.set) return;
    door.set = share;
    std::vector<LinkShare> links;
    for (const Neighbour& next : world_.topology->neighbours(world_.cards[worker.index()].node)) {
      links.push_back({next.link, share});
    }
    network_.limit(links);
  }

  const storm::World& world_;
  Router router_;
  SimNetwork network_;
  StormPorts ports_;
  std::vector<Door> doors_;
  std::vector<Unheard> unheard_;  // by whom a worker is not heard
};

}  // namespace

void on_simgrid(const storm::World& world, const std::function<void(storm::DataNetwork&)>& body) {
  SimGridNetwork network(world);
  network.run(body);
}

}  // namespace holdfast::sim
