#include "core/engine/virtual_network.hpp"
#include "core/storm/data_network.hpp"

namespace holdfast::storm {
namespace {

VirtualOptions options_of(const World& world) {
  VirtualOptions options;
  options.seed = world.seed;
  options.rate = world.times.port;
  options.latency = world.times.data_latency;
  options.digest_rate = world.times.port * 8;
  options.cancel_time = world.times.most_cancelling;
  options.detection = world.times.peer_detection;
  return options;
}

class VirtualDataNetwork final : public DataNetwork {
 public:
  explicit VirtualDataNetwork(const World& world)
      : network_(world.cards.size(), options_of(world)) {}

  [[nodiscard]] Transport& transport(WorkerId worker) override {
    return network_.transport(worker);
  }
  [[nodiscard]] Memory& memory(WorkerId worker) override { return network_.memory(worker); }
  [[nodiscard]] Time now() const override { return network_.now(); }
  bool step(Time until, bool then_too) override {
    const Time next = network_.next_event();
    if (next < until || (then_too && next == until)) return network_.step();
    if (until != Time::never()) network_.advance(until);
    return false;
  }
  [[nodiscard]] std::vector<WorkerId> take_ready() override { return network_.take_ready(); }

  void crash(WorkerId worker) override { network_.crash(worker); }
  void restart(WorkerId worker) override { network_.restart(worker); }
  [[nodiscard]] bool alive(WorkerId worker) const override { return network_.alive(worker); }
  void cut(WorkerId from, WorkerId to, bool cut) override { network_.cut(from, to, cut); }
  void set_rate(WorkerId worker, Rate rate) override { network_.set_rate(worker, rate); }
  void stall(WorkerId worker, Time until) override { network_.stall(worker, until); }
  void corrupt(WorkerId source, std::uint64_t skip) override { network_.corrupt(source, skip); }
  void set_message_faults(std::uint32_t lost_per_mille, std::uint32_t doubled_per_mille,
                          Time jitter) override {
    network_.set_message_faults(lost_per_mille, doubled_per_mille, jitter);
  }
  void watch_reads(std::function<void(const ReadSight&)> watcher) override {
    network_.watch_reads(std::move(watcher));
  }

 private:
  VirtualNetwork network_;
};

}  // namespace

void on_virtual_network(const World& world, const std::function<void(DataNetwork&)>& body) {
  VirtualDataNetwork network(world);
  body(network);
}

}  // namespace holdfast::storm
