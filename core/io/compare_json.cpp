#include <nlohmann/json.hpp>

#include "core/io/compare.hpp"
#include "core/io/program_version.hpp"
#include "core/io/results_detail.hpp"

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json bytes_json(const PayloadBytes& bytes) {
  return {{"gpu", bytes.gpu.count()}, {"nic", bytes.nic.count()}, {"wan", bytes.wan.count()}};
}

Json folder_json(const Results& results) {
  return {{"folder", results.folder},
          {"scenario", results.scenario},
          {"topology", results.topology},
          {"model", results.model},
          {"inputs",
           {{"scenario", to_string(results.inputs.scenario)},
            {"topology", to_string(results.inputs.topology)},
            {"manifest", to_string(results.inputs.manifest)},
            {"demand", to_string(results.inputs.demand)}}}};
}

Json run_json(const Comparison& comparison, const ComparedRun& compared) {
  const RunFigures& run = comparison.figures(compared);
  Json json;
  json["label"] = compared.label;
  json["folder"] = compared.folder;
  json["policy"] = run.policy;
  json["planner"] = run.planner;
  json["seed"] = run.seed;
  json["objective"] = run.objective;
  json["jitter"] = run.jitter;
  json["makespan_s"] = run.makespan ? Json(exact_seconds(*run.makespan)) : Json(nullptr);
  json["bound_s"] = exact_seconds(run.bound);
  json["bound_fraction"] = or_null(run.bound_fraction());
  json["stall_fraction"] = or_null(run.stall_fraction);
  json["predicted_s"] = run.predicted ? Json(exact_seconds(*run.predicted)) : Json(nullptr);
  json["bytes_moved"] = bytes_json(run.moved);
  json["bytes_minimum"] = bytes_json(run.minimum);
  json["depth"] = run.detail.depth;
  json["headline"] = compared.headline;
  json["limits"] = Json::array();
  for (const Limit& limit : compared.limits) {
    json["limits"].push_back({{"kind", to_string(limit.kind)},
                              {"time_s", exact_seconds(limit.time)},
                              {"share", limit.share},
                              {"text", limit.text}});
  }
  json["stall"] = or_null(compared.stall);
  json["crossings"] = Json::array();
  for (const LevelCrossing& crossing : run.detail.crossings) {
    json["crossings"].push_back(crossing_json(crossing));
  }
  json["busiest_links"] = Json::array();
  for (const BusyLink& link : run.detail.busiest) {
    json["busiest_links"].push_back(link_json(link));
  }
  json["group_waits"] = Json::array();
  for (const GroupWait& wait : run.detail.waits) json["group_waits"].push_back(wait_json(wait));
  return json;
}

Json paper_json(const PaperSurface& surface) {
  Json points = Json::array();
  for (const PaperPoint& point : surface.points) {
    points.push_back(
        {{"folder", point.folder}, {"values", point.values}, {"ratio", or_null(point.ratio)}});
  }
  return {{"scenario", surface.scenario},   {"what", surface.what}, {"baseline", surface.baseline},
          {"published", surface.published}, {"axes", surface.axes}, {"points", std::move(points)},
          {"place", surface.place}};
}

}  // namespace

Json compare_json(const Comparison& comparison) {
  Json json;
  json["format"] = kCompareFormat;
  json["program"] = {{"name", "holdfast"}, {"version", kProgramVersion}};
  json["warnings"] = comparison.warnings;
  json["folders"] = Json::array();
  for (const Results& results : comparison.folders) {
    json["folders"].push_back(folder_json(results));
  }
  json["runs"] = Json::array();
  for (const ComparedRun& run : comparison.runs) {
    json["runs"].push_back(run_json(comparison, run));
  }
  json["links"] = Json::array();
  for (const ComparedLink& link : comparison.links) {
    Json used = Json::array();
    for (const auto& share : link.used) used.push_back(or_null(share));
    json["links"].push_back({{"link", link.link}, {"used", std::move(used)}});
  }
  json["paper"] = Json::array();
  for (const PaperSurface& surface : comparison.paper) json["paper"].push_back(paper_json(surface));
  return json;
}

}  // namespace holdfast
