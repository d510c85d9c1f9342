// The transport contract on SimGrid: each body is an actor; each test runs in a child, since an
// engine lives once in a process.
#include <cstdio>

#include "sim/child_process.hpp"
#include "sim/sim_network.hpp"
#include "sim/storm_ports.hpp"
#include "tests/engine/transport_contract.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::testing {
namespace {

enum class Carries { Sizes, Bytes };

class SimContractNetwork final : public ContractNetwork {
 public:
  SimContractNetwork(std::size_t workers, sim::FlowDriver driver, Carries carries)
      : workers_(static_cast<std::uint32_t>(workers)),
        driver_(driver),
        carries_(carries),
        memories_(workers),
        topology_(sim::testing::make_star({.hosts = static_cast<std::uint32_t>(workers),
                                           .rate = Rate(10'000'000'000),
                                           .digest_rate = Rate(20'000'000'000)})) {}

  [[nodiscard]] bool real_bytes() const override { return carries_ == Carries::Bytes; }
  [[nodiscard]] bool reliable_messages() const override { return true; }
  [[nodiscard]] bool can_kill() const override { return true; }
  [[nodiscard]] Endpoint endpoint(WorkerId self, WorkerId other) const override {
    return {other, {nic(other.value()), nic(self.value()), 0}, {}};
  }
  std::span<std::byte> memory(WorkerId worker, Bytes size) override {
    if (!real_bytes()) return {};
    memories_[worker.index()].resize(size.count());
    return memories_[worker.index()];
  }
  [[nodiscard]] Time estimate(Bytes bytes) const override {
    return microseconds(20) + transfer_time(bytes, Rate(10'000'000'000)) * 2;
  }
  void kill(WorkerId worker) override {
    real_bytes() ? ports_->kill(worker) : network_->kill(worker);
  }

  void run(const std::vector<Body>& bodies) override {
    sim::ChildProcess child([&](sim::ChildProcess::Channel& out) {
      run_here(bodies);
      std::fflush(nullptr);
      out.send(::testing::Test::HasFailure() ? 0 : 1, {});
    });
    const auto frame = child.next(120'000);
    const bool well = frame && frame->kind == 1;
    EXPECT_TRUE(well) << child.how_it_ended();
  }

 private:
  [[nodiscard]] NodeId nic(std::uint32_t worker) const {
    return topology_.find_node("nic" + std::to_string(worker));
  }
  [[nodiscard]] NodeId gpu(std::uint32_t worker) const {
    return topology_.find_node("gpu" + std::to_string(worker));
  }
  void run_here(const std::vector<Body>& bodies) {
    const Router router(topology_);
    std::vector<NodeId> nodes;
    std::vector<sim::DataPath> paths;
    for (std::uint32_t i = 0; i < workers_; ++i) {
      nodes.push_back(gpu(i));
      paths.push_back({gpu(0), gpu(i), {nic(0), nic(i), 0}});
    }
    if (workers_ == 1) paths.clear();
    network_ = std::make_unique<sim::SimNetwork>(router, nodes, paths, sim::Meters{},
                                                 sim::NetworkOptions{driver_, {}, {}, {}, {}});
    if (!real_bytes()) return network_->run_actors(bodies);
    ports_ = std::make_unique<sim::StormPorts>(*network_, workers_, 1);
    std::vector<Body> over_ports;
    for (const Body& body : bodies) {
      over_ports.emplace_back([this, &body](Transport&, Memory&, WorkerId self) {
        body(ports_->transport(self), ports_->memory(self), self);
      });
    }
    network_->run_actors(over_ports);
  }

  std::uint32_t workers_;
  sim::FlowDriver driver_;
  Carries carries_;
  std::vector<std::vector<std::byte>> memories_;
  Topology topology_;
  std::unique_ptr<sim::SimNetwork> network_;  // in the child
  std::unique_ptr<sim::StormPorts> ports_;
};

ContractFactory factory(const std::string& name, sim::FlowDriver driver,
                        Carries carries = Carries::Sizes) {
  return {name, [driver, carries](std::size_t workers) {
            return std::make_unique<SimContractNetwork>(workers, driver, carries);
          }};
}

INSTANTIATE_TEST_SUITE_P(SimGrid, TransportContract,
                         ::testing::Values(factory("kernel_action", sim::best_flow_driver()),
                                           factory("direct_comm", sim::FlowDriver::DirectComm),
                                           factory("real_bytes", sim::best_flow_driver(),
                                                   Carries::Bytes)),
                         contract_name);

}  // namespace
}  // namespace holdfast::testing
