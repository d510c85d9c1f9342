#include "core/io/scenario_protocol.hpp"

#include <fmt/format.h>

#include "core/io/scenario_detail.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMostCopies = 1'000;
constexpr std::int64_t kMostVersions = 10'000;
// A worker that misses one heartbeat is not dead.
constexpr std::int64_t kLeastHeartbeats = 2;

void read_time(YamlMap& map, const char* key, Zero zero, Time& into) {
  if (const auto value = map.find(key)) into = value->time(zero);
}

void read_detection(const YamlValue& value, ScenarioProtocol& protocol) {
  YamlMap map = value.map();
  read_time(map, "worker", Zero::Refused, protocol.detection.worker);
  read_time(map, "link", Zero::Refused, protocol.detection.link);
  read_time(map, "coordinator", Zero::Refused, protocol.detection.coordinator);
  map.finish();
}

void read_deadlines(const YamlValue& value, CallDeadlines& deadlines) {
  YamlMap map = value.map();
  read_time(map, "publish", Zero::Refused, deadlines.publish);
  read_time(map, "unpublish", Zero::Refused, deadlines.unpublish);
  read_time(map, "fetch", Zero::Refused, deadlines.fetch);
  read_time(map, "retain", Zero::Refused, deadlines.retain);
  map.finish();
}

// Detection by missed heartbeats cannot be faster than they come.
void check_heartbeat(const ScenarioProtocol& protocol, const Place& place) {
  for (const auto& [time, what] : {std::pair{protocol.detection.worker, "worker"},
                                   std::pair{protocol.detection.coordinator, "coordinator"}}) {
    if (time < protocol.heartbeat * kLeastHeartbeats) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("a {} is found dead after {}, less than two heartbeats of {}; write "
                              "a shorter 'heartbeat' or a longer 'detection: {{{}: ...}}'",
                              what, to_string(time), to_string(protocol.heartbeat), what),
                  place);
    }
  }
}

}  // namespace

const char* to_string(OnDeadline what) {
  return what == OnDeadline::Fail ? "fail" : "revoke";
}

const char* to_string(OnNewer what) {
  return what == OnNewer::Finish ? "finish" : "restart";
}

namespace scenario_detail {

ScenarioRetain read_retain(const YamlValue& value) {
  ScenarioRetain retain;
  retain.place = value.place();
  YamlMap map = value.map();
  retain.copies = static_cast<std::uint32_t>(map.require("copies").integer(1, kMostCopies));
  if (const auto level = map.find("level")) {
    retain.level = level->one_of<Level>({{to_string(Level::Host), Level::Host},
                                         {to_string(Level::Rack), Level::Rack},
                                         {to_string(Level::Pod), Level::Pod},
                                         {to_string(Level::Datacenter), Level::Datacenter}});
  }
  if (const auto versions = map.find("versions")) {
    retain.versions = static_cast<std::uint32_t>(versions->integer(1, kMostVersions));
  }
  map.finish();
  return retain;
}

ScenarioProtocol read_protocol(YamlMap& options) {
  ScenarioProtocol protocol;
  const auto note = [&](const char* key) {
    const auto value = options.find(key);
    if (value) protocol.written.emplace_back(key, value->place());
    return value;
  };
  if (note("planning_time"))
    read_time(options, "planning_time", Zero::Allowed, protocol.planning_time);
  if (note("gather")) read_time(options, "gather", Zero::Allowed, protocol.gather);
  const auto heartbeat = note("heartbeat");
  if (heartbeat) protocol.heartbeat = heartbeat->time(Zero::Refused);
  const auto detection = note("detection");
  if (detection) read_detection(*detection, protocol);
  if (heartbeat || detection) {
    check_heartbeat(protocol, heartbeat ? heartbeat->place() : detection->place());
  }
  if (const auto budget = note("host_memory_budget")) {
    protocol.host_memory_budget = budget->bytes(Zero::Allowed);
  }
  if (const auto deadlines = note("deadlines")) read_deadlines(*deadlines, protocol.deadlines);
  if (const auto what = note("on_deadline")) {
    protocol.on_deadline =
        what->one_of<OnDeadline>({{to_string(OnDeadline::Fail), OnDeadline::Fail},
                                  {to_string(OnDeadline::Revoke), OnDeadline::Revoke}});
  }
  if (const auto what = note("on_newer")) {
    protocol.on_newer = what->one_of<OnNewer>({{to_string(OnNewer::Finish), OnNewer::Finish},
                                               {to_string(OnNewer::Restart), OnNewer::Restart}});
  }
  return protocol;
}

}  // namespace scenario_detail
}  // namespace holdfast
