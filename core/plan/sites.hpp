// Where one class lives, seen from above its hosts: sites, and the order in which they are reached.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/plan/class_hosts.hpp"
#include "core/plan/plan_space.hpp"

namespace holdfast {

// A site that feeds another one.
struct Feeder {
  std::size_t site = 0;
  DomainId datacenter;  // the feeder's; invalid outside one
};

// Hosts of one class that a stripe enters once.
struct Site {
  std::vector<const ClassHost*> sources;    // with holders
  std::vector<const ClassHost*> receivers;  // without, but with relays
  DomainId datacenter;                      // invalid outside one
  const ClassHost* leaf = nullptr;  // a receiver that is to feed nobody, if there is just one such
  // Whose hosts feed it: none where it has sources; one inside a datacenter; across datacenters one
  // for each line that leads to it, between which the stripes are shared out.
  std::vector<Feeder> feeders;
};

// How hosts are told apart into sites.
struct SiteRule {
  // Hosts of one domain of this level or, where a machine has none of it, of the next that it has.
  Level level = Level::Datacenter;
  // Also by what their NICs carry together, where that differs by half or more: a slow host then
  // never stands above a fast one.
  bool by_speed = false;
};

class SitePlanner {
 public:
  // References are kept.
  explicit SitePlanner(const PlanSpace& space, const SiteRule& rule);

  // The sites in the order of their first host. O(hosts).
  [[nodiscard]] std::vector<Site> group(const ClassHosts& hosts);

  // Chooses who feeds the sites without a source; returns them in the order in which they are
  // reached: over fewest lines of a WAN and the widest way first, from the site that feeds fewest
  // others. Nobody is fed, even by way of others, by a site that it feeds. O(sites^2).
  [[nodiscard]] std::vector<std::size_t> order(std::vector<Site>& sites);

  // How many sites the rule makes of all hosts of the demand. O(workers).
  [[nodiscard]] std::size_t count() const;

 private:
  [[nodiscard]] std::uint64_t key(DomainId host) const;
  [[nodiscard]] Rate width(const Site& from, const Site& to);
  [[nodiscard]] std::uint32_t lines(const Site& from, const Site& to) const;
  [[nodiscard]] std::vector<Feeder> feeders(const std::vector<Site>& sites, std::size_t nearest,
                                            std::size_t to,
                                            const std::vector<std::size_t>& reached) const;

  const PlanSpace& space_;
  SiteRule rule_;
  std::vector<std::uint32_t> speed_class_;  // by domain: hosts; all zero without `by_speed`
  std::unordered_map<std::uint64_t, Rate> widths_;
  std::set<std::pair<DomainId, DomainId>> lines_;  // datacenters that a WAN line joins
};

}  // namespace holdfast
