// The transport contract on the virtual network. Bodies run in threads that pass a baton: exactly
// one runs at any moment, and they switch only inside `wait`.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/engine/virtual_network.hpp"
#include "tests/engine/transport_contract.hpp"

namespace holdfast::testing {
namespace {

class VirtualContractNetwork final : public ContractNetwork {
 public:
  VirtualContractNetwork(std::size_t workers, const VirtualOptions& options)
      : network_(workers, options), memories_(workers), states_(workers) {
    network_.set_wait([this](WorkerId worker, Time until) { wait(worker, until); });
  }

  [[nodiscard]] bool real_bytes() const override { return true; }
  [[nodiscard]] bool reliable_messages() const override { return true; }
  [[nodiscard]] bool can_kill() const override { return true; }
  [[nodiscard]] Endpoint endpoint(WorkerId, WorkerId other) const override {
    return {other, {}, {}};
  }
  std::span<std::byte> memory(WorkerId worker, Bytes size) override {
    memories_[worker.index()].resize(size.count());
    return memories_[worker.index()];
  }
  [[nodiscard]] Time estimate(Bytes bytes) const override {
    return microseconds(20) + transfer_time(bytes, Rate(10'000'000'000)) * 2;
  }
  void kill(WorkerId worker) override { network_.crash(worker); }

  void run(const std::vector<Body>& bodies) override {
    std::vector<std::thread> threads;
    for (std::size_t w = 0; w < bodies.size(); ++w) {
      threads.emplace_back([this, w, &bodies] {
        take_baton(w);
        const WorkerId self(w);
        try {
          bodies[w](network_.transport(self), network_.memory(self), self);
        } catch (const Stopped&) {
        }
        give_back(w, State::Finished);
      });
    }
    schedule();
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Stopped {};  // ends the body of a worker that was killed
  enum class State { Waiting, Running, Finished };
  struct Turn {
    State state = State::Waiting;
    Time until = Time{};
  };
  static constexpr std::size_t kScheduler = ~std::size_t{0};

  void take_baton(std::size_t worker) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return baton_ == worker; });
    if (worker != kScheduler) states_[worker].state = State::Running;
  }
  void give_back(std::size_t worker, State state) {
    const std::lock_guard lock(mutex_);
    states_[worker].state = state;
    baton_ = kScheduler;
    changed_.notify_all();
  }
  void wait(WorkerId worker, Time until) {
    states_[worker.index()].until = until;
    give_back(worker.index(), State::Waiting);
    take_baton(worker.index());
    if (!network_.alive(worker)) throw Stopped{};
  }
  void let_run(std::size_t worker) {
    {
      const std::lock_guard lock(mutex_);
      baton_ = worker;
      changed_.notify_all();
    }
    take_baton(kScheduler);
  }

  void schedule() {
    for (;;) {
      bool ran = false;
      bool waiting = false;
      Time next = Time::never();
      for (std::size_t w = 0; w < states_.size(); ++w) {
        if (states_[w].state != State::Waiting) continue;
        waiting = true;
        const WorkerId worker(w);
        if (!network_.alive(worker) || network_.ready(worker) ||
            states_[w].until <= network_.now()) {
          let_run(w);
          ran = true;
        } else {
          next = std::min(next, states_[w].until);
        }
      }
      if (!waiting) return;
      if (ran) continue;
      if (network_.next_event() <= next && network_.step()) continue;
      network_.advance(next);
    }
  }

  VirtualNetwork network_;
  std::vector<std::vector<std::byte>> memories_;
  std::vector<Turn> states_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t baton_ = kScheduler;
};

std::unique_ptr<ContractNetwork> plain(std::size_t workers) {
  return std::make_unique<VirtualContractNetwork>(workers, VirtualOptions{});
}

// Small limits, slow digests, reads that arrive late: still the same contract.
std::unique_ptr<ContractNetwork> awkward(std::size_t workers) {
  VirtualOptions options;
  options.seed = 99;
  options.limits = {Bytes(1 << 20), 3, 4};
  options.digest_rate = Rate(100'000'000);
  options.read_jitter = microseconds(3);
  return std::make_unique<VirtualContractNetwork>(workers, options);
}

INSTANTIATE_TEST_SUITE_P(Virtual, TransportContract,
                         ::testing::Values(ContractFactory{"plain", plain},
                                           ContractFactory{"awkward", awkward}),
                         contract_name);

// `wait` without a driver: a lone worker moves the clock itself.
TEST(VirtualNetwork, LoneWorkerMovesTheClock) {
  VirtualNetwork network(1, {});
  Transport& transport = network.transport(WorkerId(0U));
  transport.wait(microseconds(5));
  EXPECT_EQ(network.now(), microseconds(5));
  transport.wait(Time::never());  // nothing can happen: returns
  EXPECT_EQ(network.now(), microseconds(5));
  network.at(microseconds(7), [] {});
  transport.wait(microseconds(9));
  EXPECT_EQ(network.now(), microseconds(9));
}

}  // namespace
}  // namespace holdfast::testing
