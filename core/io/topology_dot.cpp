#include "core/io/topology_dot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "core/io/printable.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostHostsDrawnWhole = 2;

// A quoted string of the DOT language: only the quote and, in labels, the backslash are special.
// `printable` writes what is unprintable as \xNN, the backslash of which is doubled here.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Two lines in one label: "\n" between two texts that are quoted each.
std::string two_lines(std::string_view first, std::string_view second) {
  std::string out = quoted(first);
  out.pop_back();
  return out + "\\n" + quoted(second).substr(1);
}

std::size_t count_hosts(const Topology& topology) {
  return static_cast<std::size_t>(
      std::count_if(topology.domains().begin(), topology.domains().end(),
                    [](const Domain& domain) { return domain.level == Level::Host; }));
}

class DotWriter {
 public:
  explicit DotWriter(const Topology& topology)
      : topology_(topology), whole_hosts_(count_hosts(topology) <= kMostHostsDrawnWhole) {
    children_.resize(topology.domains().size());
    nodes_.resize(topology.domains().size());
    for (std::size_t i = 0; i < topology.domains().size(); ++i) {
      const DomainId parent = topology.domains()[i].parent;
      (parent.valid() ? children_[parent.index()] : top_domains_).push_back(DomainId(i));
    }
    for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
      const DomainId domain = topology.nodes()[i].domain;
      (domain.valid() ? nodes_[domain.index()] : top_nodes_).push_back(NodeId(i));
    }
  }

  std::string text() {
    out_ = fmt::format("graph {} {{\n", quoted(topology_.name()));
    out_ += "  graph [rankdir=BT, fontname=\"Helvetica\", color=\"gray60\"];\n";
    out_ += "  node [shape=box, fontname=\"Helvetica\", style=filled, fillcolor=white];\n";
    out_ += "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    for (const DomainId domain : top_domains_) add_domain(domain, 1);
    for (const NodeId node : top_nodes_) add_node(node, 1);
    add_edges();
    return out_ + "}\n";
  }

 private:
  // What an edge looks like; equal ones are drawn once.
  struct Edge {
    std::string from;
    std::string to;
    LinkKind kind = LinkKind::Fabric;
    Rate capacity;
    Time latency;
    Rate stream_cap;  // zero: none
    bool up = true;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };

  [[nodiscard]] bool collapsed(DomainId domain) const {
    return topology_.domain(domain).level == Level::Host && !whole_hosts_;
  }
  // By ids, not names: a host and a switch may be called alike.
  [[nodiscard]] std::string drawn_as(NodeId node) const {
    const DomainId host = topology_.around(node, Level::Host);
    return host.valid() && collapsed(host) ? fmt::format("d{}", host.value())
                                           : fmt::format("n{}", node.value());
  }

  void add_domain(DomainId domain, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    if (collapsed(domain)) {
      add_host(domain, indent);
      return;
    }
    const Domain& it = topology_.domain(domain);
    out_ += fmt::format("{}subgraph cluster_{} {{\n", indent, domain.value());
    out_ += fmt::format("{}  label={};\n", indent,
                        quoted(fmt::format("{} {}", to_string(it.level), it.name)));
    for (const DomainId child : children_[domain.index()]) add_domain(child, depth + 1);
    for (const NodeId node : nodes_[domain.index()]) add_node(node, depth + 1);
    out_ += indent + "}\n";
  }

  void add_host(DomainId domain, const std::string& indent) {
    std::size_t gpus = 0;
    std::size_t nics = 0;
    bool up = false;
    for (const NodeId node : topology_.members(domain)) {
      gpus += topology_.node(node).kind == NodeKind::Gpu ? 1U : 0U;
      nics += topology_.node(node).kind == NodeKind::Nic ? 1U : 0U;
      up = up || topology_.node(node).up;
    }
    out_ += fmt::format(
        "{}d{} [label={}, fillcolor=\"#dce9f7\"{}];\n", indent, domain.value(),
        two_lines(topology_.domain(domain).name, fmt::format("{} GPUs, {} NICs", gpus, nics)),
        up ? "" : ", style=\"filled,dashed\"");
  }

  void add_node(NodeId node, std::size_t depth) {
    const Node& it = topology_.node(node);
    const bool endpoint = is_endpoint(it.kind);
    out_ += fmt::format("{}n{} [label={}{}{}];\n", std::string(2 * depth, ' '), node.value(),
                        two_lines(it.name, to_string(it.kind)),
                        endpoint ? ", fillcolor=\"#dce9f7\"" : ", shape=ellipse",
                        it.up ? "" : ", style=\"filled,dashed\"");
  }

  void add_edges() {
    std::map<Edge, std::size_t> number;
    std::vector<std::pair<Edge, std::size_t>> edges;  // in the order of their first links
    for (const Link& link : topology_.links()) {
      Edge edge{drawn_as(link.a), drawn_as(link.b), link.kind,
                link.capacity,    link.latency,     link.stream_cap.value_or(Rate(0)),
                link.up};
      if (edge.from == edge.to) continue;  // inside a host that is drawn as one node
      Edge key = edge;                     // a link may name its ends in either order
      if (key.to < key.from) std::swap(key.from, key.to);
      const auto [known, is_new] = number.emplace(std::move(key), edges.size());
      if (is_new) edges.emplace_back(std::move(edge), 0);
      ++edges[known->second].second;
    }
    for (const auto& [edge, count] : edges) {
      std::string label = count == 1 ? "" : fmt::format("{} x ", count);
      label += rounded(edge.capacity);
      if (edge.kind == LinkKind::Wan) label += ", " + rounded(edge.latency);
      if (edge.stream_cap != Rate(0)) {
        label += fmt::format(", a stream at most {}", rounded(edge.stream_cap));
      }
      if (!edge.up) label += ", down";
      out_ += fmt::format("  {} -- {} [label={}{}];\n", edge.from, edge.to, quoted(label),
                          edge.up ? "" : ", style=dashed");
    }
  }

  const Topology& topology_;
  bool whole_hosts_;
  std::vector<DomainId> top_domains_;
  std::vector<NodeId> top_nodes_;
  std::vector<std::vector<DomainId>> children_;  // by domain
  std::vector<std::vector<NodeId>> nodes_;       // by innermost domain
  std::string out_;
};

}  // namespace

std::string render_dot(const Topology& topology) {
  return DotWriter(topology).text();
}

}  // namespace holdfast
