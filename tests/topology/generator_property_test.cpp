// Generated fabrics of random shapes against what their text says: every NIC and switch joined as
// documented, capacities level by level by exact fractions, domains nested. The expectations are
// computed from the drawn numbers and from names, not by the generators' code.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/io/topology_reader.hpp"

namespace holdfast {
namespace {

struct Class {
  std::uint64_t gpus = 0;
  std::uint64_t nics = 0;
  std::uint64_t rate = 0;  // bytes a second of each NIC
  std::uint64_t hosts = 0;
};

// Unreduced; compared by cross-multiplication.
struct Fraction {
  std::uint64_t in = 1;
  std::uint64_t out = 1;
};

struct Shape {
  std::vector<Class> classes;
  bool racks = false;
  std::uint64_t leaves = 0;  // of a rack, or rails of a pod
  std::uint64_t hosts_per_unit = 0;
  std::uint64_t units_per_pod = 0;  // racks; 1 with rails
  std::uint64_t pods = 0;
  std::uint64_t spines = 0;  // of a pod
  std::uint64_t plane = 0;   // cores of a spine; 0: one pod
  Fraction leaf_ratio;
  Fraction spine_ratio;
  std::string text;
};

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed) {}

  Shape draw() {
    Shape s;
    s.racks = pick({0, 1}) == 1;
    s.leaves = pick({1, 2, 4});
    s.hosts_per_unit = pick({1, 2, 3});
    s.units_per_pod = s.racks ? pick({1, 2, 3}) : 1;
    s.pods = pick({1, 2, 3});
    s.spines = pick({1, 2, 4, 5});
    s.plane = s.pods == 1 ? 0 : pick({1, 2, 5});
    s.leaf_ratio = {pick({1, 2, 3, 7}), pick({1, 2})};
    if (s.pods > 1) s.spine_ratio = {pick({1, 3, 7, 16}), 1};
    if (s.pods * s.units_per_pod * s.leaves == 1) s.spines = 0;
    std::uint64_t left = s.pods * s.units_per_pod * s.hosts_per_unit;
    while (left > 0) {
      const std::uint64_t hosts = s.classes.size() == 2 ? left : 1 + random_() % left;
      s.classes.push_back({pick({1, 2, 8}), s.leaves * pick({1, 2}),
                           pick({25'000'000'000, 50'000'000'000}), hosts});
      left -= hosts;
    }
    s.text = write(s);
    return s;
  }

 private:
  std::uint64_t pick(std::initializer_list<std::uint64_t> values) {
    return values.begin()[random_() % values.size()];
  }

  static std::string key(const std::string& name, std::uint64_t value) {
    return "    " + name + ": " + std::to_string(value) + "\n";
  }
  static std::string ratio(const Fraction& f) {
    return "'" + std::to_string(f.in) + ":" + std::to_string(f.out) + "'";
  }

  static std::string write(const Shape& s) {
    std::string text = "format: 1\nname: t\nhosts:\n";
    for (std::size_t c = 0; c < s.classes.size(); ++c) {
      const Class& one = s.classes[c];
      text += "  c" + std::to_string(c) + ":\n    gpus: {count: " + std::to_string(one.gpus) +
              ", memory: 1GB, digest_rate: 1TB/s}\n    nics: {count: " + std::to_string(one.nics) +
              ", rate: " + std::to_string(one.rate) +
              "B/s}\n    memory: {size: 1GB, rate: 1GB/s, latency: 1ns, digest_rate: 1GB/s}\n"
              "    pcie: {rate: 1GB/s, latency: 1ns}\n";
    }
    text += "cluster:\n  hosts:\n";
    for (std::size_t c = 0; c < s.classes.size(); ++c) {
      text += "    - {template: c" + std::to_string(c) +
              ", count: " + std::to_string(s.classes[c].hosts) + "}\n";
    }
    if (s.racks) {
      text += "  fat_tree:\n" + key("hosts_per_rack", s.hosts_per_unit) +
              key("leaves_per_rack", s.leaves) + key("racks_per_pod", s.units_per_pod);
    } else {
      text +=
          "  rail_optimised:\n" + key("hosts_per_pod", s.hosts_per_unit) + key("rails", s.leaves);
      if (s.spines == 0) return text + "    latency: 1us\n";
    }
    text += "    latency: 1us\n";
    if (s.spines == 0) return text;
    text += key("spines_per_pod", s.spines);
    if (s.pods == 1) return text + "    oversubscription: " + ratio(s.leaf_ratio) + "\n";
    return text + key("cores", s.spines * s.plane) +
           "    oversubscription: {leaf: " + ratio(s.leaf_ratio) +
           ", spine: " + ratio(s.spine_ratio) + "}\n";
  }

