#include "core/io/clos_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace holdfast {
namespace {

constexpr std::int64_t kMost = static_cast<std::int64_t>(TopologyDraft::kMostNodes);
constexpr std::uint64_t kGreatestRate = std::numeric_limits<std::uint64_t>::max();

Rate shown(WideRate rate) {
  return Rate(static_cast<std::uint64_t>(std::min<WideRate>(rate, kGreatestRate)));
}

Ratio read_ratio(const YamlValue& value) {
  const std::string text = value.text();
  Ratio ratio;
  const char* const end = text.data() + text.size();
  const auto in = std::from_chars(text.data(), end, ratio.in);
  bool ok = in.ec == std::errc() && in.ptr != end && *in.ptr == ':';
  if (ok) {
    const auto out = std::from_chars(in.ptr + 1, end, ratio.out);
    ok = out.ec == std::errc() && out.ptr == end;
  }
  constexpr std::uint64_t kGreatest = 1'000'000;
  if (!ok || ratio.in == 0 || ratio.out == 0 || ratio.in > kGreatest || ratio.out > kGreatest) {
    value.refuse(ErrorCode::BadValue,
                 "write what enters a switch from below against what leaves it upwards, such as "
                 "2:1");
  }
  return ratio;
}

// What each of `links` equal links upwards would get without oversubscription "in", in the parts of
// `lower`.
WideRate share(const Feed& lower, std::uint64_t links, const Ratio& ratio, const char* noun,
               const YamlValue& origin) {
  const WideRate out = lower.from_below * ratio.out;
  if (out % links != 0) {
    origin.refuse(ErrorCode::BadTopology,
                  fmt::format("{} from below over {}:{} cannot be shared out evenly over {} {}; "
                              "change '{}' or 'oversubscription'",
                              to_string(shown(lower.from_below / lower.parts)), ratio.in, ratio.out,
                              links, noun, origin.label()));
  }
  return out / links;
}

}  // namespace

Oversubscription read_oversubscription(YamlMap& map, const char* spine_idle) {
  Oversubscription both;
  const auto value = map.find("oversubscription");
  if (!value) return both;
  if (!value->is_map()) {
    both.leaf = read_ratio(*value);
    return both;
  }
  YamlMap levels = value->map();
  if (const auto leaf = levels.find("leaf")) both.leaf = read_ratio(*leaf);
  if (spine_idle != nullptr) {
    levels.no_effect("spine", spine_idle);
  } else if (const auto spine = levels.find("spine")) {
    both.spine = read_ratio(*spine);
  }
  levels.finish();
  return both;
}

void join_upwards(FabricSite& site, const Feed& lower, const std::vector<Feed*>& upper,
                  const Ratio& ratio, Time latency, const char* noun, const YamlValue& origin) {
  const WideRate each = share(lower, upper.size(), ratio, noun, origin);
  const std::uint64_t parts = lower.parts * ratio.in;  // at most 10^12: two levels
  const WideRate capacity = each / parts;
  if (capacity == 0 || capacity > kGreatestRate) {
    origin.refuse(ErrorCode::BadTopology,
                  fmt::format("the links to the {} get no sensible capacity; change '{}' or "
                              "'oversubscription'",
                              noun, origin.label()));
  }
  for (Feed* const top : upper) {
    site.add_fabric_link(lower.node, top->node, shown(capacity), latency, origin);
    top->from_below += each;
    top->parts = parts;
  }
}

ClosShape read_clos(YamlMap& map, std::uint64_t pods, std::uint64_t leaves_per_pod) {
  const Time latency = map.require("latency").time();
  ClosShape shape{pods, leaves_per_pod, 0, 0, {}, latency, map.value(), map.value()};
  if (pods * leaves_per_pod == 1) {
    constexpr const char* kWhy = "the cluster has a single leaf, above which nothing is needed";
    for (const char* key : {"spines_per_pod", "cores", "oversubscription"}) {
      map.no_effect(key, kWhy);
    }
    return shape;
  }
  shape.spines = map.require("spines_per_pod");
  shape.spines_per_pod = static_cast<std::uint64_t>(shape.spines.integer(1, kMost));
  if (pods == 1) {
    constexpr const char* kWhy = "there is one pod, and cores join pods";
    map.no_effect("cores", kWhy);
    shape.oversubscription = read_oversubscription(map, kWhy);
    return shape;
  }
  shape.cores_origin = map.require("cores");
  shape.cores = static_cast<std::uint64_t>(shape.cores_origin.integer(1, kMost));
  if (shape.cores % shape.spines_per_pod != 0) {
    shape.cores_origin.refuse(
        ErrorCode::BadTopology,
        fmt::format("{} cores cannot be shared out evenly over the {} spines of a pod, each of "
                    "which is joined to cores of its own; change one of the numbers",
                    shape.cores, shape.spines_per_pod));
  }
  shape.oversubscription = read_oversubscription(map, nullptr);
  return shape;
}

void expect_clos(const FabricSite& site, const ClosShape& shape, const YamlValue& origin) {
  const std::uint64_t leaves = shape.pods * shape.leaves_per_pod;
  site.draft().expect(leaves + shape.pods * shape.spines_per_pod + shape.cores,
                      site.nics() + leaves * shape.spines_per_pod + shape.pods * shape.cores,
                      origin);
}

std::vector<Feed> add_spines(FabricSite& site, const ClosShape& shape, const std::string& pod,
                             DomainId domain, const std::vector<Feed>& leaves) {
  std::vector<Feed> spines;
  std::vector<Feed*> joined;
  for (std::uint64_t s = 0; s < shape.spines_per_pod; ++s) {
    spines.push_back({site.add_switch(fmt::format("{}.spine{}", pod, s), NodeKind::Spine, domain)});
  }
  for (Feed& spine : spines) joined.push_back(&spine);
  for (const Feed& leaf : leaves) {
    join_upwards(site, leaf, joined, shape.oversubscription.leaf, shape.latency, "spines",
                 shape.spines);
  }
  return spines;
}

Tops add_cores(FabricSite& site, const ClosShape& shape,
               const std::vector<std::vector<Feed>>& spines_of_pods) {
  Tops tops;
  if (shape.cores == 0) {
    for (const Feed& spine : spines_of_pods.front()) tops.push_back(spine.node);
    return tops;
  }
  std::vector<Feed> cores;
  for (std::uint64_t c = 0; c < shape.cores; ++c) {
    cores.push_back({site.add_switch(site.name("core", c), NodeKind::Spine, site.domain())});
    tops.push_back(cores.back().node);
  }
  const std::size_t plane = shape.cores / shape.spines_per_pod;
  for (const std::vector<Feed>& spines : spines_of_pods) {
    for (std::size_t s = 0; s < spines.size(); ++s) {
      std::vector<Feed*> joined;
      for (std::size_t c = 0; c < plane; ++c) joined.push_back(&cores[s * plane + c]);
      join_upwards(site, spines[s], joined, shape.oversubscription.spine, shape.latency, "cores",
                   shape.cores_origin);
    }
  }
  return tops;
}

}  // namespace holdfast
