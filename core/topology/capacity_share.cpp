#include "core/topology/capacity_share.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace holdfast {

Rate left_of(Rate capacity, std::uint32_t taken) {
  // A product of a capacity (up to 10^14) and a million does not fit 64 bits.
  __extension__ using Wide = unsigned __int128;
  const Wide left = Wide{capacity.bytes_per_second()} * (kWholeInMillionths - taken);
  return Rate(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(left / kWholeInMillionths)));
}

Topology beside_other_traffic(const Topology& topology, std::span<const std::uint32_t> taken) {
  if (taken.size() != topology.links().size()) {
    throw Error(ErrorCode::BadTopology, fmt::format("{} shares for {} links; give one for each",
                                                    taken.size(), topology.links().size()));
  }
  TopologyBuilder builder(topology);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] >= kWholeInMillionths) {
      throw Error(ErrorCode::BadTopology,
                  fmt::format("other traffic leaves nothing of link '{}'; to take a link out of "
                              "use write up: false in the topology",
                              topology.links()[i].name));
    }
    Link& link = builder.link(LinkId(i));
    link.capacity = left_of(link.capacity, taken[i]);
  }
  return builder.build();
}

}  // namespace holdfast
