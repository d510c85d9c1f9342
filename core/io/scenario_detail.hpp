// Readers of the parts of a scenario. Only they and the scenario's reader include this.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/io/scenario.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast::scenario_detail {

// Finds things by name. O(1) a look-up.
class NameIndex {
 public:
  // `kind` is what messages call them: "group".
  NameIndex(std::string kind, std::vector<std::string> names);
  // Throws Error(UnknownName) at the value, with the nearest name.
  [[nodiscard]] std::size_t find(const YamlValue& value) const;
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  std::string kind_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> index_;
};

[[nodiscard]] NameIndex index_of(const std::vector<ScenarioGroup>& groups);

[[nodiscard]] std::vector<ScenarioLayout> read_layouts(const YamlValue& value);
// A map from name to group, or a list of groups with a 'name' each.
[[nodiscard]] std::vector<ScenarioGroup> read_groups(const YamlValue& value,
                                                     const std::vector<ScenarioLayout>& layouts);
[[nodiscard]] std::vector<ScenarioHolder> read_holders(const YamlValue& value,
                                                       const NameIndex& groups);

// Exactly the keys of scenario_workload.hpp; groups play their part where they can.
[[nodiscard]] ScenarioWorkload read_workload(const YamlValue& value, const NameIndex& names,
                                             const std::vector<ScenarioGroup>& groups);
[[nodiscard]] ScenarioRetain read_retain(const YamlValue& value);
// The keys of `options` that scenario_protocol.hpp lists, `destination` aside.
[[nodiscard]] ScenarioProtocol read_protocol(YamlMap& options);
[[nodiscard]] ScenarioBaselines read_baselines(const YamlValue& value);

}  // namespace holdfast::scenario_detail