  std::mt19937_64 random_;
};

__extension__ using Wide = unsigned __int128;

// The links of a node by the name of the other end; two of the same pair fail the test.
std::map<std::string, Link> links_of(const Topology& t, const std::string& name) {
  std::map<std::string, Link> out;
  for (const Neighbour& neighbour : t.neighbours(t.find_node(name))) {
    const bool is_new = out.emplace(t.node(neighbour.node).name, t.link(neighbour.link)).second;
    EXPECT_TRUE(is_new) << name << " is joined twice to " << t.node(neighbour.node).name;
  }
  return out;
}

// What a switch is joined to upwards, and each link's capacity.
void expect_uplinks(const Topology& t, const std::string& name,
                    const std::vector<std::string>& upper, std::size_t below, Wide capacity) {
  const auto links = links_of(t, name);
  ASSERT_EQ(links.size(), below + upper.size()) << name;
  for (const std::string& top : upper) {
    ASSERT_EQ(links.count(top), 1U) << name << " " << top;
    EXPECT_TRUE(Wide{links.at(top).capacity.bytes_per_second()} == capacity) << name << " " << top;
    EXPECT_EQ(links.at(top).latency, microseconds(1));
  }
}

class Walk {
 public:
  Walk(const Shape& shape, const Topology& topology) : s_(shape), t_(topology) {}

  void check() {
    std::uint64_t host = 0;
    for (std::uint64_t p = 0; p < s_.pods; ++p) {
      Wide from_below = 0;  // of one spine, times leaf_ratio.in
      for (std::uint64_t u = 0; u < s_.units_per_pod; ++u) {
        const std::vector<Wide> sums = check_unit(p, p * s_.units_per_pod + u, host);
        for (const Wide sum : sums) {
          if (s_.spines > 0) from_below += sum * s_.leaf_ratio.out / s_.spines;
        }
      }
      if (s_.spines > 0) check_spines(p, from_below);
    }
    check_cores();
    std::size_t switches = 0;
    for (const Node& node : t_.nodes()) switches += is_inside_host(node.kind) ? 0 : 1;
    EXPECT_EQ(switches,
              s_.pods * (s_.units_per_pod * s_.leaves + s_.spines) + s_.spines * s_.plane);
  }

 private:
  [[nodiscard]] const Class& class_of(std::uint64_t host) const {
    std::size_t c = 0;
    while (host >= s_.classes[c].hosts) host -= s_.classes[c++].hosts;
    return s_.classes[c];
  }
  [[nodiscard]] std::string unit_name(std::uint64_t pod, std::uint64_t unit) const {
    return s_.racks ? "rack" + std::to_string(unit) : "pod" + std::to_string(pod);
  }
  static std::string numbered(const std::string& what, std::uint64_t i) {
    return what + std::to_string(i);
  }

  // A rack, or a pod of rails: what each of its leaves can receive from NICs.
  std::vector<Wide> check_unit(std::uint64_t pod, std::uint64_t unit, std::uint64_t& host) {
    const std::string name = unit_name(pod, unit);
    const DomainId domain = t_.find_domain(name);
    EXPECT_TRUE(domain.valid()) << name;
    EXPECT_EQ(t_.around(domain, Level::Pod), t_.find_domain(numbered("pod", pod)));
    EXPECT_EQ(t_.around(domain, Level::Rack).valid(), s_.racks);
    std::vector<Wide> sums(s_.leaves);
    std::vector<std::size_t> ports(s_.leaves);
    for (std::uint64_t h = 0; h < s_.hosts_per_unit; ++h, ++host) {
      const Class& one = class_of(host);
      const std::string host_name = numbered("h", host);
      EXPECT_EQ(t_.domain(t_.find_domain(host_name)).parent, domain) << host_name;
      EXPECT_TRUE(t_.find_node(host_name + numbered(".gpu", one.gpus - 1)).valid());
      EXPECT_FALSE(t_.find_node(host_name + numbered(".gpu", one.gpus)).valid());
      EXPECT_FALSE(t_.find_node(host_name + numbered(".nic", one.nics)).valid());
      for (std::uint64_t n = 0; n < one.nics; ++n) {
        const auto links = links_of(t_, host_name + numbered(".nic", n));
        const std::string leaf = name + numbered(".leaf", n % s_.leaves);
        EXPECT_EQ(links.size(), 2U);  // PCIe and the leaf
        EXPECT_EQ(links.count(leaf), 1U) << host_name << " " << leaf;
        if (links.count(leaf) == 1) {
          EXPECT_EQ(links.at(leaf).capacity, Rate(one.rate));
        }
        sums[n % s_.leaves] += one.rate;
        ++ports[n % s_.leaves];
      }
    }
    for (std::uint64_t l = 0; l < s_.leaves; ++l) {
      const std::string leaf = name + numbered(".leaf", l);
      EXPECT_EQ(t_.node(t_.find_node(leaf)).domain, domain);
      std::vector<std::string> upper;
      for (std::uint64_t i = 0; i < s_.spines; ++i) {
        upper.push_back(numbered("pod", pod) + numbered(".spine", i));
      }
      const Wide capacity =
          s_.spines == 0 ? 0 : sums[l] * s_.leaf_ratio.out / s_.spines / s_.leaf_ratio.in;
      expect_uplinks(t_, leaf, upper, ports[l], capacity);
    }
    return sums;
  }

