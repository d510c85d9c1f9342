// Frames between workers and the coordinator as bytes: protocol buffers (catalog.proto).
//
// One codec object for each end of a connection. A transfer's body (demand, plan, digests) crosses
// a connection once; later messages name it by its id. A new connection takes a new codec.
//
// Deadlines cross as the time that is left, since clocks of machines need not agree: `now` is the
// clock of whoever calls.
//
// Decoding never trusts: what does not parse, an enumerator that is not there, an id that was never
// explained, sizes that do not fit each other give a BadFrame with the reason. Bytes beyond
// kMostFrameBytes are refused before they are parsed. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "core/catalog/frames.hpp"
#include "core/topology/router.hpp"

namespace holdfast::real {

inline constexpr std::size_t kMostFrameBytes = std::size_t{64} << 20U;

struct BadFrame {
  std::string problem;
};

class CatalogCodec {
 public:
  // `router`: for the tables that a decoded transfer needs; null where none is received. Must
  // outlive the codec.
  explicit CatalogCodec(const Router* router) : router_(router) {}

  [[nodiscard]] std::string encode(const ToCoordinator& frame, Time now);
  [[nodiscard]] std::string encode(const ToWorker& frame, Time now);
  [[nodiscard]] tl::expected<ToCoordinator, BadFrame> decode_to_coordinator(std::string_view bytes,
                                                                            Time now);
  [[nodiscard]] tl::expected<ToWorker, BadFrame> decode_to_worker(std::string_view bytes, Time now);

 private:
  const Router* router_;
  std::set<std::pair<PlanNumber, std::uint32_t>> told_;  // bodies that were sent, with revision
  std::map<PlanNumber, TransferRef> received_;           // bodies that came
};

}  // namespace holdfast::real
