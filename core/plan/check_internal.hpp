// The parts of the checker. Private to core/plan; users include checker.hpp.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/checker.hpp"

namespace holdfast::checking {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Collects violations; beyond the first `most` it only counts, so that a plan that is wrong
// everywhere costs no text.
class Report {
 public:
  explicit Report(std::size_t most) : most_(most) {}

  // `pointer` and `message` return strings and are called only for a violation that is listed.
  template <class Pointer, class Message>
  void add(ViolationCode code, Pointer&& pointer, Message&& message) {
    if (list_.size() < most_) {
      list_.push_back({code, pointer(), message()});
    } else if (unlisted_++ == 0) {
      first_unlisted_ = code;
    }
  }
  [[nodiscard]] std::vector<Violation> take();

 private:
  std::size_t most_;
  std::uint64_t unlisted_ = 0;
  ViolationCode first_unlisted_ = ViolationCode::WrongFormat;
  std::vector<Violation> list_;
};

// What all parts look at.
struct Subject {
  Subject(const Plan& plan, const Demand& demand, const Router& router, const Holdings* start);

  [[nodiscard]] const std::string& name(WorkerId worker) const;
  [[nodiscard]] bool known(WorkerId worker) const { return worker.index() < demand.workers.size(); }

  // The worker had all blocks of the stripe when the plan began. O(blocks of the stripe x spans).
  [[nodiscard]] bool starts_with(WorkerId worker, const Stripe& stripe) const;

  const Plan& plan;
  const Demand& demand;
  const Router& router;
  const Holdings* start;                    // null: nothing beside the demand's holders
  std::vector<std::uint32_t> class_blocks;  // by class
  // Stripes of each class: `stripes[first_stripe[c] .. first_stripe[c + 1])`, ascending. Stripes of
  // a class that is not there are nowhere.
  std::vector<std::uint32_t> first_stripe;
  std::vector<std::uint32_t> stripes;
  std::vector<bool> well_formed;  // by stripe: its class is there and its selection within it
};

// Each edge on its own and as part of its stripe's tree.
void check_edges(const Subject& subject, Report& report);
// Each receiver gets each block of its classes exactly once.
void check_coverage(const Subject& subject, Report& report);
// Carries the plan out block by block, unless that takes more than `most` deliveries.
void check_execution(const Subject& subject, std::uint64_t most, Report& report);

// The k-th block of a class. O(spans).
[[nodiscard]] BlockId block_at(const BlockClass& c, std::uint32_t k);

}  // namespace holdfast::checking
