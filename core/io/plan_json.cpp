#include "core/io/plan_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/io/atomic_file.hpp"
#include "core/io/text_file.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kFileFormat = 1;

class PlanWriter {
 public:
  explicit PlanWriter(const PlanFile& file) : file_(file) {}

  std::string write() && {
    add("{{\"format\": {},\n", kFileFormat);
    plan(file_.plan);
    demand(file_.demand);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void plan(const Plan& plan);
  void stripe(const Stripe& stripe);
  void demand(const Demand& demand);
  void block_bytes(const std::vector<Bytes>& sizes);
  void worker(std::size_t w);
  void block_class(const BlockClass& c);

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  // Between the elements of a list; looks at the size while at it.
  void separate(std::size_t index, const char* separator) {
    if (index > 0) out_ += separator;
    if (out_.size() > kPlanFileMost) {
      throw Error(
          ErrorCode::LimitExceeded,
          fmt::format("the plan file would be larger than {} bytes, the limit; choose larger "
                      "blocks or fewer stripes",
                      kPlanFileMost));
    }
  }
  void text(const std::string& text) {
    try {
      out_ += nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      throw Error(ErrorCode::BadValue, fmt::format("the name {} is not UTF-8", quote(text)));
    }
  }
  void ids(const std::vector<WorkerId>& list) {
    out_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      separate(i, ",");
      add("{}", list[i].value());
    }
    out_ += ']';
  }

  const PlanFile& file_;
  std::string out_;
};

void PlanWriter::plan(const Plan& plan) {
  add(" \"plan\": {{\"format\": {},\n  \"topology\": \"{}\",\n  \"demand\": \"{}\",\n", plan.format,
      to_string(plan.topology), to_string(plan.demand));
  out_ += "  \"stripes\": [";
  for (std::size_t s = 0; s < plan.stripes.size(); ++s) {
    separate(s, ",");
    stripe(plan.stripes[s]);
  }
  out_ += "]},\n";
}

void PlanWriter::stripe(const Stripe& stripe) {
  const auto& [first, step, end] = stripe.blocks;
  add("\n   {{\"class\": {}, \"blocks\": {{\"first\": {}, \"step\": {}, \"end\": {}}},\n",
      stripe.block_class.value(), first, step, end);
  out_ += "    \"edges\": [";
  for (std::size_t e = 0; e < stripe.edges.size(); ++e) {
    const auto& [child, parent, alternate, path, window] = stripe.edges[e];
    separate(e, ",");
    add("\n     [{},{},", child.value(), parent.value());
    if (alternate.valid()) {
      add("{}", alternate.value());
    } else {
      out_ += "null";
    }
    add(",{},{},{},{}]", path.source_port.value(), path.destination_port.value(), path.stream,
        window);
  }
  out_ += "]}";
}

void PlanWriter::demand(const Demand& demand) {
  out_ += " \"demand\": {\"model\": ";
  text(demand.model);
  add(",\n  \"version\": {{\"lineage\": {}, \"number\": {}}},\n  \"block_size\": {},\n"
      "  \"verify\": {},\n",
      demand.version.lineage, demand.version.number, demand.block_size.count(), demand.verify);
  block_bytes(demand.block_bytes);
  out_ += "  \"workers\": [";
  for (std::size_t w = 0; w < demand.workers.size(); ++w) {
    separate(w, ",");
    worker(w);
  }
  out_ += "],\n  \"classes\": [";
  for (std::size_t c = 0; c < demand.classes.size(); ++c) {
    separate(c, ",");
    block_class(demand.classes[c]);
  }
  out_ += "]}";
}

void PlanWriter::block_bytes(const std::vector<Bytes>& sizes) {
  out_ += "  \"block_bytes\": [";
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i + 1;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    separate(i, ",");
    add("[{},{}]", sizes[i].count(), end - i);
    i = end;
  }
  out_ += "],\n";
}

void PlanWriter::worker(std::size_t w) {
  const DemandWorker& it = file_.demand.workers[w];
  add("\n   {{\"node\": {}, \"name\": ", it.node.value());
  text(file_.node_names[w]);
  add(", \"group\": {}, \"memory_free\": {}, \"may_serve\": {}}}", it.group, it.memory_free.count(),
      it.may_serve);
}

void PlanWriter::block_class(const BlockClass& c) {
  out_ += "\n   {\"blocks\": [";
  for (std::size_t i = 0; i < c.blocks.size(); ++i) {
    separate(i, ",");
    add("[{},{}]", c.blocks[i].first.value(), c.blocks[i].count);
  }
  out_ += "],\n    \"holders\": ";
  ids(c.holders);
  out_ += ",\n    \"receivers\": ";
  ids(c.receivers);
  out_ += '}';
}

}  // namespace

PlanFile make_plan_file(Plan plan, Demand demand, const Topology& topology) {
  PlanFile file{std::move(plan), std::move(demand), {}};
  file.node_names.reserve(file.demand.workers.size());
  for (const DemandWorker& worker : file.demand.workers) {
    file.node_names.push_back(topology.node(worker.node).name);
  }
  return file;
}

std::string to_json(const PlanFile& file) {
  if (file.node_names.size() != file.demand.workers.size()) {
    throw Error(ErrorCode::BadValue,
                fmt::format("{} node names for {} workers; make_plan_file adds one for each",
                            file.node_names.size(), file.demand.workers.size()));
  }
  return PlanWriter(file).write();
}

void validate(const PlanFile& file, const Topology& topology) {
  validate(file.demand, topology);
  for (std::size_t w = 0; w < file.node_names.size(); ++w) {
    const NodeId node = file.demand.workers[w].node;
    const std::string& name = topology.node(node).name;
    if (name == file.node_names[w]) continue;
    Place place;
    place.pointer = fmt::format("/demand/workers/{}/name", w);
    throw Error(
        ErrorCode::UnknownName,
        fmt::format("node {} is {} here and {} in topology {}; use the topology that the "
                    "plan was made for",
                    node.value(), quote(file.node_names[w]), quote(name), quote(topology.name())),
        std::move(place));
  }
}

PlanFile read_plan(const std::string& path) {
  return parse_plan(read_text_file(path, kPlanFileMost), path);
}

void write_plan(const std::string& path, const PlanFile& file) {
  replace_file(path, to_json(file));
}

}  // namespace holdfast
