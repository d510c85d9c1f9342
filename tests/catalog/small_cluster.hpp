// The smallest cluster in which a group fetches what another one has published.
#pragma once

#include "tests/catalog/scripted_cluster.hpp"

namespace holdfast::testing_support {

inline constexpr Version kOne{0, 1};
inline constexpr Version kTwo{0, 2};

// Four hosts, groups of two ranks, eight blocks: group 0 publishes, group 1 fetches.
struct Small : ScriptedCluster {
  explicit Small(std::uint32_t hosts = 4, const CoordinatorConfig& config = {})
      : ScriptedCluster(1, hosts, 2, 8, config) {
    hello_all();
  }
  void publish_all(Version version, std::uint32_t group = 0) {
    for (const WorkerId member : members(GroupId(group))) publish(member, version);
    run_for(milliseconds(1));
  }
};

inline Coordinator::VersionView view_of(const ScriptedCluster& cluster, Version version) {
  for (const auto& view : cluster.coordinator->versions()) {
    if (view.version == version) return view;
  }
  return {};
}

}  // namespace holdfast::testing_support
