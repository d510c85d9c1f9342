// events.jsonl, links.csv and trace.json, written as streams: they grow with workers and blocks.
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/io/exact_decimal.hpp"
#include "core/io/printable.hpp"
#include "core/io/results.hpp"

namespace holdfast {
namespace {

// With its quotes; names that are not UTF-8 are escaped first.
std::string quoted_json(std::string_view text) {
  return nlohmann::json(printable(text)).dump();
}

std::string quoted_csv(std::string_view text) {
  std::string clean = printable(text);
  if (clean.find_first_of(",\"") == std::string::npos) {
    return clean;
  }
  std::string result = "\"";
  for (const char c : clean) {
    result += c;
    if (c == '"') {
      result += c;
    }
  }
  return result + '"';
}

const char* to_string(RunEventKind kind) {
  switch (kind) {
    case RunEventKind::Start:
      return "start";
    case RunEventKind::Progress:
      return "progress";
    case RunEventKind::BlockDone:
      return "block";
    case RunEventKind::End:
      return "end";
    case RunEventKind::CallDone:
      return "call";
    case RunEventKind::Runs:
      return "runs";
    case RunEventKind::Fault:
      return "fault";
  }
  return "unknown";
}

// By worker, quoted once: names are printed for every event.
std::vector<std::string> worker_names(const ResultsContext& context) {
  std::vector<std::string> names;
  names.reserve(context.task.demand.workers.size());
  for (const DemandWorker& worker : context.task.demand.workers) {
    names.push_back(quoted_json(context.topology.node(worker.node).name));
  }
  return names;
}

class Buffered {
 public:
  explicit Buffered(std::ostream& out) : out_(out) {}
  ~Buffered() { flush(); }
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > kFlushAt) {
      flush();
    }
  }

 private:
  static constexpr std::size_t kFlushAt = 1U << 16U;

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

// Numbers for the trace's processes (policy and host) and threads (worker).
class TraceIds {
 public:
  explicit TraceIds(const ResultsContext& context) : context_(context) {
    host_number_.assign(context.topology.domains().size(), 0);
    for (const DemandWorker& worker : context.task.demand.workers) {
      std::uint32_t& number = host_number_[host_of(worker).index()];
      if (number == 0) {
        hosts_.push_back(host_of(worker));
        number = static_cast<std::uint32_t>(hosts_.size());
      }
    }
  }

  [[nodiscard]] const std::vector<DomainId>& hosts() const { return hosts_; }
  [[nodiscard]] std::size_t process(std::size_t run, const DemandWorker& worker) const {
    return run * hosts_.size() + host_number_[host_of(worker).index()];
  }

 private:
  [[nodiscard]] DomainId host_of(const DemandWorker& worker) const {
    return context_.topology.around(worker.node, Level::Host);
  }

