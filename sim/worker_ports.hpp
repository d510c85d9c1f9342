// What one worker sees of a SimNetwork: its Transport and its Memory.
#pragma once

#include "sim/network_state.hpp"

namespace holdfast::sim {

class SimTransport final : public Transport {
 public:
  SimTransport(SimNetwork::State& state, WorkerId self) : state_(state), self_(self) {}

  RegionId add_region(std::span<std::byte> memory, Bytes size) override;
  PeerId open(const Endpoint& endpoint, std::uint64_t nonce) override;
  void close(PeerId peer) override;
  [[nodiscard]] PeerLimits limits(PeerId peer) const override;
  Access allow(WorkerId reader, Version version, RegionId region) override;
  void revoke(WorkerId reader, Version version) override;
  Posted read(const ReadRequest& request) override;
  void cancel(OpId id) override;
  bool send(PeerId peer, std::span<const std::byte> payload) override;
  std::size_t poll(std::span<TransportEvent> out) override;
  void wait(Time until) override;
  [[nodiscard]] Time now() const override { return state_.flows.now(); }

 private:
  SimNetwork::State& state_;
  WorkerId self_;
};

class SimMemory final : public Memory {
 public:
  SimMemory(SimNetwork::State& state, WorkerId self) : state_(state), self_(self) {}

  void digest(JobId id, RegionId region, std::span<const Extent> extents) override;
  void gather(JobId id, RegionId region, std::span<const Extent> extents, RegionId target,
              std::uint64_t target_offset) override;
  void scatter(JobId id, RegionId source, std::uint64_t source_offset, RegionId region,
               std::span<const Extent> extents) override;
  std::size_t poll(std::span<JobDone> out) override;

 private:
  SimNetwork::State& state_;
  WorkerId self_;
};

}  // namespace holdfast::sim
