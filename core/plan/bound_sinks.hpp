// Cuts of one set of receivers at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/plan/bound_demand.hpp"
#include "core/plan/bound_graph.hpp"
#include "core/plan/bound_latency.hpp"
#include "core/plan/bound_result.hpp"
#include "core/plan/bound_view.hpp"
#include "core/plan/parametric_cut.hpp"

namespace holdfast::bound {

// A set of receivers, merged.
struct Sink {
  CutKind kind = CutKind::Receiver;
  std::string name;
  std::vector<WorkerId> workers;  // ascending, each receives something
};

// A view with the places where each holder set comes in.
class SuppliedView {
 public:
  SuppliedView(View view) : view_(std::move(view)) {}
  void add_entry(std::uint32_t set, std::uint32_t local) { entries_[set].push_back(local); }

  [[nodiscard]] const View& view() const { return view_; }
  // Ascending; beside others where some of the set's `holders` holders lie elsewhere.
  [[nodiscard]] std::vector<std::uint32_t> entries(std::uint32_t set, std::size_t holders) const;

 private:
  View view_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> entries_;
};

class SinkCuts {
 public:
  // Keeps references.
  SinkCuts(const RoutingGraph& graph, const DemandIndex& index, const DomainCuts& domains,
           const Latencies& latencies, Result& result);

  // A view of these hosts, in the domain that `entries` lead into if there are any; or of
  // everything.
  [[nodiscard]] SuppliedView view_of(std::span<const DomainId> hosts,
                                     std::span<const ChannelId> entries = {}) const;
  [[nodiscard]] SuppliedView view_of_all() const;

  // From here on about this set of receivers. The sink must stay while it is used.
  void begin(const Sink& sink);
  // Distinct bytes that the sink wants and that no worker of the domain holds and may serve.
  [[nodiscard]] std::uint64_t bytes_into(DomainId domain) const;

  // What enters each domain around the whole sink, and leaves each domain that has all holders of
  // something and none of the sink.
  void cut_at_domains();
  // Minimum cuts in the view, which contains the hosts of all of the sink.
  void cut_in(const SuppliedView& view);
  // Minimum cuts between the holders and the outside of their hosts; only where none of the sink
  // lies in these hosts, they are few, and the effort spent on such views so far is bounded.
  void cut_at_holders();
  // The same in each domain around the sink that has some of the holders of something and not all:
  // what they send there together with what enters the domain. The sink lies in none of their
  // hosts, or wholly in them.
  void cut_among_holders();

 private:
  // What one flow found, with real channels.
  struct Found {
    std::vector<std::vector<std::uint32_t>> sets;  // by cut: the holder sets that count
    std::vector<std::vector<ChannelId>> channels;  // by cut
    std::vector<Ratio> ratios;                     // by cut
  };
  struct HolderCuts {
    std::vector<DomainId> hosts;       // ascending
    std::optional<SuppliedView> view;  // nothing: it would be too large
    Found found;                       // between the holders and the outside
  };

  [[nodiscard]] Found solve(const SuppliedView& view, std::vector<std::uint32_t> sinks);
  const std::vector<FlowCut>& cached(const View& view, const FlowProblem& problem);
  [[nodiscard]] std::size_t workers_in(const std::vector<DomainId>& hosts) const;
  [[nodiscard]] std::vector<std::uint32_t> arrivals(const View& view) const;
  void offer(const Found& found);
  // Of the holders in a domain; invalid: of all.
  [[nodiscard]] const HolderCuts& holder_cuts(DomainId domain);
  [[nodiscard]] bool straddled(DomainId domain) const;
  template <class Channels>
  void offer(std::span<const std::uint32_t> sets, Ratio ratio, const Channels& channels);
  [[nodiscard]] Time threshold() const;
  [[nodiscard]] bool hopeless(Ratio ratio) const;
  [[nodiscard]] bool lies_in(DomainId domain, std::size_t level) const;

  const RoutingGraph* graph_;
  const DemandIndex* index_;
  const DomainCuts* domains_;
  const Latencies* latencies_;
  Result* result_;
  Lists<std::uint32_t> sets_of_worker_;
  Lists<WorkerId> workers_of_host_;  // by domain number: all workers, holders too

  const Sink* sink_ = nullptr;
  std::uint32_t group_ = 0;                // of the sink's first worker
  Nest around_;                            // all of the sink
  std::uint32_t stamp_ = 0;                // a class or set is marked while it carries this number
  std::vector<std::uint32_t> needed_;      // by class: must come from outside
  std::vector<std::uint32_t> held_;        // by class: someone in the sink holds it
  std::vector<std::uint32_t> wanted_set_;  // by set
  std::vector<std::uint64_t> set_bytes_;   // by set: needed bytes
  std::vector<std::uint32_t> sets_;        // with needed bytes, ascending
  std::uint32_t counting_ = 0;
  std::vector<std::uint32_t> counted_;  // by set: counts in the cut on offer

  std::map<Hash128, std::vector<FlowCut>> flows_;
  using Wanted = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // bytes by holder set
  std::map<std::pair<DomainId, Wanted>, HolderCuts> holder_cuts_;
  std::size_t effort_ = 0;  // arcs in views of holders so far
};

}  // namespace holdfast::bound
