// A scenario: what to run on which machine with which model. This is its text as a value; names are
// not yet looked up in a topology (scenario_update.hpp does that), and no file is opened here.
//
// Every name keeps its place in the text, so that what is wrong with it later is reported there.
//
//   Scenario scenario = parse_scenario(text, "quickstart.yaml");
//   scenario.groups[scenario.holders[0].group].name.text;  // "trainer"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/catalog/calls.hpp"
#include "core/error.hpp"
#include "core/io/name_pattern.hpp"
#include "core/io/other_traffic.hpp"
#include "core/io/scenario_baselines.hpp"
#include "core/io/scenario_faults.hpp"
#include "core/io/scenario_protocol.hpp"
#include "core/io/scenario_words.hpp"
#include "core/io/scenario_workload.hpp"
#include "core/plan/planner.hpp"
#include "core/units.hpp"
#include "core/weights/layout_grid.hpp"

namespace holdfast {

inline constexpr std::uint64_t kScenarioFormat = 1;
inline constexpr std::uint64_t kMostScenarioBytes = 64'000'000;

enum class ModelSource { Preset, Safetensors };

struct ScenarioModel {
  ModelSource source = ModelSource::Preset;
  Word value;  // the preset's name, or a path relative to the scenario's file
};

struct ScenarioLayout {
  Word name;
  Layout layout;
  std::vector<std::pair<LayoutKey, Place>> places;  // of the keys that are there
  // Of the key, or of the name where it is not there.
  [[nodiscard]] const Place& place_of(LayoutKey key) const;
};

enum class PlacedOn { Gpus, HostMemory };

// Which endpoints a group lives on. Each pattern names nodes, or domains of any level that stand
// for their endpoints of that kind.
struct GroupPlacement {
  PlacedOn on = PlacedOn::Gpus;
  bool by_node = false;  // `gpus`: the patterns name GPUs; otherwise domains (or host memories)
  std::vector<NamePattern> patterns;
  std::vector<Place> pattern_places;  // of each
  Place place;
};

enum class Role { Trainer, Rollout };
enum class Reliability { Reliable, Spot };

struct ScenarioGroup {
  Word name;
  GroupPlacement placement;
  std::size_t layout = 0;  // index into Scenario::layouts
  std::optional<Role> role;
  Reliability reliability = Reliability::Reliable;
  std::optional<std::uint32_t> replicas;  // nothing: as many as the placement gives
  Place replicas_place;
};

// A share of what a shard holds, in blocks, counted from its first or its last block.
struct HeldPart {
  bool from_end = false;
  std::uint32_t parts_per_million = 1'000'000;
};

struct ScenarioHolder {
  std::size_t group = 0;
  Place place;
  std::vector<std::uint32_t> replicas;  // ascending; empty: all of the group
  Place replicas_place;
  std::optional<HeldPart> part;
};

struct ScenarioReceiver {
  std::size_t group = 0;
  Place place;
};

struct ScenarioUpdate {
  std::vector<ScenarioReceiver> receivers;
  Destination destination = Destination::InPlace;
  Place place;
};

struct ScenarioOptions {
  std::optional<Bytes> block_size;
  std::uint32_t blocks_per_eighth = 256;  // where block_size is not given
  bool serve_from_spot = true;            // whether spot workers may be read from
  Objective objective = Objective::Makespan;
  // Readers that a source may have at a time, with policy `greedy`; nothing: as many as come.
  std::optional<std::uint32_t> reader_cap;
  std::uint32_t jitter = 0;              // of block times in simulation, in millionths
  Place block_place;                     // of whichever was given, else of the scenario
  std::optional<Place> serve_place;      // where serve_from_spot was given
  std::optional<Place> objective_place;  // where objective was
  std::optional<Place> cap_place;        // where reader_cap was
};

struct Scenario {
  std::string file;
  std::string name;
  std::string teaches;
  Word topology;  // a path relative to the scenario's file
  ScenarioModel model;
  std::vector<ScenarioLayout> layouts;
  std::vector<ScenarioGroup> groups;
  std::vector<ScenarioHolder> holders;
  Place holders_place;
  ScenarioUpdate update;  // with a workload: all trainers to all rollouts and staging groups
  std::optional<ScenarioWorkload> workload;
  std::vector<ScenarioFault> faults;
  ScenarioProtocol protocol;
  ScenarioBaselines baselines;
  std::vector<OtherTraffic> other_traffic;
  std::vector<Policy> policies;  // `auto` where none is given
  ScenarioOptions options;
  bool verify = true;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;  // keys without effect whatever the policies, with places
};

// Throws Error with file, line and column: BadSyntax, UnknownKey, MissingKey, BadValue, BadUnit,
// UnknownName (a group or layout that is not there), Duplicate, NoEffect, LimitExceeded, and
// Unsupported for keys that a later version will read. Exactly one of `update` (with `holders`) and
// `workload` is there. O(length of the text). `file` is only used in places.
[[nodiscard]] Scenario parse_scenario(std::string_view text, const std::string& file);

// Warnings, with their places, of options that none of these policies looks at: the scenario's own
// or those that replace them. O(policies).
[[nodiscard]] std::vector<std::string> idle_options(const Scenario& scenario,
                                                    const std::vector<Policy>& policies);

// Whether it has a workload, faults or retention, so that it takes the protocol to run it.
[[nodiscard]] bool is_more_than_an_update(const Scenario& scenario);
// Throws Error(Unsupported) at the first of `workload`, `faults` and `retain`: for what is about
// one update without failures.
void refuse_more_than_an_update(const Scenario& scenario);

// Whether a run of it draws random numbers, so that a seed changes something.
[[nodiscard]] bool draws(const Scenario& scenario);

[[nodiscard]] const char* to_string(Role role);
[[nodiscard]] const char* to_string(Destination destination);

// "star,chain", "all": what `policy` in a scenario and --policy on the command line accept, here as
// single names; `all` is all but the baselines. Throws Error(UnknownName) at `place`. No policy
// comes twice.
[[nodiscard]] std::vector<Policy> policies_of(const std::vector<Word>& names);

}  // namespace holdfast
