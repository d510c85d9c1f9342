#include "core/plan/sites.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace holdfast {
namespace {

DomainId domain_at(const Topology& topology, DomainId host, Level level) {
  for (auto up = static_cast<std::size_t>(level); host.valid() && up < kLevels; ++up) {
    const DomainId domain = topology.around(host, static_cast<Level>(up));
    if (domain.valid()) return domain;
  }
  return {};
}

// What the NICs of a host carry together, in bytes a second.
double nic_rate(const Topology& topology, DomainId host) {
  double rate = 0;
  for (const NodeId node : topology.members(host)) {
    if (topology.node(node).kind != NodeKind::Nic) continue;
    for (const Neighbour& next : topology.neighbours(node)) {
      if (topology.link(next.link).kind != LinkKind::Fabric || !topology.usable(next.link))
        continue;
      rate += static_cast<double>(topology.link(next.link).capacity.bytes_per_second());
    }
  }
  return rate;
}

}  // namespace

SitePlanner::SitePlanner(const PlanSpace& space, const SiteRule& rule)
    : space_(space), rule_(rule), speed_class_(space.topology().domains().size(), 0) {
  const Topology& topology = space.topology();
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    if (link.kind != LinkKind::Wan || !topology.usable(LinkId(i))) continue;
    const DomainId a = topology.around(link.a, Level::Datacenter);
    const DomainId b = topology.around(link.b, Level::Datacenter);
    lines_.insert(std::minmax(a, b));
  }
  if (!rule.by_speed) return;
  std::vector<double> rate(speed_class_.size(), 0);
  for (std::size_t w = 0; w < space.demand().workers.size(); ++w) {
    const DomainId host = space.host(WorkerId(w));
    if (!host.valid() || rate[host.index()] != 0) continue;
    rate[host.index()] = nic_rate(space.topology(), host);
  }
  const double fastest = *std::max_element(rate.begin(), rate.end());
  constexpr double kApart = 1.5;
  for (std::size_t d = 0; d < rate.size(); ++d) {
    if (rate[d] <= 0) continue;
    speed_class_[d] = static_cast<std::uint32_t>(std::log(fastest / rate[d]) / std::log(kApart));
  }
}

std::uint64_t SitePlanner::key(DomainId host) const {
  const DomainId domain = domain_at(space_.topology(), host, rule_.level);
  const std::uint32_t speed = host.valid() ? speed_class_[host.index()] : 0;
  return (std::uint64_t{domain.value()} << 32) | speed;
}

std::vector<Site> SitePlanner::group(const ClassHosts& hosts) {
  std::vector<Site> sites;
  std::unordered_map<std::uint64_t, std::size_t> known;
  for (const ClassHost& host : hosts.hosts) {
    if (!host.serves()) continue;
    const auto [found, is_new] = known.emplace(key(host.host), sites.size());
    if (is_new) {
      sites.emplace_back().datacenter = space_.topology().around(host.host, Level::Datacenter);
    }
    Site& site = sites[found->second];
    (host.holders.empty() ? site.receivers : site.sources).push_back(&host);
  }
  return sites;
}

std::size_t SitePlanner::count() const {
  std::vector<std::uint64_t> keys;
  for (std::size_t w = 0; w < space_.demand().workers.size(); ++w) {
    const DomainId host = space_.host(WorkerId(w));
    if (w == 0 || host != space_.host(WorkerId(w - 1))) keys.push_back(key(host));
  }
  std::sort(keys.begin(), keys.end());
  return static_cast<std::size_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
}

// What a flow between the two gets: the narrowest link on one way between them.
Rate SitePlanner::width(const Site& from, const Site& to) {
  const ClassHost& a = *(from.sources.empty() ? from.receivers : from.sources).front();
  const ClassHost& b = *to.receivers.front();
  const auto both = (std::uint64_t{a.host.value()} << 32) | b.host.value();
  const auto [known, is_new] = widths_.emplace(both, Rate(0));
  if (!is_new) return known->second;
  const Slot& out = a.slots.front();
  const Slot& in = b.slots.front();
  if (out.nic.valid() && in.nic.valid()) {
    const auto route = space_.router().route(space_.node(out.gateway), space_.node(in.gateway),
                                             Path{out.nic, in.nic, 0});
    if (route) known->second = space_.router().bottleneck(*route);
  }
  return known->second;
}

// Lines of a WAN between the two: none, one, or several in a row.
std::uint32_t SitePlanner::lines(const Site& from, const Site& to) const {
  if (from.datacenter == to.datacenter) return 0;
  return lines_.contains(std::minmax(from.datacenter, to.datacenter)) ? 1 : 2;
}

// The nearest site, and one of each other datacenter that a line joins to this one.
std::vector<Feeder> SitePlanner::feeders(const std::vector<Site>& sites, std::size_t nearest,
                                         std::size_t to,
                                         const std::vector<std::size_t>& reached) const {
  const DomainId here = sites[to].datacenter;
  const auto line = [&](DomainId from) {
    return from != here && lines_.contains(std::minmax(from, here));
  };
  const DomainId first = sites[nearest].datacenter;
  std::vector<Feeder> result{{nearest, first}};
  if (!line(first)) return result;  // inside, or over several lines in a row
  for (const std::size_t from : reached) {
    const DomainId datacenter = sites[from].datacenter;
    const bool known = std::any_of(result.begin(), result.end(), [&](const Feeder& feeder) {
      return feeder.datacenter == datacenter;
    });
    if (!known && line(datacenter)) result.push_back({from, datacenter});
  }
  return result;
}

std::vector<std::size_t> SitePlanner::order(std::vector<Site>& sites) {
  std::vector<std::size_t> reached;
  std::vector<std::size_t> waiting;
  std::vector<std::size_t> order;
  std::vector<std::uint32_t> feeds(sites.size(), 0);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    (sites[i].sources.empty() ? waiting : reached).push_back(i);
  }
  while (!waiting.empty()) {
    std::size_t best_to = 0;
    std::size_t best_from = 0;
    std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::size_t> best_cost{};
    bool found = false;
    // All waiting sites are alike to the order but for their width; looking at the first few keeps
    // this near-linear for hundreds of racks.
    for (std::size_t w = 0; w < std::min<std::size_t>(waiting.size(), 8); ++w) {
      for (const std::size_t from : reached) {
        const std::uint64_t narrowness = ~width(sites[from], sites[waiting[w]]).bytes_per_second();
        const std::tuple cost{lines(sites[from], sites[waiting[w]]), narrowness, feeds[from], from};
        if (found && cost >= best_cost) continue;
        found = true;
        best_cost = cost;
        best_from = from;
        best_to = w;
      }
    }
    const std::size_t to = waiting[best_to];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(best_to));
    sites[to].feeders = feeders(sites, best_from, to, reached);
    for (const Feeder& feeder : sites[to].feeders) ++feeds[feeder.site];
    reached.push_back(to);
    order.push_back(to);
  }
  return order;
}

}  // namespace holdfast