  void check_spines(std::uint64_t pod, Wide from_below) {
    for (std::uint64_t i = 0; i < s_.spines; ++i) {
      const std::string spine = numbered("pod", pod) + numbered(".spine", i);
      EXPECT_EQ(t_.node(t_.find_node(spine)).domain, t_.find_domain(numbered("pod", pod)));
      std::vector<std::string> upper;
      for (std::uint64_t c = 0; c < s_.plane; ++c) {
        upper.push_back(numbered("core", i * s_.plane + c));
      }
      const Wide capacity = s_.plane == 0 ? 0
                                          : from_below * s_.spine_ratio.out / s_.plane /
                                                (Wide{s_.leaf_ratio.in} * s_.spine_ratio.in);
      expect_uplinks(t_, spine, upper, s_.units_per_pod * s_.leaves, capacity);
    }
  }

  // Each core is joined to one spine of every pod, and lies in none.
  void check_cores() {
    for (std::uint64_t c = 0; c < s_.spines * s_.plane; ++c) {
      const std::string core = numbered("core", c);
      EXPECT_FALSE(t_.node(t_.find_node(core)).domain.valid());
      const auto links = links_of(t_, core);
      EXPECT_EQ(links.size(), s_.pods);
      for (std::uint64_t p = 0; p < s_.pods; ++p) {
        EXPECT_EQ(links.count(numbered("pod", p) + numbered(".spine", c / s_.plane)), 1U);
      }
    }
  }

  const Shape& s_;
  const Topology& t_;
};

// NICs inside a domain against what enters it: the stated ratio, but for less than a byte per
// second a link.
void expect_ratio(const Topology& t, DomainId domain, const Fraction& ratio) {
  Wide nics = 0;
  Wide in = 0;
  std::uint64_t links = 0;
  for (const Link& link : t.links()) {
    const bool a = t.around(link.a, t.domain(domain).level) == domain;
    const bool b = t.around(link.b, t.domain(domain).level) == domain;
    if (a != b) {
      in += link.capacity.bytes_per_second();
      ++links;
    } else if (a && link.kind == LinkKind::Fabric && t.node(link.a).kind == NodeKind::Nic) {
      nics += link.capacity.bytes_per_second();
    }
  }
  EXPECT_LE(in * ratio.in, nics * ratio.out);
  EXPECT_GE((in + links) * ratio.in, nics * ratio.out);
}

TEST(GeneratorProperty, FabricsAreWhatTheirTextSays) {
  std::size_t mixed = 0;
  std::size_t three_levels = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Shape shape = Drawer(seed).draw();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + shape.text);
    const Topology t = parse_topology(shape.text, "t.yaml");
    Walk(shape, t).check();
    ASSERT_EQ(t.hash(), parse_topology(shape.text, "u.yaml").hash());
    for (std::size_t d = 0; d < t.domains().size(); ++d) {
      const Level level = t.domains()[d].level;
      const Fraction& leaf = shape.leaf_ratio;
      if (level == Level::Rack && shape.spines > 0) expect_ratio(t, DomainId(d), leaf);
      if (level == Level::Pod && shape.plane > 0) {
        expect_ratio(t, DomainId(d),
                     {leaf.in * shape.spine_ratio.in, leaf.out * shape.spine_ratio.out});
      }
    }
    mixed += shape.classes.size() > 1 ? 1 : 0;
    three_levels += shape.plane > 0 ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(mixed, 100U);
  EXPECT_GT(three_levels, 100U);
}

}  // namespace
}  // namespace holdfast
