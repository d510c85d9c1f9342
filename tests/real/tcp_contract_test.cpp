// The transport contract over real sockets, in real time. Each worker is a thread; a thread holds
// the turn while its body runs and gives it up inside `wait`, so that bodies share variables as the
// suite allows, while all transports wait, send and receive at the same time.
//
// The suite counts in units of what a block takes, and it compares shares of a source between
// readers that begin within a few units of each other. A loopback is so fast that the threads'
// start would decide; so sources are limited to a rate at which the network, not the machine, is
// what takes the time.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "real/host_memory.hpp"
#include "real/tcp_transport.hpp"
#include "tests/engine/forwarding_transport.hpp"
#include "tests/engine/transport_contract.hpp"

namespace holdfast::testing {
namespace {

using real::HostMemory;
using real::TcpOptions;
using real::TcpTransport;

// A mutex that is given in the order in which it was asked for, and wakes only who gets it: 65
// threads take turns and must not starve each other.
class Turn {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    if (!taken_) {
      taken_ = true;
      return;
    }
    Waiter mine;
    waiters_.push_back(&mine);
    mine.changed.wait(guard, [&] { return mine.given; });
  }
  void unlock() {
    const std::lock_guard guard(mutex_);
    if (waiters_.empty()) {
      taken_ = false;
      return;
    }
    Waiter& next = *waiters_.front();
    waiters_.pop_front();
    next.given = true;
    next.changed.notify_one();  // under the lock: the waiter goes as soon as it has it
  }

 private:
  struct Waiter {
    std::condition_variable changed;
    bool given = false;
  };
  std::mutex mutex_;
  bool taken_ = false;
  std::deque<Waiter*> waiters_;
};

struct Stopped {};  // ends the body of a worker that was killed

class TcpContractNetwork final : public ContractNetwork {
 public:
  TcpContractNetwork(std::size_t workers, const TcpOptions& options) : rate_(options.rate) {
    for (std::size_t w = 0; w < workers; ++w) {
      workers_.push_back(std::make_unique<Worker>());
      workers_[w]->transport = std::make_unique<TcpTransport>(WorkerId(w), options);
      workers_[w]->address = workers_[w]->transport->address();
    }
  }

  [[nodiscard]] bool real_bytes() const override { return true; }
  [[nodiscard]] bool reliable_messages() const override { return true; }
  [[nodiscard]] bool can_kill() const override { return true; }
  [[nodiscard]] Endpoint endpoint(WorkerId, WorkerId other) const override {
    return {other, {}, workers_[other.index()]->address};
  }
  std::span<std::byte> memory(WorkerId worker, Bytes size) override {
    std::vector<std::byte>& bytes = workers_[worker.index()]->memory;
    bytes.resize(size.count());
    return bytes;
  }
  [[nodiscard]] Time estimate(Bytes bytes) const override {
    return milliseconds(3) + transfer_time(bytes, rate_) * 2;
  }
  // From the body that has the turn. Returns when the worker's sockets are closed.
  void kill(WorkerId worker) override {
    Worker& victim = *workers_[worker.index()];
    std::unique_lock lock(victim.mutex);
    victim.killed = true;
    victim.transport->wake_up().raise();
    victim.changed.wait(lock, [&] { return victim.dead; });
  }

  void run(const std::vector<Body>& bodies) override {
    std::vector<std::thread> threads;
    for (std::size_t w = 0; w < bodies.size(); ++w) {
      threads.emplace_back([this, w, &bodies] { live(WorkerId(w), bodies[w]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Worker {
    std::unique_ptr<TcpTransport> transport;
    std::string address;
    std::vector<std::byte> memory;
    std::mutex mutex;
    std::condition_variable changed;
    bool killed = false;
    bool dead = false;
  };

  // What a body sees: the transport, without the turn inside `wait`.
  class Yielding final : public ForwardingTransport {
   public:
    Yielding(TcpContractNetwork& network, Worker& worker)
        : ForwardingTransport(*worker.transport), network_(network), worker_(worker) {}
    void wait(Time until) override {
      network_.turn_.unlock();
      inner().wait(until);
      {
        const std::lock_guard lock(worker_.mutex);
        if (worker_.killed) throw Stopped{};
      }
      network_.turn_.lock();
    }

   private:
    TcpContractNetwork& network_;
    Worker& worker_;
  };

  void live(WorkerId self, const Body& body) {
    Worker& worker = *workers_[self.index()];
    {
      HostMemory memory(worker.transport->regions(), worker.transport->wake_up());
      Yielding transport(*this, worker);
      turn_.lock();
      try {
        body(transport, memory, self);
        turn_.unlock();
      } catch (const Stopped&) {
      }
    }
    const std::lock_guard lock(worker.mutex);
    if (worker.killed) worker.transport.reset();
    worker.dead = true;
    worker.changed.notify_all();
  }

  Rate rate_;
  Turn turn_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Frames small enough to be cut in. Where many read, some 8 s for their 64 MiB: on a busy machine
// it takes some tenths of a second until all threads have begun.
TcpOptions usual(std::size_t workers) {
  TcpOptions options;
  options.rate = Rate(workers > 8 ? 8'000'000 : 24'000'000);
  options.frame_bytes = 32 * 1024;
  options.silence = seconds(20);
  return options;
}

std::unique_ptr<ContractNetwork> ipv4(std::size_t workers) {
  return std::make_unique<TcpContractNetwork>(workers, usual(workers));
}

std::unique_ptr<ContractNetwork> ipv6(std::size_t workers) {
  TcpOptions options = usual(workers);
  options.listen = "[::1]:0";
  return std::make_unique<TcpContractNetwork>(workers, options);
}

// Small limits, frames that split everything, heartbeats all the time: still the same contract.
std::unique_ptr<ContractNetwork> awkward(std::size_t workers) {
  TcpOptions options = usual(workers);
  options.limits = {Bytes(1 << 20), 3, 4};
  options.frame_bytes = 1000;
  options.heartbeat = milliseconds(20);
  return std::make_unique<TcpContractNetwork>(workers, options);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract,
                         ::testing::Values(ContractFactory{"ipv4", ipv4},
                                           ContractFactory{"ipv6", ipv6},
                                           ContractFactory{"awkward", awkward}),
                         contract_name);

}  // namespace
}  // namespace holdfast::testing
