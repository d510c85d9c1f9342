#include "core/plan/checker.hpp"

#include <fmt/format.h>

#include "core/plan/check_internal.hpp"

namespace holdfast {
namespace checking {

std::vector<Violation> Report::take() {
  if (unlisted_ > 0) {
    list_.push_back({first_unlisted_, "/plan",
                     fmt::format("{} more violations are not listed; the first of them is {}",
                                 unlisted_, to_string(first_unlisted_))});
  }
  return std::move(list_);
}

Subject::Subject(const Plan& the_plan, const Demand& the_demand, const Router& the_router,
                 const Holdings* the_start)
    : plan(the_plan), demand(the_demand), router(the_router), start(the_start) {
  class_blocks.reserve(demand.classes.size());
  for (const BlockClass& c : demand.classes) class_blocks.push_back(block_count(c));
  first_stripe.assign(demand.classes.size() + 1, 0);
  well_formed.assign(plan.stripes.size(), false);
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    const auto& [c, selection, edges] = plan.stripes[s];
    if (c.index() >= demand.classes.size()) continue;
    ++first_stripe[c.index() + 1];
    well_formed[s] = selection.count() > 0 && selection.end <= class_blocks[c.index()];
  }
  for (std::size_t c = 1; c < first_stripe.size(); ++c) first_stripe[c] += first_stripe[c - 1];
  stripes.resize(first_stripe.back());
  std::vector<std::uint32_t> next(first_stripe.begin(), first_stripe.end() - 1);
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    const ClassId c = plan.stripes[s].block_class;
    if (c.index() < demand.classes.size()) {
      stripes[next[c.index()]++] = static_cast<std::uint32_t>(s);
    }
  }
}

const std::string& Subject::name(WorkerId worker) const {
  return router.topology().node(demand.workers[worker.index()].node).name;
}

bool Subject::starts_with(WorkerId worker, const Stripe& stripe) const {
  if (start == nullptr || start->of(worker).empty()) return false;
  const BlockClass& c = demand.classes[stripe.block_class.index()];
  for (std::uint32_t k = 0; k < stripe.blocks.count(); ++k) {
    if (!start->has(worker, block_at(c, stripe.blocks.at(k)))) return false;
  }
  return true;
}

BlockId block_at(const BlockClass& c, std::uint32_t k) {
  for (const BlockSpan& span : c.blocks) {
    if (k < span.count) return BlockId(span.first.value() + k);
    k -= span.count;
  }
  return {};
}

namespace {

std::string text(std::string_view literal) {
  return std::string(literal);
}

void check_head(const Subject& subject, Report& report) {
  const Plan& plan = subject.plan;
  if (plan.format != kPlanFormat) {
    report.add(
        ViolationCode::WrongFormat, [] { return text("/plan/format"); },
        [&] { return fmt::format("format {}; this version reads {}", plan.format, kPlanFormat); });
  }
  const Topology& topology = subject.router.topology();
  if (plan.topology != topology.hash()) {
    report.add(
        ViolationCode::WrongTopology, [] { return text("/plan/topology"); },
        [&] {
          return fmt::format("made for a topology with hash {}; topology '{}' has {}",
                             to_string(plan.topology), topology.name(), to_string(topology.hash()));
        });
  }
  const Hash128 demand = hash_of(subject.demand);
  if (plan.demand != demand) {
    report.add(
        ViolationCode::WrongDemand, [] { return text("/plan/demand"); },
        [&] {
          return fmt::format("made for a demand with hash {}; this demand has {}",
                             to_string(plan.demand), to_string(demand));
        });
  }
}

void check_selections(const Subject& subject, Report& report) {
  for (std::size_t s = 0; s < subject.plan.stripes.size(); ++s) {
    if (subject.well_formed[s]) continue;
    const Stripe& stripe = subject.plan.stripes[s];
    const std::size_t classes = subject.demand.classes.size();
    if (stripe.block_class.index() >= classes) {
      report.add(
          ViolationCode::BadStripe, [&] { return fmt::format("/plan/stripes/{}/class", s); },
          [&] {
            return fmt::format("class {} is not there; the demand has {} classes",
                               stripe.block_class.value(), classes);
          });
      continue;
    }
    report.add(
        ViolationCode::BadStripe, [&] { return fmt::format("/plan/stripes/{}/blocks", s); },
        [&] {
          const auto& [first, step, end] = stripe.blocks;
          return fmt::format(
              "blocks {}, {} + {}, ... below {}: class {} has blocks 0 to {}, the step is at least "
              "1, and a stripe carries at least one block",
              first, first, step, end, stripe.block_class.value(),
              subject.class_blocks[stripe.block_class.index()] - 1);
        });
  }
}

// A receiver stores each block once, so that what it misses is what it must have room for.
void check_memory(const Subject& subject, Report& report) {
  const std::vector<Bytes> missing = missing_bytes(subject.demand);
  for (std::size_t w = 0; w < missing.size(); ++w) {
    const Bytes room = subject.demand.workers[w].memory_free;
    if (missing[w] <= room) continue;
    report.add(
        ViolationCode::OutOfMemory,
        [&] { return fmt::format("/demand/workers/{}/memory_free", w); },
        [&] {
          return fmt::format("'{}' is to receive {} and has {} free", subject.name(WorkerId(w)),
                             to_string(missing[w]), to_string(room));
        });
  }
}

}  // namespace
}  // namespace checking

const char* to_string(ViolationCode code) {
  switch (code) {
    case ViolationCode::WrongFormat:
      return "WrongFormat";
    case ViolationCode::WrongTopology:
      return "WrongTopology";
    case ViolationCode::WrongDemand:
      return "WrongDemand";
    case ViolationCode::BadStripe:
      return "BadStripe";
    case ViolationCode::UnknownWorker:
      return "UnknownWorker";
    case ViolationCode::SelfRead:
      return "SelfRead";
    case ViolationCode::UnwantedBlock:
      return "UnwantedBlock";
    case ViolationCode::NeverHeld:
      return "NeverHeld";
    case ViolationCode::ForbiddenSource:
      return "ForbiddenSource";
    case ViolationCode::MissingBlock:
      return "MissingBlock";
    case ViolationCode::DuplicateBlock:
      return "DuplicateBlock";
    case ViolationCode::NoPath:
      return "NoPath";
    case ViolationCode::WaitCycle:
      return "WaitCycle";
    case ViolationCode::OutOfMemory:
      return "OutOfMemory";
    case ViolationCode::BadWindow:
      return "BadWindow";
    case ViolationCode::BadAlternate:
      return "BadAlternate";
    case ViolationCode::NotExecutable:
      return "NotExecutable";
    case ViolationCode::BadDelta:
      return "BadDelta";
    case ViolationCode::NotYetThere:
      return "NotYetThere";
  }
  return "Unknown";
}

std::vector<Violation> check(const Plan& plan, const Demand& demand, const Router& router,
                             const CheckOptions& options) {
  const checking::Subject subject(plan, demand, router, options.start);
  checking::Report report(options.most);
  checking::check_head(subject, report);
  checking::check_selections(subject, report);
  checking::check_memory(subject, report);
  checking::check_edges(subject, report);
  checking::check_coverage(subject, report);
  checking::check_execution(subject, options.execute_below, report);
  return report.take();
}

}  // namespace holdfast
