#include "core/io/topology_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

constexpr std::size_t kNodeKinds = 8;
constexpr std::size_t kLinkKinds = 5;

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}
void add(Rate& sum, Rate rate) {
  sum = Rate(saturated_sum(sum.bytes_per_second(), rate.bytes_per_second()));
}

void count_nodes(const Topology& topology, TopologySummary& summary) {
  std::array<TopologySummary::Nodes, kNodeKinds> kinds;
  for (const Node& node : topology.nodes()) {
    TopologySummary::Nodes& of_kind = kinds[static_cast<std::size_t>(node.kind)];
    of_kind.kind = node.kind;
    ++of_kind.count;
    of_kind.memory = Bytes(saturated_sum(of_kind.memory.count(), node.memory.count()));
    if (node.up) continue;
    ++of_kind.down;
    summary.down_nodes.push_back(node.name);
  }
  std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(summary.nodes),
               [](const auto& kind) { return kind.count > 0; });
}

void count_links(const Topology& topology, TopologySummary& summary) {
  std::array<TopologySummary::Links, kLinkKinds> kinds;
  for (const Link& link : topology.links()) {
    TopologySummary::Links& of_kind = kinds[static_cast<std::size_t>(link.kind)];
    if (of_kind.count == 0 || link.capacity < of_kind.slowest) {
      of_kind.slowest = link.capacity;
      of_kind.slowest_name = link.name;
      of_kind.at_slowest = 0;
    }
    if (link.capacity == of_kind.slowest) ++of_kind.at_slowest;
    of_kind.kind = link.kind;
    ++of_kind.count;
    of_kind.fastest = std::max(of_kind.fastest, link.capacity);
    of_kind.longest_latency = std::max(of_kind.longest_latency, link.latency);
    if (link.stream_cap) {
      of_kind.stream_cap =
          std::min(of_kind.stream_cap.value_or(*link.stream_cap), *link.stream_cap);
    }
    if (link.up) continue;
    ++of_kind.down;
    summary.down_links.push_back(link.name);
  }
  std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(summary.links),
               [](const auto& kind) { return kind.count > 0; });
}

// What enters each domain, and what the NICs inside could take in.
struct Capacity {
  Rate in;
  Rate nics;
};

std::vector<Capacity> capacities(const Topology& topology) {
  std::vector<Capacity> out(topology.domains().size());
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    if (!topology.usable(LinkId(i))) continue;
    const Link& link = topology.links()[i];
    for (std::size_t l = 0; l < kLevels; ++l) {
      const auto level = static_cast<Level>(l);
      const DomainId a = topology.around(link.a, level);
      const DomainId b = topology.around(link.b, level);
      for (const auto& [inner, end] : {std::pair(a, link.a), std::pair(b, link.b)}) {
        if (!inner.valid()) continue;
        if (a != b) add(out[inner.index()].in, link.capacity);
        if (link.kind == LinkKind::Fabric && topology.node(end).kind == NodeKind::Nic) {
          add(out[inner.index()].nics, link.capacity);
        }
      }
    }
  }
  return out;
}

void measure_domains(const Topology& topology, TopologySummary& summary) {
  const std::vector<Capacity> all = capacities(topology);
  std::array<TopologySummary::Domains, kLevels> levels;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Domain& domain = topology.domains()[i];
    const Capacity& capacity = all[i];
    TopologySummary::Domains& of_level = levels[static_cast<std::size_t>(domain.level)];
    of_level.level = domain.level;
    ++of_level.count;
    if (capacity.in == Rate(0)) continue;
    if (of_level.entered == 0 || capacity.in < of_level.least_in) {
      of_level.least_in = capacity.in;
      of_level.least_name = domain.name;
    }
    const double ratio = static_cast<double>(capacity.nics.bytes_per_second()) /
                         static_cast<double>(capacity.in.bytes_per_second());
    if (of_level.entered == 0 || ratio > of_level.worst_oversubscription) {
      of_level.worst_oversubscription = ratio;
      of_level.worst_name = domain.name;
    }
    if (of_level.entered == 0 || ratio < of_level.least_oversubscription) {
      of_level.least_oversubscription = ratio;
    }
    ++of_level.entered;
    of_level.greatest_in = std::max(of_level.greatest_in, capacity.in);
  }
  std::copy_if(levels.begin(), levels.end(), std::back_inserter(summary.domains),
               [](const auto& level) { return level.count > 0; });
}

std::string span(Rate least, Rate greatest) {
  return least == greatest ? rounded(least)
                           : fmt::format("{} to {}", rounded(least), rounded(greatest));
}

std::string down_note(std::uint64_t down) {
  return down == 0 ? "" : fmt::format("  {} down", down);
}

void render_names(std::string& out, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr std::size_t kShown = 20;
  out += fmt::format("\n{}\n", title);
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    out += fmt::format("  {}\n", names[i]);
  }
  if (names.size() > kShown) out += fmt::format("  and {} more\n", names.size() - kShown);
}

}  // namespace

