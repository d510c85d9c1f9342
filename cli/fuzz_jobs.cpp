#include "cli/fuzz_jobs.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "sim/storm_run.hpp"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;

Json cells_json(const std::map<std::pair<std::string, std::string>, std::uint64_t>& cells) {
  Json json = Json::array();
  for (const auto& [cell, count] : cells) json.push_back({cell.first, cell.second, count});
  return json;
}

void add_cells(const Json& json,
               std::map<std::pair<std::string, std::string>, std::uint64_t>& cells) {
  for (const Json& cell : json) {
    cells[{cell[0].get<std::string>(), cell[1].get<std::string>()}] += cell[2].get<std::uint64_t>();
  }
}

Json result_json(std::uint64_t seed, const storm::Outcome& outcome, double wall) {
  Json json{{"seed", seed},
            {"trace", outcome.trace},
            {"steps", outcome.steps},
            {"workers", outcome.workers},
            {"calls", outcome.calls},
            {"calls_ok", outcome.calls_ok},
            {"wall", wall}};
  if (outcome.violation) {
    json["rule"] = outcome.violation->rule;
    json["text"] = outcome.violation->text;
    json["at"] = outcome.violation->at.seconds();
  }
  return json;
}

SeedResult result_of(const Json& json) {
  SeedResult result;
  result.seed = json["seed"];
  result.trace = json["trace"];
  result.steps = json["steps"];
  result.workers = json["workers"];
  result.calls = json["calls"];
  result.calls_ok = json["calls_ok"];
  result.wall_s = json["wall"];
  result.rule = json.value("rule", "");
  result.text = json.value("text", "");
  result.at_s = json.value("at", 0.0);
  return result;
}

bool write_all(int pipe, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(pipe, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

// The child: one line for each seed before it, one after it, the cells at the end.
void work(int pipe, const SeedRange& seeds, std::uint32_t share, std::uint32_t jobs) {
  storm::Cells cells;
  for (std::uint64_t seed = seeds.first + share; seed <= seeds.last && seed >= seeds.first;
       seed += jobs) {
    if (!write_all(pipe, fmt::format("{{\"begins\":{}}}\n", seed))) return;
    const auto start = std::chrono::steady_clock::now();
    storm::Recipe recipe;
    recipe.seed = seed;
    const storm::Outcome outcome = sim::storm_on_its_wire(recipe);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    cells.add(outcome.cells);
    const Json json = result_json(seed, outcome, wall.count());
    if (!write_all(pipe, json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n")) return;
  }
  const Json json{{"coordinator", cells_json(cells.coordinator)},
                  {"agent", cells_json(cells.agent)}};
  static_cast<void>(write_all(pipe, json.dump() + "\n"));
}

struct Child {
  pid_t process = -1;
  int pipe = -1;
  std::string text;  // that is not yet a whole line
  std::optional<std::uint64_t> seed;
};

Child start(const SeedRange& seeds, std::uint32_t share, std::uint32_t jobs,
            const std::vector<Child>& others) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error(ErrorCode::Unsupported, "no pipe can be made");
  const pid_t process = fork();
  if (process < 0) throw Error(ErrorCode::Unsupported, "no process can be started");
  if (process == 0) {
    close(ends[0]);
    for (const Child& other : others) close(other.pipe);
    std::signal(SIGPIPE, SIG_IGN);
    work(ends[1], seeds, share, jobs);
    _exit(0);
  }
  close(ends[1]);
  return {process, ends[0], {}, std::nullopt};
}

class Crew {
 public:
  Crew(FuzzRun& run, const std::function<bool(const SeedResult&)>& heard)
      : run_(run), heard_(heard) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (const Child& child : children_) {
      if (child.pipe >= 0) close(child.pipe);
      kill(child.process, SIGKILL);
      static_cast<void>(waitpid(child.process, nullptr, 0));
    }
  }

  void run(const SeedRange& seeds, std::uint32_t jobs) {
    for (std::uint32_t share = 0; share < jobs; ++share) {
      children_.push_back(start(seeds, share, jobs, children_));
    }
    while (going_ && listen()) {
    }
  }

 private:
  // False once all have ended.
  bool listen() {
    std::vector<pollfd> polled;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].pipe < 0) continue;
      polled.push_back({children_[i].pipe, POLLIN, 0});
      who.push_back(i);
    }
    if (polled.empty()) return false;
    if (poll(polled.data(), polled.size(), -1) < 0) return errno == EINTR;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) read_from(children_[who[i]]);
    }
    return true;
  }

  void read_from(Child& child) {
    std::array<char, 65536> buffer{};
    const ssize_t got = read(child.pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return ended(child);
    child.text.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = child.text.find('\n'); end != std::string::npos;
         end = child.text.find('\n')) {
      take(child, Json::parse(child.text.substr(0, end)));
      child.text.erase(0, end + 1);
    }
  }

  void take(Child& child, const Json& line) {
    if (line.contains("begins")) {
      child.seed = line["begins"].get<std::uint64_t>();
    } else if (line.contains("seed")) {
      child.seed.reset();
      report(result_of(line));
    } else {
      add_cells(line["coordinator"], run_.cells.coordinator);
      add_cells(line["agent"], run_.cells.agent);
    }
  }

  void ended(Child& child) {
    close(child.pipe);
    child.pipe = -1;
    if (!child.seed) return;
    SeedResult result;
    result.seed = *child.seed;
    result.rule = "crash";
    result.text = "the process died in this seed; the seeds after it in its share were not run";
    report(std::move(result));
  }

  void report(SeedResult result) {
    going_ = heard_(result) && going_;
    run_.results.push_back(std::move(result));
  }

  FuzzRun& run_;
  const std::function<bool(const SeedResult&)>& heard_;
  std::vector<Child> children_;
  bool going_ = true;
};

}  // namespace

FuzzRun run_seeds(const SeedRange& seeds, std::uint32_t jobs,
                  const std::function<bool(const SeedResult&)>& heard) {
  FuzzRun run;
  {
    Crew crew(run, heard);
    crew.run(seeds, jobs);
  }
  std::sort(run.results.begin(), run.results.end(),
            [](const SeedResult& a, const SeedResult& b) { return a.seed < b.seed; });
  return run;
}

}  // namespace holdfast::cli
