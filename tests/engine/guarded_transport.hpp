// A transport that watches what is read where: a local range has at most one read at a time, and
// none once it is sealed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/transport.hpp"

namespace holdfast::testing {

class GuardedTransport final : public Transport {
 public:
  explicit GuardedTransport(Transport& inner) : inner_(inner) {}

  // No read may touch these bytes from now on.
  void seal(std::uint64_t offset, std::uint64_t bytes) { sealed_[offset] = offset + bytes; }
  // The first thing that was wrong.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] std::size_t open_reads() const { return open_.size(); }

  RegionId add_region(std::span<std::byte> memory, Bytes size) override {
    return inner_.add_region(memory, size);
  }
  PeerId open(const Endpoint& endpoint, std::uint64_t nonce) override {
    return inner_.open(endpoint, nonce);
  }
  void close(PeerId peer) override { inner_.close(peer); }
  [[nodiscard]] PeerLimits limits(PeerId peer) const override { return inner_.limits(peer); }
  Access allow(WorkerId reader, Version version, RegionId region) override {
    return inner_.allow(reader, version, region);
  }
  void revoke(WorkerId reader, Version version) override { inner_.revoke(reader, version); }
  Posted read(const ReadRequest& request) override;
  void cancel(OpId id) override { inner_.cancel(id); }
  bool send(PeerId peer, std::span<const std::byte> payload) override {
    return inner_.send(peer, payload);
  }
  std::size_t poll(std::span<TransportEvent> out) override;
  void wait(Time until) override { inner_.wait(until); }
  [[nodiscard]] Time now() const override { return inner_.now(); }

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // begin to end

  Transport& inner_;
  Ranges sealed_;
  Ranges busy_;
  std::map<OpId, std::vector<std::uint64_t>> open_;  // begins of its ranges
  std::string broken_;
};

}  // namespace holdfast::testing
