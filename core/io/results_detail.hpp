// RunDetail as JSON, both ways.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/io/json_document.hpp"
#include "core/io/run_detail.hpp"

namespace holdfast {

// Adds `depth`, `crossings`, `busiest_links`, `digest` and `group_waits` to a run's entry of
// summary.json.
void add_detail(nlohmann::ordered_json& run, const RunDetail& detail);

// Reads what add_detail wrote. Throws Error with the pointer of what is missing or wrong.
[[nodiscard]] RunDetail read_detail(const JsonValue& run);

// A level's crossings, a link and a group's wait, as they stand in summary.json.
[[nodiscard]] nlohmann::ordered_json crossing_json(const LevelCrossing& crossing);
[[nodiscard]] nlohmann::ordered_json link_json(const BusyLink& link);
[[nodiscard]] nlohmann::ordered_json wait_json(const GroupWait& wait);

}  // namespace holdfast
