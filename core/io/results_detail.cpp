#include "core/io/results_detail.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kAllLevels{Level::Host, Level::Rack, Level::Pod, Level::Datacenter};

Json domain_json(const DomainCrossing& crossing) {
  return {{"domain", crossing.domain},
          {"level", to_string(crossing.level)},
          {"replicas", crossing.who},
          {"bytes", crossing.bytes.count()},
          {"minimum", crossing.minimum.count()},
          {"capacity_bytes_per_s", crossing.capacity.bytes_per_second()}};
}

Json domain_or_null(const std::optional<DomainCrossing>& crossing) {
  return crossing ? domain_json(*crossing) : Json(nullptr);
}

// The word that stands here, out of those that `name` gives for `values`.
template <class Values, class Name>
auto one_of(const JsonValue& value, const Values& values, const Name& name) {
  const std::string text = value.text();
  std::string known;
  for (const auto candidate : values) {
    if (text == name(candidate)) return candidate;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", name(candidate));
  }
  value.refuse(ErrorCode::BadValue, fmt::format("'{}' is none of {}", text, known));
}

Level read_level(const JsonValue& value) {
  return one_of(value, kAllLevels, [](Level level) { return to_string(level); });
}

DomainCrossing read_domain(const JsonValue& value) {
  DomainCrossing crossing;
  crossing.domain = value.at("domain").text();
  crossing.level = read_level(value.at("level"));
  crossing.who = value.at("replicas").text();
  crossing.bytes = value.at("bytes").bytes();
  crossing.minimum = value.at("minimum").bytes();
  crossing.capacity = value.at("capacity_bytes_per_s").rate();
  return crossing;
}

std::optional<DomainCrossing> read_domain_or_null(const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  return read_domain(value);
}

LevelCrossing read_crossing(const JsonValue& value) {
  LevelCrossing crossing;
  crossing.level = read_level(value.at("level"));
  crossing.direction = one_of(value.at("direction"), std::array{Direction::In, Direction::Out},
                              [](Direction direction) { return to_string(direction); });
  crossing.domains = value.at("domains").count();
  crossing.bytes = value.at("bytes").bytes();
  crossing.minimum = value.at("minimum").bytes();
  crossing.most = read_domain(value.at("most"));
  return crossing;
}

GroupWait read_wait(const JsonValue& value) {
  constexpr double kLongest = 9.2e6;  // what Time holds
  const auto time = [&](const char* key) {
    return time_from_seconds(value.at(key).number(0, kLongest));
  };
  GroupWait wait;
  wait.group = value.at("group").text();
  wait.role = value.at("role").text();
  wait.replicas = value.at("replicas").count();
  wait.gpus = value.at("gpus").count();
  wait.fastest = time("fastest_s");
  wait.slowest = time("slowest_s");
  wait.least_bound = time("least_bound_s");
  wait.most_bound = time("most_bound_s");
  wait.excess_gpu_s = value.at("excess_gpu_s").number(0, 1e18);
  return wait;
}

// Zero would divide by nothing later.
Rate read_capacity(const JsonValue& value) {
  const Rate rate = value.rate();
  if (rate == Rate(0)) value.refuse(ErrorCode::BadValue, "a capacity is above zero");
  return rate;
}

BusyLink read_link(const JsonValue& value) {
  BusyLink link;
  link.link = value.at("link").text();
  link.kind = value.at("kind").text();
  link.bytes = value.at("bytes").bytes();
  link.capacity = read_capacity(value.at("capacity_bytes_per_s"));
  link.usual = read_capacity(value.at("usual_bytes_per_s"));
  link.streams = value.at("streams").count();
  link.largest_stream = value.at("largest_stream_bytes").bytes();
  const JsonValue cap = value.at("stream_cap_bytes_per_s");
  if (!cap.is_null()) link.stream_cap = read_capacity(cap);
  link.leaves = read_domain_or_null(value.at("leaves"));
  link.enters = read_domain_or_null(value.at("enters"));
  return link;
}

}  // namespace

Json crossing_json(const LevelCrossing& crossing) {
  return {{"level", to_string(crossing.level)},  {"direction", to_string(crossing.direction)},
          {"domains", crossing.domains},         {"bytes", crossing.bytes.count()},
          {"minimum", crossing.minimum.count()}, {"most", domain_json(crossing.most)}};
}

Json link_json(const BusyLink& link) {
  return {{"link", link.link},
          {"kind", link.kind},
          {"bytes", link.bytes.count()},
          {"capacity_bytes_per_s", link.capacity.bytes_per_second()},
          {"usual_bytes_per_s", link.usual.bytes_per_second()},
          {"streams", link.streams},
          {"largest_stream_bytes", link.largest_stream.count()},
          {"stream_cap_bytes_per_s",
           link.stream_cap ? Json(link.stream_cap->bytes_per_second()) : Json(nullptr)},
          {"busy_s", exact_seconds(link.busy())},
          {"leaves", domain_or_null(link.leaves)},
          {"enters", domain_or_null(link.enters)}};
}

Json wait_json(const GroupWait& wait) {
  return {{"group", wait.group},
          {"role", wait.role},
          {"replicas", wait.replicas},
          {"gpus", wait.gpus},
          {"fastest_s", exact_seconds(wait.fastest)},
          {"slowest_s", exact_seconds(wait.slowest)},
          {"least_bound_s", exact_seconds(wait.least_bound)},
          {"most_bound_s", exact_seconds(wait.most_bound)},
          {"excess_gpu_s", wait.excess_gpu_s}};
}

void add_detail(Json& run, const RunDetail& detail) {
  run["depth"] = detail.depth;
  run["crossings"] = Json::array();
  for (const LevelCrossing& crossing : detail.crossings) {
    run["crossings"].push_back(crossing_json(crossing));
  }
  run["busiest_links"] = Json::array();
  for (const BusyLink& link : detail.busiest) {
    run["busiest_links"].push_back(link_json(link));
  }
  run["digest"] = nullptr;
  if (detail.digest) {
    run["digest"] = {{"worker", detail.digest->worker},
                     {"bytes", detail.digest->bytes.count()},
                     {"rate_bytes_per_s", detail.digest->rate.bytes_per_second()},
                     {"busy_s", exact_seconds(detail.digest->busy())}};
  }
  run["group_waits"] = Json::array();
  for (const GroupWait& wait : detail.waits) run["group_waits"].push_back(wait_json(wait));
}

RunDetail read_detail(const JsonValue& run) {
  RunDetail detail;
  detail.depth = run.at("depth").count();
  for (const JsonValue& crossing : run.at("crossings").list()) {
    detail.crossings.push_back(read_crossing(crossing));
  }
  for (const JsonValue& link : run.at("busiest_links").list()) {
    detail.busiest.push_back(read_link(link));
  }
  const JsonValue digest = run.at("digest");
  if (!digest.is_null()) {
    detail.digest = DigestLoad{digest.at("worker").text(), digest.at("bytes").bytes(),
                               read_capacity(digest.at("rate_bytes_per_s"))};
  }
  for (const JsonValue& wait : run.at("group_waits").list()) {
    detail.waits.push_back(read_wait(wait));
  }
  return detail;
}

}  // namespace holdfast