TopologySummary summarise(const Topology& topology) {
  TopologySummary summary;
  summary.name = topology.name();
  summary.hash = topology.hash();
  summary.fault_domains = topology.fault_domains().size();
  count_nodes(topology, summary);
  count_links(topology, summary);
  measure_domains(topology, summary);
  return summary;
}

std::string render(const TopologySummary& summary) {
  std::string out =
      fmt::format("topology {}\nhash     {}\n", summary.name, to_string(summary.hash));
  out += "\nnodes\n";
  for (const auto& kind : summary.nodes) {
    std::string line = fmt::format("  {:<12}{:>8}", to_string(kind.kind), kind.count);
    if (kind.memory != Bytes(0)) line += fmt::format("  {} of memory", rounded(kind.memory));
    out += line + down_note(kind.down) + "\n";
  }
  if (summary.fault_domains > 0) {
    out += fmt::format("  {:<12}{:>8}\n", "fault domain", summary.fault_domains);
  }
  out += "\nlinks (each way)\n";
  for (const auto& kind : summary.links) {
    out += fmt::format("  {:<12}{:>8}  {}, up to {} each", to_string(kind.kind), kind.count,
                       span(kind.slowest, kind.fastest), rounded(kind.longest_latency));
    if (kind.stream_cap) out += fmt::format(", a stream at most {}", rounded(*kind.stream_cap));
    out += down_note(kind.down) + "\n";
    if (kind.slowest != kind.fastest) {
      out += fmt::format("  {:<20}  slowest: {}", "", kind.slowest_name);
      if (kind.at_slowest > 1) out += fmt::format(" and {} more", kind.at_slowest - 1);
      out += "\n";
    }
  }
  if (!summary.domains.empty()) out += "\ndomains: capacity in, NICs inside : capacity in\n";
  for (const auto& level : summary.domains) {
    out += fmt::format("  {:<12}{:>8}  ", to_string(level.level), level.count);
    if (level.entered == 0) {
      out += "nothing enters\n";
      continue;
    }
    out += span(level.least_in, level.greatest_in);
    if (level.least_in != level.greatest_in) out += fmt::format(" (least: {})", level.least_name);
    out += level.least_oversubscription == level.worst_oversubscription
               ? fmt::format(", {:.3g}:1", level.worst_oversubscription)
               : fmt::format(", {:.3g}:1 to {:.3g}:1 (worst: {})", level.least_oversubscription,
                             level.worst_oversubscription, level.worst_name);
    if (level.entered < level.count) {
      out += fmt::format("  ({} with no way in)", level.count - level.entered);
    }
    out += "\n";
  }
  render_names(out, "nodes that are down", summary.down_nodes);
  render_names(out, "links that are down", summary.down_links);
  return out;
}

nlohmann::json to_json(const TopologySummary& summary) {
  using nlohmann::json;
  json nodes = json::array();
  for (const auto& kind : summary.nodes) {
    nodes.push_back({{"kind", to_string(kind.kind)},
                     {"count", kind.count},
                     {"down", kind.down},
                     {"memory_bytes", kind.memory.count()}});
  }
  json links = json::array();
  for (const auto& kind : summary.links) {
    links.push_back({{"kind", to_string(kind.kind)},
                     {"count", kind.count},
                     {"down", kind.down},
                     {"slowest_bytes_per_s", kind.slowest.bytes_per_second()},
                     {"fastest_bytes_per_s", kind.fastest.bytes_per_second()},
                     {"at_slowest", kind.at_slowest},
                     {"slowest", kind.slowest_name},
                     {"longest_latency_ps", kind.longest_latency.picoseconds()},
                     {"stream_cap_bytes_per_s",
                      kind.stream_cap ? json(kind.stream_cap->bytes_per_second()) : json()}});
  }
  json domains = json::array();
  for (const auto& level : summary.domains) {
    const bool entered = level.entered > 0;
    domains.push_back(
        {{"level", to_string(level.level)},
         {"count", level.count},
         {"entered", level.entered},
         {"least_in_bytes_per_s", entered ? json(level.least_in.bytes_per_second()) : json()},
         {"greatest_in_bytes_per_s", entered ? json(level.greatest_in.bytes_per_second()) : json()},
         {"least", entered ? json(level.least_name) : json()},
         {"worst_oversubscription", entered ? json(level.worst_oversubscription) : json()},
         {"worst", entered ? json(level.worst_name) : json()}});
  }
  return {{"name", summary.name},
          {"hash", to_string(summary.hash)},
          {"nodes", std::move(nodes)},
          {"links", std::move(links)},
          {"domains", std::move(domains)},
          {"fault_domains", summary.fault_domains},
          {"down_nodes", summary.down_nodes},
          {"down_links", summary.down_links}};
}

}  // namespace holdfast
