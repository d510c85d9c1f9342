#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/io/json_shape.hpp"
#include "core/io/plan_json.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kFileFormat = 1;
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 24;
constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();

// Describes the file and collects what it says: each row and object is read into a variable of its
// own and added at its end.
class PlanReader {
 public:
  PlanFile read(std::string_view text, const std::string& name) && {
    read_json(text, name, file_shape());
    return std::move(file_);
  }

 private:
  template <class IdType>
  static JsonShape id(IdType& target) {
    return JsonShape::number(
        [&target](std::uint64_t value) { target = IdType(static_cast<std::uint32_t>(value)); }, 0,
        kMost32);
  }
  static JsonShape bytes(Bytes& target) {
    return JsonShape::number([&target](std::uint64_t value) { target = Bytes(value); }, 0,
                             std::numeric_limits<std::uint64_t>::max());
  }
  static JsonShape hash(Hash128& target) {
    return JsonShape::text([&target](std::string_view text) {
      const Parsed<Hash128> parsed = parse_hash(text);
      if (!parsed) throw Error(ErrorCode::BadValue, parsed.error());
      target = *parsed;
    });
  }
  static JsonShape string(std::string& target) {
    return JsonShape::text([&target](std::string_view text) { target = text; });
  }
  JsonShape ids(std::vector<WorkerId>& target) {
    return JsonShape::list(JsonShape::number(
                               [&target](std::uint64_t value) {
                                 target.emplace_back(static_cast<std::uint32_t>(value));
                               },
                               0, kMost32),
                           [&target] { target.clear(); });
  }

  JsonShape file_shape();
  JsonShape plan_shape();
  JsonShape stripe_shape();
  JsonShape edge_shape();
  JsonShape demand_shape();
  JsonShape block_bytes_shape();
  JsonShape worker_shape();
  JsonShape class_shape();

  PlanFile file_;
  // What is being read.
  Stripe stripe_;
  Edge edge_;
  DemandWorker worker_;
  std::string node_name_;
  BlockClass class_;
  BlockSpan span_;
  Bytes run_bytes_;
  std::uint32_t run_count_ = 0;
};

JsonShape PlanReader::file_shape() {
  const auto check_format = [](std::uint64_t format) {
    if (format == kFileFormat) return;
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("a plan file of format {}; this version reads format {}", format, kFileFormat));
  };
  return JsonShape::object({{"format", JsonShape::number(check_format, 0, kMost32)},
                            {"plan", plan_shape()},
                            {"demand", demand_shape()}});
}

JsonShape PlanReader::plan_shape() {
  Plan& plan = file_.plan;
  return JsonShape::object({{"format", JsonShape::number(plan.format)},
                            {"topology", hash(plan.topology)},
                            {"demand", hash(plan.demand)},
                            {"stripes", JsonShape::list(stripe_shape())}});
}

JsonShape PlanReader::stripe_shape() {
  BlockSelection& blocks = stripe_.blocks;
  return JsonShape::object(
      {{"class", id(stripe_.block_class)},
       {"blocks", JsonShape::object({{"first", JsonShape::number(blocks.first)},
                                     {"step", JsonShape::number(blocks.step)},
                                     {"end", JsonShape::number(blocks.end)}})},
       {"edges", JsonShape::list(edge_shape(), [this] { stripe_.edges.clear(); })}},
      [this] { file_.plan.stripes.push_back(stripe_); });
}

JsonShape PlanReader::edge_shape() {
  const auto alternate = [this](std::optional<std::uint64_t> value) {
    edge_.alternate = value ? WorkerId(static_cast<std::uint32_t>(*value)) : WorkerId();
  };
  return JsonShape::tuple({{"child", id(edge_.child)},
                           {"parent", id(edge_.parent)},
                           {"alternate", JsonShape::number_or_null(alternate, 0, kMost32 - 1)},
                           {"source_port", id(edge_.path.source_port)},
                           {"destination_port", id(edge_.path.destination_port)},
                           {"stream", JsonShape::number(edge_.path.stream)},
                           {"window", JsonShape::number(edge_.window)}},
                          [this] { stripe_.edges.push_back(edge_); });
}

JsonShape PlanReader::demand_shape() {
  Demand& demand = file_.demand;
  return JsonShape::object(
      {{"model", string(demand.model)},
       {"version", JsonShape::object({{"lineage", JsonShape::number(demand.version.lineage)},
                                      {"number", JsonShape::number(demand.version.number)}})},
       {"block_size", bytes(demand.block_size)},
       {"verify", JsonShape::boolean(demand.verify)},
       {"block_bytes", block_bytes_shape()},
       {"workers", JsonShape::list(worker_shape())},
       {"classes", JsonShape::list(class_shape())}});
}

// A few characters may stand for billions of blocks: the limit comes before the memory.
JsonShape PlanReader::block_bytes_shape() {
  const auto expand = [this] {
    std::vector<Bytes>& sizes = file_.demand.block_bytes;
    if (run_count_ > kMostBlocks - sizes.size()) {
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("more than {} blocks, the limit; choose larger blocks", kMostBlocks));
    }
    sizes.insert(sizes.end(), run_count_, run_bytes_);
  };
  const auto count = [this](std::uint64_t value) {
    run_count_ = static_cast<std::uint32_t>(value);
  };
  return JsonShape::list(JsonShape::tuple(
      {{"bytes", bytes(run_bytes_)}, {"count", JsonShape::number(count, 1, kMost32)}}, expand));
}

JsonShape PlanReader::worker_shape() {
  return JsonShape::object({{"node", id(worker_.node)},
                            {"name", string(node_name_)},
                            {"group", JsonShape::number(worker_.group)},
                            {"memory_free", bytes(worker_.memory_free)},
                            {"may_serve", JsonShape::boolean(worker_.may_serve)}},
                           [this] {
                             file_.demand.workers.push_back(worker_);
                             file_.node_names.push_back(node_name_);
                           });
}

JsonShape PlanReader::class_shape() {
  return JsonShape::object(
      {{"blocks", JsonShape::list(JsonShape::tuple({{"first", id(span_.first)},
                                                    {"count", JsonShape::number(span_.count)}},
                                                   [this] { class_.blocks.push_back(span_); }),
                                  [this] { class_.blocks.clear(); })},
       {"holders", ids(class_.holders)},
       {"receivers", ids(class_.receivers)}},
      [this] { file_.demand.classes.push_back(class_); });
}

}  // namespace

PlanFile parse_plan(std::string_view text, const std::string& name) {
  if (text.size() > kPlanFileMost) {
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a plan file of {} bytes; the limit is {}", text.size(), kPlanFileMost),
                Place{name, 0, 0, {}, {}});
  }
  return PlanReader().read(text, name);
}

}  // namespace holdfast
