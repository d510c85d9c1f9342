#include "core/io/results_folder.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

// The summary comes last: it is what makes a folder ours and its results complete.
constexpr const char* kSummary = "summary.json";

[[noreturn]] void refuse(const fs::path& path, const std::string& message) {
  throw Error(ErrorCode::FileUnwritable, message, Place{path.string(), 0, 0, {}, {}});
}

bool is_ours(const fs::path& folder) {
  std::ifstream in(folder / kSummary);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains("program") || !json["program"].is_object()) {
    return false;
  }
  const auto name = json["program"].find("name");
  return name != json["program"].end() && *name == "holdfast";
}

constexpr const char* kTemporary = ".holdfast-";

// What a writer that was killed left behind, and nothing else.
bool only_leftovers(const fs::path& folder) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().filename().string().rfind(kTemporary, 0) != 0) {
      return false;
    }
  }
  return !failure;
}

// A folder of our own making, gone with everything in it when the scope ends.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& inside) {
    std::string name = (inside / (std::string(kTemporary) + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) {
      refuse(inside, "cannot create files in this folder; name another with --out");
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <class Write>
void write_file(const fs::path& path, const Write& write) {
  std::ofstream out(path, std::ios::binary);
  write(out);
  out.close();
  if (!out) {
    refuse(path, "the file could not be written to its end; is the disk full?");
  }
}

}  // namespace

void require_results_folder(const std::string& folder) {
  std::error_code failure;
  const fs::path path(folder);
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    // Found out now, not when the run is over.
    fs::path above = fs::absolute(path);
    while (!fs::exists(above, failure) && above.has_relative_path()) {
      above = above.parent_path();
    }
    if (!fs::is_directory(above, failure) || access(above.c_str(), W_OK) != 0) {
      refuse(path, fmt::format("the folder cannot be created in '{}'; name another with --out",
                               above.string()));
    }
    return;
  }
  if (status.type() != fs::file_type::directory) {
    refuse(path, "results go into a folder, and this is none; name another with --out");
  }
  const bool empty = fs::is_empty(path, failure);
  if (failure) {
    refuse(path, "the folder cannot be read: " + failure.message());
  }
  if (!empty && !is_ours(path) && !only_leftovers(path)) {
    refuse(path,
           "the folder is not empty and holds no results of holdfast; name another with --out, or "
           "empty it");
  }
}

void write_results(const std::string& folder, const ResultsContext& context,
                   std::span<const RunRecord> runs) {
  require_results_folder(folder);
  std::error_code failure;
  const fs::path target(folder);
  fs::create_directories(target, failure);
  if (failure) {
    refuse(target, "the folder cannot be created: " + failure.message());
  }
  const TemporaryFolder temporary(target);
  const fs::path& from = temporary.path();
  write_file(from / "events.jsonl", [&](auto& out) { write_events(out, context, runs); });
  write_file(from / "links.csv", [&](auto& out) { write_links(out, context, runs); });
  write_file(from / "trace.json", [&](auto& out) { write_trace(out, context, runs); });
  write_file(from / kSummary, [&](auto& out) {
    out << summary_json(context, runs).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << '\n';
  });
  for (const char* name : {"events.jsonl", "links.csv", "trace.json", kSummary}) {
    fs::rename(from / name, target / name, failure);
    if (failure) {
      refuse(target / name, "the file cannot be replaced: " + failure.message());
    }
  }
}

}  // namespace holdfast
