// Strong identifiers. Each is a dense index into one vector of its owner, so that tables keyed by
// an id are plain vectors; ids of different kinds never convert into each other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace holdfast {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // the invalid id
  constexpr explicit Id(std::uint32_t value) : value_(value) {}
  constexpr explicit Id(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  [[nodiscard]] constexpr bool valid() const { return value_ != kInvalid; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kInvalid = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value_ = kInvalid;
};

using NodeId = Id<struct NodeTag>;        // a vertex of the topology
using LinkId = Id<struct LinkTag>;        // a full-duplex link of the topology
using DomainId = Id<struct DomainTag>;    // a host, rack, pod or datacenter
using WorkerId = Id<struct WorkerTag>;    // index into Demand::workers
using SegmentId = Id<struct SegmentTag>;  // index into WeightMap::segments
using BlockId = Id<struct BlockTag>;      // index into the blocks of one version
using ClassId = Id<struct ClassTag>;      // index into Demand::classes
using StripeId = Id<struct StripeTag>;    // index into Plan::stripes

// One direction of a link: its capacity is not shared with the other direction.
class ChannelId {
 public:
  constexpr ChannelId() = default;
  constexpr explicit ChannelId(std::uint32_t value) : value_(value) {}
  constexpr ChannelId(LinkId link, bool from_b) : value_(link.value() * 2 + (from_b ? 1U : 0U)) {}

  [[nodiscard]] constexpr LinkId link() const { return LinkId(value_ / 2); }
  [[nodiscard]] constexpr bool from_b() const { return (value_ & 1U) != 0; }
  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  friend constexpr auto operator<=>(ChannelId, ChannelId) = default;

 private:
  std::uint32_t value_ = 0;
};

}  // namespace holdfast

template <class Tag>
struct std::hash<holdfast::Id<Tag>> {
  std::size_t operator()(holdfast::Id<Tag> id) const noexcept { return id.index(); }
};
template <>
struct std::hash<holdfast::ChannelId> {
  std::size_t operator()(holdfast::ChannelId id) const noexcept { return id.index(); }
};
