#include "core/io/wan_generator.hpp"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/io/link_rates.hpp"
#include "core/nearest.hpp"

namespace holdfast {
namespace {

struct Site {
  std::string name;
  std::vector<NodeId> gateways;
  std::optional<YamlValue> gateways_origin;
  bool joined = false;
};

Site& site_named(std::vector<Site>& sites, const YamlValue& value) {
  const std::string name = value.name();
  std::vector<std::string> known;
  for (Site& site : sites) {
    if (site.name == name) return site;
    known.push_back(site.name);
  }
  value.refuse(ErrorCode::UnknownName,
               fmt::format("there is no datacenter '{}'{}", name, suggestion(name, known)));
}

void join(TopologyDraft& draft, std::vector<Site>& sites, const YamlValue& line,
          std::set<std::pair<std::string, std::string>>& joined) {
  YamlMap map = line.map();
  const YamlValue between = map.require("between");
  const std::vector<YamlValue> ends = between.list();
  if (ends.size() != 2) between.refuse(ErrorCode::BadValue, "name two datacenters: [dc0, dc1]");
  Site& a = site_named(sites, ends[0]);
  Site& b = site_named(sites, ends[1]);
  if (&a == &b) {
    ends[1].refuse(ErrorCode::BadTopology,
                   fmt::format("'{}' is joined to itself; name another datacenter", b.name));
  }
  if (!joined.insert(std::minmax(a.name, b.name)).second) {
    between.refuse(ErrorCode::Duplicate,
                   fmt::format("'{}' and '{}' are joined twice; write one line with the sum of the "
                               "capacities",
                               a.name, b.name));
  }
  if (a.gateways.empty() || b.gateways.empty()) {
    const std::size_t without = a.gateways.empty() ? 0 : 1;
    ends[without].refuse(ErrorCode::BadTopology,
                         fmt::format("datacenter '{}' has no gateways; add 'gateways' to it",
                                     without == 0 ? a.name : b.name));
  }
  const YamlValue capacity_value = map.require("capacity");
  const Rate capacity = capacity_value.rate(Zero::Refused);
  const Time latency = map.require("latency").time();
  const std::size_t links = std::lcm(a.gateways.size(), b.gateways.size());
  draft.expect(0, links, between);
  const Rate each = capacity / links;  // what is left of a byte a second is dropped
  if (each == Rate(0)) {
    capacity_value.refuse(
        ErrorCode::BadTopology,
        fmt::format("{} leaves less than a byte a second to each of {} links between {} and {} "
                    "gateways; write more",
                    to_string(capacity), links, a.gateways.size(), b.gateways.size()));
  }
  const auto cap = read_stream_cap(map, each);
  map.finish();
  for (std::size_t i = 0; i < links; ++i) {
    draft.add_link_between(a.gateways[i % a.gateways.size()], b.gateways[i % b.gateways.size()],
                           {"", {}, {}, LinkKind::Wan, each, latency, cap, true}, line);
  }
  a.joined = b.joined = true;
}

}  // namespace

void add_datacenters(TopologyDraft& draft, HostTemplates& templates, const YamlValue& datacenters,
                     const YamlValue* wan) {
  std::vector<Site> sites;
  for (const YamlValue& item : datacenters.list()) {
    YamlMap map = item.map();
    const YamlValue name = map.require("name");
    Site& site = sites.emplace_back();
    site.name = name.name();
    const DomainId domain = draft.add_domain(site.name, Level::Datacenter, {}, name);
    site.gateways_origin = map.find("gateways");
    site.gateways = add_cluster(draft, templates, map, {domain, site.name + "."});
    map.finish();
  }
  if (sites.empty()) datacenters.refuse(ErrorCode::BadValue, "the list is empty; add one");
  if (wan != nullptr) {
    std::set<std::pair<std::string, std::string>> joined;
    for (const YamlValue& line : wan->list()) join(draft, sites, line, joined);
  }
  for (const Site& site : sites) {
    if (site.joined || !site.gateways_origin) continue;
    site.gateways_origin->refuse(
        ErrorCode::NoEffect,
        fmt::format("no line of 'wan' names datacenter '{}'; leave its gateways out", site.name));
  }
}

}  // namespace holdfast
