// Each receiver gets each block of its classes exactly once. Receivers with the same stripes are
// looked at together: in a plan as the planners make it, all receivers of a class.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "core/hash.hpp"
#include "core/plan/check_internal.hpp"

namespace holdfast::checking {
namespace {

// What a list of stripes of one class brings.
struct Coverage {
  std::uint32_t missing = 0;  // blocks that are in none of them
  std::uint32_t first_missing = kNone;
  std::uint32_t twice = kNone;  // a block that is in two, and the later of the two
  std::uint32_t twice_stripe = kNone;
  bool complete = true;  // false: too much is there twice to have looked at all
};

class CoverageChecker {
 public:
  CoverageChecker(const Subject& subject, Report& report)
      : subject_(subject), report_(report), place_(subject.demand.workers.size()) {}

  void run() {
    for (std::size_t c = 0; c < subject_.demand.classes.size(); ++c) block_class(c);
  }

 private:
  // Which receiver of the class in hand a worker is, and the last stripe that counted for it.
  struct Seat {
    ClassId block_class;
    std::uint32_t receiver = kNone;
    std::uint32_t last_stripe = kNone;
  };

  void block_class(std::size_t c);
  void gather(std::size_t c);
  Coverage cover(std::size_t c, std::span<const std::uint32_t> stripes);
  void report(std::size_t c, std::size_t receiver, const Coverage& coverage);
  void report_with_start(std::size_t c, std::size_t receiver);

  template <class Visit>
  void for_each_delivery(std::size_t c, Visit&& visit);

  [[nodiscard]] std::span<const std::uint32_t> stripes_of(std::size_t receiver) const {
    return {stripe_.data() + first_[receiver], first_[receiver + 1] - first_[receiver]};
  }

