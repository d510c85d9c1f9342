// Max-min fair rates of flows over links, kept up to date while flows come and go.
//
// An allocation is max-min fair exactly when each flow is at its own cap, or crosses a full link on
// which no other flow is faster (Bertsekas and Gallager, "Data Networks", 2nd ed., 6.5.2); there is
// one such allocation. So after a change only those flows are computed anew for which that does not
// hold any more: a region, which grows until every flow at its border is content. Inside a region
// rates are raised together and fixed at the narrowest link, the others' rates being given.
//
// This is the sharing of SimGrid's CM02 with equal latencies, which computes the whole connected
// component anew. Where few rates change, as in trees in step, it is much faster. Both are compared
// in tests. Comparisons allow one part in 10^10.
//
// Deterministic: the same calls give the same rates. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::sim {

class FairRates {
 public:
  static constexpr double kNoCap = std::numeric_limits<double>::infinity();

  // Links are numbered in the order of `capacities`, each above zero; any unit.
  explicit FairRates(std::span<const double> capacities);

  // Preconditions: no live flow has that number; links not empty, none twice; cap above zero.
  // O(links).
  void add(std::uint32_t flow, std::span<const std::uint32_t> links, double cap = kNoCap);
  // Precondition: the flow is live. O(links).
  void remove(std::uint32_t flow);

  // Precondition: capacity above zero. O(flows on the link).
  void set_capacity(std::uint32_t link, double capacity);

  // Makes the rates fair again; the flows whose rate has changed, new ones included, in an order
  // without meaning. O(flows on the links of the region x log), for each time that it grows.
  std::span<const std::uint32_t> settle();

  // As of the last `settle`; zero for a flow that was added since.
  [[nodiscard]] double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  // Gives a flow that was added since the last `settle` what the others leave of its links, up to
  // its cap, and returns that; the next `settle` makes it fair. O(flows on its links).
  double lend(std::uint32_t flow);
  [[nodiscard]] std::size_t live() const { return live_; }
  // Rates computed so far, those that came out as they were included.
  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  struct Flow {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // link, place in its list
    double rate = 0;
    double old_rate = 0;  // before it came into the region
    double cap = kNoCap;
    bool in_region = false;
    bool fixed = false;  // during `solve`
  };
  struct User {
    std::uint32_t flow = 0;
    std::uint32_t link_number = 0;  // in Flow::links
  };
  struct Link {
    std::vector<User> users;
    double capacity = 0;
    double top = 0;          // the fastest flow's rate
    double left = 0;         // during `solve`: of the capacity
    std::uint32_t open = 0;  // during `solve`: flows that are not fixed
    std::uint32_t mark = 0;
    bool full = false;
    bool dirty = false;    // a flow has left since the last `settle`
    bool watched = false;  // during `settle`
  };

  void touch(std::uint32_t link);
  void measure(Link& link) const;
  [[nodiscard]] bool content(const Flow& flow) const;
  void take(std::uint32_t flow);
  bool take_discontent_users(const Link& link);
  bool take_what_is_faster(const Flow& flow);
  void prepare();
  void solve();
  void fix(std::uint32_t flow, double rate);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> dirty_;         // links
  std::vector<std::uint32_t> region_;        // flows
  std::vector<std::uint32_t> region_links_;  // of the flows in the region
  std::vector<std::pair<double, std::uint32_t>> heap_;
  std::vector<std::uint32_t> changed_;
  std::uint32_t mark_ = 0;
  std::size_t unfixed_ = 0;
  std::size_t live_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace holdfast::sim
