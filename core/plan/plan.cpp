#include "core/plan/plan.hpp"

#include <algorithm>

namespace holdfast {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t kLeastWindow = 2;
constexpr std::uint32_t kMostWindow = 4'096;
constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

}  // namespace

Hash128 hash_of(const Plan& plan) {
  CanonicalHasher hasher;
  hasher.add("holdfast plan").add(std::uint64_t{plan.format});
  hasher.add(plan.topology).add(plan.demand);
  hasher.add(std::uint64_t{plan.stripes.size()});
  for (const Stripe& stripe : plan.stripes) {
    hasher.add(std::uint64_t{stripe.block_class.value()});
    hasher.add(std::uint64_t{stripe.blocks.first}).add(std::uint64_t{stripe.blocks.step});
    hasher.add(std::uint64_t{stripe.blocks.end}).add(std::uint64_t{stripe.edges.size()});
    for (const Edge& edge : stripe.edges) {
      hasher.add(std::uint64_t{edge.child.value()}).add(std::uint64_t{edge.parent.value()});
      hasher.add(std::uint64_t{edge.alternate.value()});
      hasher.add(std::uint64_t{edge.path.source_port.value()});
      hasher.add(std::uint64_t{edge.path.destination_port.value()});
      hasher.add(std::uint64_t{edge.path.stream}).add(std::uint64_t{edge.window});
    }
  }
  return hasher.finish();
}

std::vector<BlockId> blocks_of(const Demand& demand, const Stripe& stripe) {
  std::vector<BlockId> blocks;
  blocks.reserve(stripe.blocks.count());
  std::uint64_t before = 0;  // blocks of the class in the spans already passed
  std::uint64_t next = stripe.blocks.first;
  for (const BlockSpan& span : demand.classes[stripe.block_class.index()].blocks) {
    const std::uint64_t end = std::min<std::uint64_t>(before + span.count, stripe.blocks.end);
    for (; next < end; next += stripe.blocks.step) {
      blocks.emplace_back(static_cast<std::uint32_t>(span.first.value() + (next - before)));
    }
    before += span.count;
  }
  return blocks;
}

std::uint32_t window_for(Time round_trip, Rate rate, Bytes block) {
  if (round_trip <= Time() || block == Bytes()) return kLeastWindow;
  const Wide moved = static_cast<Wide>(static_cast<std::uint64_t>(round_trip.picoseconds())) *
                     rate.bytes_per_second();
  const Wide each = static_cast<Wide>(block.count()) * kPicosecondsPerSecond;
  const Wide in_flight = (moved + each - 1) / each;
  if (in_flight >= kMostWindow) return kMostWindow;
  return std::max(kLeastWindow, 1 + static_cast<std::uint32_t>(in_flight));
}

}  // namespace holdfast
