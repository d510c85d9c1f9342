// A transport that watches what is read where: a local range has at most one read at a time, and
// none once it is sealed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/forwarding_transport.hpp"

namespace holdfast::testing {

class GuardedTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  // No read may touch these bytes from now on.
  void seal(std::uint64_t offset, std::uint64_t bytes) { sealed_[offset] = offset + bytes; }
  // The first thing that was wrong.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] std::size_t open_reads() const { return open_.size(); }

  Posted read(const ReadRequest& request) override;
  std::size_t poll(std::span<TransportEvent> out) override;

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // begin to end

  Ranges sealed_;
  Ranges busy_;
  std::map<OpId, std::vector<std::uint64_t>> open_;  // begins of its ranges
  std::string broken_;
};

}  // namespace holdfast::testing
