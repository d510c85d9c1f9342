#include "core/plan/strands.hpp"

#include <algorithm>
#include <unordered_map>

namespace holdfast {

StrandCutter::StrandCutter(const PlanSpace& space, const SlowLinks& slow)
    : space_(space), slow_(slow) {
  for (const BlockClass& c : space.demand().classes) {
    all_bytes_ += bytes_of(space.demand(), c);
    all_receivers_ += c.receivers.size();
  }
  repeats_ = wan_repeats();
}

std::uint32_t StrandCutter::wan_repeats() const {
  const Topology& topology = space_.topology();
  struct Lines {
    std::uint64_t streams = 0;
    std::uint64_t count = 0;
    double all = 0;    // bytes a second
    double least = 0;  // of one
    bool alike = true;
  };
  std::unordered_map<DomainId, Lines> lines_of;
  for (const Link& link : topology.links()) {
    if (!link.stream_cap || !link.up) continue;
    const std::uint64_t cap = link.stream_cap->bytes_per_second();
    const auto rate = static_cast<double>(link.capacity.bytes_per_second());
    for (const NodeId end : {link.a, link.b}) {
      Lines& lines = lines_of[topology.around(end, Level::Datacenter)];
      lines.streams += (link.capacity.bytes_per_second() * 3 + 2 * cap - 1) / (2 * cap);
      lines.alike = lines.alike && (lines.count == 0 || lines.least == rate);
      lines.least = lines.count == 0 ? rate : std::min(lines.least, rate);
      lines.all += rate;
      ++lines.count;
    }
  }
  if (lines_of.empty()) return 1;
  constexpr std::uint64_t kSmallest = 100;  // a class below 1 % of the bytes fills nothing
  std::uint64_t planned = 0;
  std::unordered_map<DomainId, bool> holds;
  for (const BlockClass& c : space_.demand().classes) {
    if (bytes_of(space_.demand(), c) * kSmallest < all_bytes_) continue;
    planned += 2 * ClassHosts(space_, c).rails.size();
    for (const WorkerId w : c.holders) holds[space_.around(w, Level::Datacenter)] = true;
  }
  planned = std::max<std::uint64_t>(planned, 1);
  constexpr double kStripesALine = 12;  // then one more on a line is a twelfth too many at most
  constexpr std::uint64_t kMostRepeats = 16;
  std::uint64_t repeats = 1;
  for (const auto& [datacenter, lines] : lines_of) {
    repeats = std::max(repeats, (lines.streams + planned - 1) / planned);
    const bool even = lines.alike && planned * repeats % lines.count == 0;
    if (even || holds.contains(datacenter)) continue;
    const auto stripes = static_cast<std::uint64_t>(kStripesALine * lines.all / lines.least);
    repeats = std::max(repeats, std::min(kMostRepeats, (stripes + planned - 1) / planned));
  }
  return static_cast<std::uint32_t>(repeats);
}

std::vector<Strand> StrandCutter::cut(ClassId id, const ClassHosts& hosts,
                                      PlanBuilder& builder) const {
  std::vector<Strand> strands;
  const Bytes bytes = bytes_of(space_.demand(), space_.demand().classes[id.index()]);
  const auto rails = static_cast<std::uint32_t>(hosts.rails.size());
  const std::uint32_t blocks = block_count(space_.demand().classes[id.index()]);
  const std::uint32_t trees = std::min(rails * (hosts.remote ? 2 * repeats_ : 1), blocks);
  for (std::uint32_t k = 0; k < trees; ++k) {
    Strand& strand = strands.emplace_back();
    strand.number = k;
    strand.turn = k / rails;
    // Small classes have fewer stripes than rails: starting at the class's number spreads them.
    strand.rail = hosts.rails[(k + id.value()) % rails];
    strand.side = (k / rails) % 2 == 0 ? TreeSide::First : TreeSide::Second;
    strand.rotation = k / (rails * 2);
  }
  // The smallest classes matter to nobody's time: cutting them would only add edges.
  constexpr std::uint64_t kSmallest = 100;
  const bool cut = !slow_.empty() && bytes * kSmallest >= all_bytes_;
  std::vector<bool> needs_cuts(trees, false);
  for (std::uint32_t k = 0; cut && k < trees; ++k) {
    needs_cuts[k] = std::any_of(hosts.hosts.begin(), hosts.hosts.end(), [&](const auto& host) {
      return host.serves() && host.slot(space_, strands[k].rail, strands[k].turn).slow;
    });
  }
  const bool slow_workers =
      cut && std::any_of(hosts.hosts.begin(), hosts.hosts.end(),
                         [](const ClassHost& host) { return !host.slow.empty(); });
  constexpr std::uint32_t kStripes = 96;  // of a class, in the strands that are cut
  constexpr std::uint32_t kMostCuts = 32;
  constexpr std::uint32_t kFewCuts = 4;
  // A plan of more edges than this does not fit the limit of its file.
  constexpr std::uint64_t kMostEdges = 1'100'000;
  const auto most_cuts =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kMostEdges / (all_receivers_ * trees)));
  const auto several = static_cast<std::uint32_t>(
      std::max<std::ptrdiff_t>(1, std::count(needs_cuts.begin(), needs_cuts.end(), true)));
  for (std::uint32_t k = 0; k < trees; ++k) {
    std::uint32_t cuts = slow_workers ? kFewCuts : 1;
    if (needs_cuts[k]) cuts = std::clamp(kStripes / several, kFewCuts, kMostCuts);
    cuts = std::min(cuts, most_cuts);
    cuts = std::clamp(cuts, 1U, (blocks - k + trees - 1) / trees);  // a block each at least
    for (std::uint32_t j = 0; j < cuts; ++j) {
      strands[k].stripes.push_back(
          builder.add_stripe(id, BlockSelection{k + trees * j, trees * cuts, blocks}));
    }
    strands[k].stripe_bytes = bytes / (std::uint64_t{trees} * cuts);
  }
  return strands;
}

}  // namespace holdfast