  const Subject& subject_;
  Report& report_;
  std::vector<Seat> place_;  // by worker
  // Stripes of each receiver of the class in hand: stripe_[first_[r] .. first_[r + 1]), ascending.
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> stripe_;
  std::vector<char> seen_;  // by block of the class in hand
};

// Visits (receiver, stripe) for each well-formed stripe of the class and each receiver in it, once.
template <class Visit>
void CoverageChecker::for_each_delivery(std::size_t c, Visit&& visit) {
  const std::vector<WorkerId>& receivers = subject_.demand.classes[c].receivers;
  for (std::uint32_t r = 0; r < receivers.size(); ++r) {
    place_[receivers[r].index()] = {ClassId(c), r, kNone};
  }
  for (std::uint32_t i = subject_.first_stripe[c]; i < subject_.first_stripe[c + 1]; ++i) {
    const std::uint32_t s = subject_.stripes[i];
    if (!subject_.well_formed[s]) continue;
    for (const Edge& edge : subject_.plan.stripes[s].edges) {
      if (!subject_.known(edge.child)) continue;
      Seat& seat = place_[edge.child.index()];
      if (seat.block_class != ClassId(c) || seat.last_stripe == s) continue;
      seat.last_stripe = s;
      visit(seat.receiver, s);
    }
  }
}

void CoverageChecker::gather(std::size_t c) {
  first_.assign(subject_.demand.classes[c].receivers.size() + 1, 0);
  for_each_delivery(c, [this](std::uint32_t r, std::uint32_t) { ++first_[r + 1]; });
  for (std::size_t r = 1; r < first_.size(); ++r) first_[r] += first_[r - 1];
  stripe_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for_each_delivery(c, [&](std::uint32_t r, std::uint32_t s) { stripe_[next[r]++] = s; });
}

// O(blocks of the class + stripes), however much is there more than once.
Coverage CoverageChecker::cover(std::size_t c, std::span<const std::uint32_t> stripes) {
  Coverage coverage;
  const std::uint32_t blocks = subject_.class_blocks[c];
  std::uint64_t budget = 2 * std::uint64_t{blocks};
  seen_.assign(blocks, 0);
  for (const std::uint32_t s : stripes) {
    const BlockSelection& selection = subject_.plan.stripes[s].blocks;
    const std::uint32_t count = selection.count();
    if (count > budget) {
      coverage.complete = false;
      break;
    }
    budget -= count;
    for (std::uint32_t k = 0; k < count; ++k) {
      char& seen = seen_[selection.at(k)];
      if (seen != 0 && coverage.twice == kNone) {
        coverage.twice = selection.at(k);
        coverage.twice_stripe = s;
      }
      seen = 1;
    }
  }
  const auto first = std::find(seen_.begin(), seen_.end(), 0);
  if (first != seen_.end()) {
    coverage.first_missing = static_cast<std::uint32_t>(first - seen_.begin());
    coverage.missing = static_cast<std::uint32_t>(std::count(first, seen_.end(), 0));
  }
  return coverage;
}

void CoverageChecker::report(std::size_t c, std::size_t receiver, const Coverage& coverage) {
  const BlockClass& block_class = subject_.demand.classes[c];
  const auto pointer = [&] { return fmt::format("/demand/classes/{}/receivers/{}", c, receiver); };
  const WorkerId worker = block_class.receivers[receiver];
  if (coverage.twice != kNone) {
    report_.add(ViolationCode::DuplicateBlock, pointer, [&] {
      return fmt::format("'{}' gets block {} more than once, the second time in stripe {}",
                         subject_.name(worker), block_at(block_class, coverage.twice).value(),
                         coverage.twice_stripe);
    });
  }
  if (subject_.start != nullptr) return report_with_start(c, receiver);
  if (coverage.missing > 0 && coverage.complete) {
    report_.add(ViolationCode::MissingBlock, pointer, [&] {
      return fmt::format(
          "'{}' gets {} of {} blocks of class {} in no stripe, the first is block {}",
          subject_.name(worker), coverage.missing, subject_.class_blocks[c], c,
          block_at(block_class, coverage.first_missing).value());
    });
  }
}

// What a receiver misses beside what it had at the start.
void CoverageChecker::report_with_start(std::size_t c, std::size_t receiver) {
  const BlockClass& block_class = subject_.demand.classes[c];
  const WorkerId worker = block_class.receivers[receiver];
  seen_.assign(subject_.class_blocks[c], 0);
  for (const std::uint32_t s : stripes_of(receiver)) {
    const BlockSelection& selection = subject_.plan.stripes[s].blocks;
    for (std::uint32_t k = 0; k < selection.count(); ++k) seen_[selection.at(k)] = 1;
  }
  std::uint32_t missing = 0;
  BlockId first;
  for (std::uint32_t k = 0; k < seen_.size(); ++k) {
    if (seen_[k] != 0) continue;
    const BlockId block = block_at(block_class, k);
    if (subject_.start->has(worker, block)) continue;
    if (missing++ == 0) first = block;
  }
  if (missing == 0) return;
  report_.add(
      ViolationCode::MissingBlock,
      [&] { return fmt::format("/demand/classes/{}/receivers/{}", c, receiver); },
      [&] {
        return fmt::format(
            "'{}' gets {} of {} blocks of class {} in no stripe and has not got them, the first is "
            "block {}",
            subject_.name(worker), missing, subject_.class_blocks[c], c, first.value());
      });
}

void CoverageChecker::block_class(std::size_t c) {
  gather(c);
  // Lists are compared themselves: a chance or wilful collision of hashes only costs time.
  struct Known {
    std::size_t receiver;
    Coverage coverage;
  };
  std::unordered_map<std::uint64_t, Known> known;
  const std::size_t receivers = subject_.demand.classes[c].receivers.size();
  const Known* last = nullptr;
  for (std::size_t r = 0; r < receivers; ++r) {
    const auto list = stripes_of(r);
    const auto same = [&](std::size_t other) {
      const auto its = stripes_of(other);
      return std::equal(list.begin(), list.end(), its.begin(), its.end());
    };
    if (last == nullptr || !same(last->receiver)) {
      std::uint64_t key = list.size();
      for (const std::uint32_t s : list) key = key * 0x9e3779b97f4a7c15U + s;
      const auto entry = known.find(key);
      if (entry == known.end()) {
        last = &known.emplace(key, Known{r, cover(c, list)}).first->second;
      } else if (same(entry->second.receiver)) {
        last = &entry->second;
      } else {
        report(c, r, cover(c, list));
        continue;
      }
    }
    report(c, r, last->coverage);
  }
}

}  // namespace

void check_coverage(const Subject& subject, Report& report) {
  CoverageChecker(subject, report).run();
}

}  // namespace holdfast::checking
