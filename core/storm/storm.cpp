#include "core/storm/storm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "core/storm/cluster.hpp"
#include "core/storm/story.hpp"

namespace holdfast::storm {
namespace {

// A run that does not end is no use to anybody.
constexpr std::uint64_t kMostSteps = 3'000'000;

using Numbers = std::vector<std::uint32_t>;

Numbers all_of(std::size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

class Shrinker {
 public:
  Shrinker(const Outcome& failed, const Runner& runner, const std::function<bool()>& going)
      : best_(failed), runner_(runner), going_(going) {}

  Outcome run() {
    const World world = make_world(best_.recipe.seed);
    const Script script = make_script(world);
    Recipe& recipe = best_.recipe;
    if (!recipe.tasks) recipe.tasks = all_of(script.tasks.size());
    if (!recipe.faults) recipe.faults = all_of(script.faults.size());
    if (!recipe.groups) recipe.groups = all_of(world.groups.size());
    // What comes late matters least: cut it off first.
    bool smaller = true;
    while (smaller && may_go_on()) {
      smaller = reduce(&Recipe::faults);
      smaller = reduce(&Recipe::tasks) || smaller;
      smaller = reduce(&Recipe::groups) || smaller;
    }
    return best_;
  }

 private:
  [[nodiscard]] bool may_go_on() const { return !going_ || going_(); }

  // Drops runs of numbers, long ones first, as long as it still fails alike.
  bool reduce(std::optional<Numbers> Recipe::*list) {
    bool smaller = false;
    for (std::size_t size = (best_.recipe.*list)->size(); size > 0; size /= 2) {
      for (std::size_t end = (best_.recipe.*list)->size(); end > 0;) {
        if (!may_go_on()) return smaller;
        const std::size_t first = end > size ? end - size : 0;
        Recipe without = best_.recipe;
        Numbers& numbers = *(without.*list);
        numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(first),
                      numbers.begin() + static_cast<std::ptrdiff_t>(end));
        Outcome outcome = runner_(without);
        if (outcome.violation && outcome.violation->rule == best_.violation->rule) {
          best_ = std::move(outcome);
          smaller = true;
        }
        end = first;
      }
    }
    return smaller;
  }

  Outcome best_;
  const Runner& runner_;
  const std::function<bool()>& going_;
};

void run(Cluster& cluster, const Oracle& oracle, Outcome& outcome) {
  try {
    cluster.run([&] { return oracle.violation().has_value() || cluster.steps() > kMostSteps; });
    outcome.violation = oracle.violation();
  } catch (const std::exception& error) {
    outcome.violation = Violation{"exception", error.what(), cluster.now()};
  }
  if (outcome.violation) return;
  if (cluster.stuck()) {
    outcome.violation = Violation{"livelock", "time stands still", cluster.now()};
  } else if (cluster.steps() > kMostSteps) {
    outcome.violation =
        Violation{"endless", fmt::format("{} steps and no end", kMostSteps), cluster.now()};
  }
}

}  // namespace

Outcome storm(const Recipe& recipe, std::vector<std::string>* story, const Venue& venue) {
  const World world = make_world(recipe.seed);
  const Script script = make_script(world);
  Oracle oracle(world);
  Coverage coverage(world);
  Story teller;
  std::vector<Watcher*> watchers{&oracle, &coverage};
  if (story != nullptr) watchers.insert(watchers.begin(), &teller);
  Outcome outcome;
  outcome.recipe = recipe;
  outcome.workers = static_cast<std::uint32_t>(world.cards.size());
  venue(world, [&](DataNetwork& network) {
    Cluster cluster(world, script, recipe, network, watchers);
    run(cluster, oracle, outcome);
    outcome.trace = cluster.trace();
    outcome.steps = cluster.steps();
    outcome.ended = cluster.now();
  });
  outcome.calls = oracle.calls_ended();
  outcome.calls_ok = oracle.calls_ok();
  outcome.cells = coverage.cells();
  if (story != nullptr) {
    const auto lines = describe(world);
    story->insert(story->end(), lines.begin(), lines.end());
    story->insert(story->end(), teller.lines().begin(), teller.lines().end());
  }
  return outcome;
}

Outcome shrink(const Outcome& failed, const Runner& run, const std::function<bool()>& going) {
  return Shrinker(failed, run, going).run();
}

}  // namespace holdfast::storm
