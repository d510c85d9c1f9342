// Each layer includes only what lies below it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Rule {
  const char* layer;
  const char* except;     // a part of the layer with its own rule, or ""
  const char* forbidden;  // regular expression over the included name
};

// System headers by which a clock, a thread, a socket or a file would come into the pure core.
constexpr const char* kImpure =
    "^(simgrid/|infiniband/|cuda|sys/|netinet/|arpa/|pthread|unistd|fcntl|chrono|thread|mutex|"
    "condition_variable|future|atomic|fstream|iostream|filesystem|cstdio|ctime|random_device|"
    "yaml-cpp/|nlohmann/|CLI/|sim/|real/|cli/|core/io/)";

const std::vector<Rule> kRules{
    {"core", "core/io", kImpure},
    {"core/io", "", "^(simgrid/|infiniband/|cuda|sys/socket|thread|mutex|sim/|real/|cli/)"},
    {"sim", "", "^(real/|cli/|infiniband/|cuda|yaml-cpp/|core/io/)"},
    {"real", "", "^(simgrid/|sim/|cli/|yaml-cpp/|core/io/)"},
    {"core/topology", "", "^core/(plan|weights|engine|catalog|io)/"},
    {"core/weights", "", "^core/(plan|topology|engine|catalog|io)/"},
    {"core/plan", "", "^core/(engine|weights|catalog|io)/"},
    {"core/engine", "", "^core/(catalog|storm|io)/"},
    {"core/catalog", "", "^core/(storm|workload|io)/"},
    {"core/storm", "", "^core/(workload|io)/"},
    {"core/workload", "", "^core/(weights|engine|catalog|io)/"},
};

std::vector<std::string> violations(const Rule& rule) {
  const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  const std::regex forbidden(rule.forbidden);
  const fs::path root = HOLDFAST_SOURCE_DIR;
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / rule.layer)) {
    const std::string name = fs::relative(entry.path(), root).string();
    const std::string extension = entry.path().extension().string();
    if (extension != ".hpp" && extension != ".cpp") continue;
    if (*rule.except != '\0' && name.rfind(rule.except, 0) == 0) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      if (std::regex_search(match[1].str(), forbidden)) found.push_back(name + ": " + line);
    }
  }
  return found;
}

TEST(Layering, NoLayerIncludesWhatItMustNotKnow) {
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.layer);
    if (!fs::exists(fs::path(HOLDFAST_SOURCE_DIR) / rule.layer)) continue;
    EXPECT_EQ(violations(rule), std::vector<std::string>{});
  }
}

// The planners are what the checker and the bound judge: neither may lean on them.
TEST(Layering, CheckerAndBoundShareNoCodeWithPlanners) {
  const std::regex judge("^core/plan/(check|bound|parametric)");
  const std::regex planner(
      "core/plan/(planner|plan_space|plan_builder|flat_planners|hierarchical|class_hosts|"
      "local_spread|two_tree|binomial_schedule|cost_model)");
  const fs::path root = HOLDFAST_SOURCE_DIR;
  for (const auto& entry : fs::directory_iterator(root / "core/plan")) {
    const std::string name = fs::relative(entry.path(), root).string();
    if (!std::regex_search(name, judge)) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("#include", 0) != 0) continue;
      EXPECT_FALSE(std::regex_search(line, planner)) << name << ": " << line;
    }
  }
}

}  // namespace
