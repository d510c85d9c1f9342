// A transport that hands everything on to another one: for those that change or watch some of it.
#pragma once

#include "core/engine/transport.hpp"

namespace holdfast::testing {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}

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
  Posted read(const ReadRequest& request) override { return inner_.read(request); }
  void cancel(OpId id) override { inner_.cancel(id); }
  bool send(PeerId peer, std::span<const std::byte> payload) override {
    return inner_.send(peer, payload);
  }
  std::size_t poll(std::span<TransportEvent> out) override { return inner_.poll(out); }
  void wait(Time until) override { inner_.wait(until); }
  [[nodiscard]] Time now() const override { return inner_.now(); }

 protected:
  [[nodiscard]] Transport& inner() { return inner_; }

 private:
  Transport& inner_;
};

}  // namespace holdfast::testing
