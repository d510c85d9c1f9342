#include "sim/storm_run.hpp"

#include "core/error.hpp"
#include "sim/byte_codec.hpp"
#include "sim/child_process.hpp"

namespace holdfast::sim {
namespace {

using CellMap = std::map<std::pair<std::string, std::string>, std::uint64_t>;

constexpr int kSilenceMs = 10 * 60 * 1000;

void write(ByteWriter& out, const CellMap& cells) {
  out.number(cells.size());
  for (const auto& [cell, count] : cells) {
    out.text(cell.first);
    out.text(cell.second);
    out.number(count);
  }
}

CellMap read_cells(ByteReader& in) {
  CellMap cells;
  for (std::size_t left = in.count(); left > 0; --left) {
    std::string state = in.text();
    std::string event = in.text();
    cells[{std::move(state), std::move(event)}] = in.number();
  }
  return cells;
}

// All but the recipe.
std::vector<std::byte> encode(const storm::Outcome& outcome,
                              const std::vector<std::string>& story) {
  ByteWriter out;
  out.number(outcome.violation ? 1 : 0);
  if (outcome.violation) {
    out.text(outcome.violation->rule);
    out.text(outcome.violation->text);
    out.time(outcome.violation->at);
  }
  out.number(outcome.trace);
  out.number(outcome.steps);
  out.time(outcome.ended);
  out.number(outcome.workers);
  out.number(outcome.calls);
  out.number(outcome.calls_ok);
  write(out, outcome.cells.coordinator);
  write(out, outcome.cells.agent);
  out.number(story.size());
  for (const std::string& line : story) out.text(line);
  return std::move(out.bytes);
}

storm::Outcome decode(std::span<const std::byte> bytes, std::vector<std::string>* story) {
  ByteReader in(bytes);
  storm::Outcome outcome;
  if (in.number() != 0) {
    storm::Violation& violation = outcome.violation.emplace();
    violation.rule = in.text();
    violation.text = in.text();
    violation.at = in.time();
  }
  outcome.trace = in.number();
  outcome.steps = in.number();
  outcome.ended = in.time();
  outcome.workers = in.id();
  outcome.calls = in.id();
  outcome.calls_ok = in.id();
  outcome.cells.coordinator = read_cells(in);
  outcome.cells.agent = read_cells(in);
  for (std::size_t left = in.count(); left > 0; --left) {
    std::string line = in.text();
    if (story != nullptr) story->push_back(std::move(line));
  }
  in.end();
  return outcome;
}

}  // namespace

storm::Outcome storm_in_a_child(const storm::Recipe& recipe, std::vector<std::string>* story,
                                const storm::Venue& venue) {
  ChildProcess child([&](ChildProcess::Channel& out) {
    std::vector<std::string> lines{"blocks and words between workers go over SimGrid"};
    const storm::Outcome outcome = storm::storm(recipe, story != nullptr ? &lines : nullptr, venue);
    out.send(0, encode(outcome, lines));
  });
  storm::Outcome outcome;
  if (const auto frame = child.next(kSilenceMs)) {
    outcome = decode(frame->payload, story);
  } else {
    outcome.violation = storm::Violation{"crash", child.how_it_ended(), Time{}};
  }
  outcome.recipe = recipe;
  return outcome;
}

storm::Outcome storm_on_its_wire(const storm::Recipe& recipe, std::vector<std::string>* story) {
  return storm::wire_of(recipe) == storm::Wire::SimGrid ? storm_in_a_child(recipe, story)
                                                        : storm::storm(recipe, story);
}

}  // namespace holdfast::sim
