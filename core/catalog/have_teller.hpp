// Tells children in a transfer what a worker holds that is not in that transfer itself: it has the
// version from an earlier one, and the plan was mended to read from it. No engine knows of its
// blocks; the verified bitmap of its buffer does.
//
// A child is told everything once when it is added, and again from where it asks (message.hpp), so
// that lost messages do no harm. What is verified later is heard of with the next question.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/catalog/agent.hpp"
#include "core/engine/message.hpp"
#include "core/engine/transport.hpp"

namespace holdfast {

class HaveTeller {
 public:
  // The space and the transport are borrowed.
  HaveTeller(const ModelSpace& space, Transport& transport,
             std::function<std::string(WorkerId)> address);

  // Opens a connection to the child and tells it. `holding`: of the transfer's version, or null.
  void add(const TransferRef& transfer, const LiveEdge& edge, const Holding* holding,
           std::uint64_t nonce);
  // Answers a question of a child that was added; false if it is none.
  bool take(const MessageReceived& message, const std::vector<std::optional<Holding>>& holdings);
  // The children's edges of a plan, which are forgotten: the plan has an engine now, or is over.
  std::vector<LiveEdge> remove(PlanNumber plan);
  void lose(PeerId peer);

  [[nodiscard]] std::size_t children() const { return children_.size(); }

 private:
  struct Child {
    TransferRef transfer;
    LiveEdge edge;
    PeerId peer;  // invalid: lost
  };
  void tell(const Child& child, const Holding& holding, std::uint32_t from);

  const ModelSpace& space_;
  Transport& transport_;
  std::function<std::string(WorkerId)> address_;
  std::vector<Child> children_;
};

}  // namespace holdfast
