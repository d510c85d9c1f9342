#include "core/io/topology_reader.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/io/cluster_generator.hpp"
#include "core/io/explicit_topology.hpp"
#include "core/io/topology_draft.hpp"
#include "core/io/wan_generator.hpp"
#include "core/io/yaml_document.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kFormat = 1;

void check_format(YamlMap& map) {
  const YamlValue format = map.require("format");
  const std::int64_t number = format.integer(1, 1'000'000);
  if (number != kFormat) {
    format.refuse(ErrorCode::Unsupported,
                  fmt::format("this program reads topology format {}, not {}", kFormat, number));
  }
}

void generate(TopologyDraft& draft, YamlMap& map) {
  const auto hosts = map.find("hosts");
  const auto cluster = map.find("cluster");
  const auto datacenters = map.find("datacenters");
  const auto wan = map.find("wan");
  if (cluster && datacenters) {
    cluster->refuse(ErrorCode::BadValue,
                    "there are 'datacenters' too; make this cluster one of them");
  }
  if (!cluster && !datacenters && !map.has("nodes")) {
    map.value().refuse(ErrorCode::MissingKey,
                       "nothing is described; write 'cluster', 'datacenters' or 'nodes'");
  }
  if (!datacenters) map.no_effect("wan", "it joins 'datacenters', and there are none");
  HostTemplates templates(hosts ? &*hosts : nullptr);
  if (cluster) {
    YamlMap inner = cluster->map();
    inner.no_effect("gateways", "one cluster has no WAN; use 'datacenters' and 'wan'");
    add_cluster(draft, templates, inner, {});
    inner.finish();
  }
  if (datacenters) add_datacenters(draft, templates, *datacenters, wan ? &*wan : nullptr);
  templates.refuse_unused();
}

Topology read(const YamlDocument& document) {
  YamlMap map = document.root().map();
  check_format(map);
  TopologyDraft draft(map.require("name").name());
  if (const auto source = map.find("source")) (void)source->text();
  // Misspelt sections are reported before anything is said about what they leave out.
  for (const char* section : {"hosts", "cluster", "datacenters", "wan", "domains", "nodes", "links",
                              "fault_domains", "overrides"}) {
    (void)map.find(section);
  }
  map.finish();
  generate(draft, map);
  if (const auto domains = map.find("domains")) add_domains(draft, *domains);
  if (const auto nodes = map.find("nodes")) add_nodes(draft, *nodes);
  if (const auto links = map.find("links")) add_links(draft, *links);
  if (const auto fault_domains = map.find("fault_domains")) {
    add_fault_domains(draft, *fault_domains);
  }
  if (const auto overrides = map.find("overrides")) apply_overrides(draft, *overrides);
  return draft.finish(document.root());
}

}  // namespace

Topology read_topology(const std::string& path) {
  return read(YamlDocument::load(path));
}

Topology parse_topology(std::string_view text, std::string name) {
  return read(YamlDocument::parse(text, std::move(name)));
}

}  // namespace holdfast
