// The contract of Transport and Memory as tests: one suite for every implementation.
//
// An implementation provides a ContractNetwork and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Virtual, TransportContract,
//                            ::testing::Values(ContractFactory{"virtual", make_virtual_network}));
//
// How bodies run. A test gives one body for each worker; `run` calls body(transport, memory, self)
// for each of them "at the same time" and returns when all have returned. Bodies block in
// Transport::wait only. They take turns: at most one runs at any moment and they switch only inside
// `wait` (and at the end of a body). So bodies share plain captured variables without locks. An
// implementation that is made of actors (SimGrid) runs each body in an actor; one that lives in a
// single thread gives each body a thread of its own and passes a baton; one over real sockets lets
// each body hold a mutex and drops it inside `wait`.
// Everything that a test asserts, it asserts inside bodies, with EXPECT_* and return: an
// implementation may run them in a forked process, provided that it fails the test there.
//
// What an implementation cannot do (real bytes, killing workers, losing messages) it says; the
// tests that need it are then skipped with a reason.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/digest.hpp"
#include "core/engine/memory.hpp"
#include "core/engine/transport.hpp"

namespace holdfast::testing {

class ContractNetwork {
 public:
  using Body = std::function<void(Transport&, Memory&, WorkerId)>;

  ContractNetwork() = default;
  ContractNetwork(const ContractNetwork&) = delete;
  ContractNetwork& operator=(const ContractNetwork&) = delete;
  virtual ~ContractNetwork() = default;

  // False: regions have a size only; digests are whatever the memory says.
  [[nodiscard]] virtual bool real_bytes() const = 0;
  // True: a message that was sent arrives exactly once, in order.
  [[nodiscard]] virtual bool reliable_messages() const = 0;
  [[nodiscard]] virtual bool can_kill() const = 0;

  // How `self` reaches `other`: the path goes from the other's port to its own.
  [[nodiscard]] virtual Endpoint endpoint(WorkerId self, WorkerId other) const = 0;
  // Memory to register, at least `size` long where bytes are real, empty elsewhere. It lives as
  // long as the network.
  virtual std::span<std::byte> memory(WorkerId worker, Bytes size) = 0;
  // An estimate of how long `bytes` take between two workers that have the network to themselves,
  // generous by at most a factor of ten. Deadlines in tests derive from it.
  [[nodiscard]] virtual Time estimate(Bytes bytes) const = 0;

  // bodies[i] is worker i's. Called once.
  virtual void run(const std::vector<Body>& bodies) = 0;
  // From inside another worker's body: the worker dies now. Its body is not resumed, or its calls
  // fail; its peers hear PeerLost in bounded time.
  virtual void kill(WorkerId worker) = 0;
};

struct ContractFactory {
  std::string name;
  std::function<std::unique_ptr<ContractNetwork>(std::size_t workers)> make;
};
inline void PrintTo(const ContractFactory& factory, std::ostream* out) {
  *out << factory.name;
}
inline std::string contract_name(const ::testing::TestParamInfo<ContractFactory>& info) {
  return info.param.name;
}

class TransportContract : public ::testing::TestWithParam<ContractFactory> {};

}  // namespace holdfast::testing

#include "tests/engine/transport_contract_events.hpp"
#include "tests/engine/transport_contract_reads.hpp"
