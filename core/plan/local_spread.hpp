// Spreads the stripes of one class inside one host.
//
// Every relay of the host needs every stripe. The worker that a stripe entered through (or the
// holder) serves the others itself as long as that is not more than its fair share of what the
// host's members must send in all; beyond it, workers that already have the stripe take over. For
// eight GPUs with a stripe each this is an all-gather; for one holder it is a scatter followed by
// an all-gather, with a chain for the stripe that has nowhere else to enter.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/plan/class_hosts.hpp"
#include "core/plan/path_chooser.hpp"
#include "core/plan/plan_builder.hpp"

namespace holdfast {

// What one stripe does in one host: where it enters.
struct StripeEntry {
  StripeId stripe;
  Bytes bytes;
  WorkerId gateway;  // a holder, or a relay that some edge from outside or from a holder feeds
  // Stripes of one strand share connections inside the host too; those of different strands, which
  // arrive at their own times, must not wait for each other.
  std::uint32_t strand = 0;
};

class LocalSpread {
 public:
  LocalSpread(const PlanSpace& space, PathChooser& paths, PlanBuilder& builder)
      : space_(space), paths_(paths), builder_(builder), sent_(space.demand().workers.size()) {}

  // Adds the edges inside `host` for all stripes of a class, of `class_bytes` together. Where the
  // host has holders, also the edges from them to gateways that are relays.
  void add(const ClassHost& host, std::vector<StripeEntry> stripes, Bytes class_bytes);

 private:
  struct Attached {
    WorkerId worker;
    std::uint32_t depth;
  };
  void add_stripe(const ClassHost& host, const StripeEntry& entry, std::size_t turn);
  void attach(const StripeEntry& entry, std::vector<Attached>& attached, std::size_t parent,
              WorkerId child);
  [[nodiscard]] std::size_t best_parent(const std::vector<Attached>& attached,
                                        const StripeEntry& entry) const;

  const PlanSpace& space_;
  PathChooser& paths_;
  PlanBuilder& builder_;
  std::vector<Bytes> sent_;                         // inside hosts, by worker
  std::unordered_map<DomainId, Bytes> fair_share_;  // of each member of a host, all classes so far
  Bytes limit_;                                     // of the host being worked on
};

}  // namespace holdfast