  const ResultsContext& context_;
  std::vector<DomainId> hosts_;
  std::vector<std::uint32_t> host_number_;  // by domain, from 1; 0: no worker in it
};

// Microseconds, as the trace format wants them.
std::string micros(Time time) {
  return exact_decimal(time.picoseconds(), 6);
}

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const ResultsContext& context)
      : out_(out), context_(context), ids_(context), names_(worker_names(context)) {}

  void write(std::span<const RunRecord> runs) {
    out_.add("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (std::size_t r = 0; r < runs.size(); ++r) {
      name_threads(r, runs[r]);
      for (const RunEvent& event : runs[r].events) {
        add_event(r, event);
      }
    }
    out_.add("\n]}}\n");
  }

 private:
  const char* separator() {
    const char* text = first_ ? "\n" : ",\n";
    first_ = false;
    return text;
  }

  void name_threads(std::size_t run, const RunRecord& record) {
    const auto& hosts = ids_.hosts();
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const std::string name = record.policy + " " + context_.topology.domain(hosts[h]).name;
      out_.add("{}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}",
               separator(), run * hosts.size() + h + 1, quoted_json(name));
    }
    const auto& workers = context_.task.demand.workers;
    start_.assign(workers.size(), Time());
    for (std::size_t w = 0; w < workers.size(); ++w) {
      out_.add(
          "{}{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}"
          "}}",
          separator(), ids_.process(run, workers[w]), w + 1, names_[w]);
    }
  }

  void instant(std::size_t run, const RunEvent& event, const std::string& name) {
    const DemandWorker& worker = context_.task.demand.workers[event.worker.index()];
    out_.add("{}{{\"ph\":\"i\",\"s\":\"t\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{}}}",
             separator(), name, ids_.process(run, worker), event.worker.value() + 1,
             micros(event.at));
  }

  void add_event(std::size_t run, const RunEvent& event) {
    if (!event.worker.valid()) {
      out_.add("{}{{\"ph\":\"i\",\"s\":\"g\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{}}}",
               separator(), quoted_json(event.text.empty() ? to_string(event.kind) : event.text),
               run * ids_.hosts().size() + 1, micros(event.at));
      return;
    }
    switch (event.kind) {
      case RunEventKind::Start:
        start_[event.worker.index()] = event.at;
        break;
      case RunEventKind::End: {
        const Time start = start_[event.worker.index()];
        out_.add("{}{{\"ph\":\"X\",\"name\":\"fetch\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}}}",
                 separator(), ids_.process(run, context_.task.demand.workers[event.worker.index()]),
                 event.worker.value() + 1, micros(start), micros(event.at - start));
        break;
      }
      case RunEventKind::Progress:
        instant(run, event, fmt::format("\"{} %\"", event.percent));
        break;
      case RunEventKind::BlockDone:
        instant(run, event, fmt::format("\"block {}\"", event.block.value()));
        break;
      case RunEventKind::CallDone:
      case RunEventKind::Fault:
        instant(run, event, quoted_json(event.text));
        break;
      case RunEventKind::Runs:
        instant(run, event, quoted_json("runs " + event.text));
        break;
    }
  }

  Buffered out_;
  const ResultsContext& context_;
  TraceIds ids_;
  std::vector<std::string> names_;
  std::vector<Time> start_;  // by worker, of the run that is being written
  bool first_ = true;
};

}  // namespace

void write_events(std::ostream& out, const ResultsContext& context,
                  std::span<const RunRecord> runs) {
  const std::vector<std::string> names = worker_names(context);
  Buffered lines(out);
  for (const RunRecord& run : runs) {
    const std::string policy = quoted_json(run.policy);
    for (const RunEvent& event : run.events) {
      lines.add("{{\"policy\":{},\"at_s\":{},\"event\":\"{}\"", policy,
                exact_decimal(event.at.picoseconds(), 12), to_string(event.kind));
      if (event.worker.valid()) {
        lines.add(",\"worker\":{}", names[event.worker.index()]);
      }
      if (event.kind == RunEventKind::Progress) {
        lines.add(",\"percent\":{}", event.percent);
      } else if (event.kind == RunEventKind::BlockDone) {
        if (event.stripe.valid()) lines.add(",\"stripe\":{}", event.stripe.value());
        lines.add(",\"block\":{}", event.block.value());
        if (event.source.valid()) {
          lines.add(",\"source\":{}", names[event.source.index()]);
        }
      } else if (event.kind == RunEventKind::Fault || event.kind == RunEventKind::CallDone ||
                 event.kind == RunEventKind::Runs) {
        lines.add(",\"message\":{}", quoted_json(event.text));
      }
      lines.add("}}\n");
    }
  }
}

void write_links(std::ostream& out, const ResultsContext& context,
                 std::span<const RunRecord> runs) {
  Buffered lines(out);
  lines.add("policy,link,start_s,end_s,bytes,capacity_bytes_per_s\n");
  for (const RunRecord& run : runs) {
    const std::string policy = quoted_csv(run.policy);
    for (const LinkUse& use : run.links) {
      const std::string link = quoted_csv(context.topology.channel_name(use.channel));
      const auto capacity = context.topology.link(use.channel.link()).capacity.bytes_per_second();
      const std::size_t bins = use.bins.size();
      for (std::size_t b = 0; b < bins; ++b) {
        lines.add("{},{},{},{},{},{}\n", policy, link, bin_edge(run.makespan, b, bins),
                  bin_edge(run.makespan, b + 1, bins), use.bins[b].count(), capacity);
      }
    }
  }
}

void write_trace(std::ostream& out, const ResultsContext& context,
                 std::span<const RunRecord> runs) {
  TraceWriter(out, context).write(runs);
}

}  // namespace holdfast
