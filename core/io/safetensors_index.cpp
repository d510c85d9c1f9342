#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/io/json_events.hpp"
#include "core/io/safetensors.hpp"
#include "core/io/safetensors_file.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

// Other programs add keys of their own; only `weight_map` and `metadata.total_size` are read.
class IndexReader : private JsonEvents {
 public:
  IndexReader(std::string_view text, const std::string& file)
      : JsonEvents(text, file, Places::LineAndColumn) {}

  SafetensorsIndex index() {
    read();
    if (!map_seen_) {
      throw Error(ErrorCode::MissingKey, "no weight_map; an index needs one", place(0, ""));
    }
    std::sort(index_.entries.begin(), index_.entries.end());
    return std::move(index_);
  }

 private:
  bool in_map() const { return depth() >= 1 && key(1) == "weight_map"; }
  bool is_total() const { return depth() == 2 && key(1) == "metadata" && key(2) == "total_size"; }

  void begin_object() override {
    if (depth() == 1) return;
    if (depth() == 2 && in_map()) map_seen_ = true;
    if (depth() == 3 && in_map()) {
      fail(ErrorCode::BadValue, "an object, where the name of a file belongs");
    }
  }
  void begin_array() override {
    if (depth() == 1) fail(ErrorCode::BadValue, "an array, where an object belongs");
    if (in_map()) {
      fail(ErrorCode::BadValue, depth() == 2 ? "an array, where an object of file names belongs"
                                             : "an array, where the name of a file belongs");
    }
    // Of arrays inside the metadata nothing is read; their elements must not look like its keys.
  }
  void end() override {}

  void scalar(const JsonScalar& value) override {
    if (depth() == 0) {
      fail(ErrorCode::BadValue, fmt::format("{}, where an object belongs", to_string(value.kind)));
    }
    if (depth() == 1 && in_map()) {
      fail(ErrorCode::BadValue,
           fmt::format("{}, where an object of file names belongs", to_string(value.kind)));
    }
    if (in_map()) {
      if (value.kind != JsonScalar::Kind::String) {
        fail(ErrorCode::BadValue,
             fmt::format("{}, where the name of a file belongs", to_string(value.kind)));
      }
      check_file_name(value.text);
      if (key(2).empty()) fail(ErrorCode::BadWeights, "a tensor has no name; give it one");
      index_.entries.push_back({key(2), std::string(value.text)});
    } else if (is_total()) {
      read_total(value);
    }
  }

  // Some writers divide, and so write a whole number as a real one; below 2^53 it is exact.
  void read_total(const JsonScalar& value) {
    constexpr double kGreatestExact = 9007199254740992.0;
    if (value.kind == JsonScalar::Kind::Unsigned) {
      index_.total_size = value.number;
    } else if (value.kind == JsonScalar::Kind::Real && value.real >= 0 &&
               value.real < kGreatestExact && value.real == std::floor(value.real)) {
      index_.total_size = static_cast<std::uint64_t>(value.real);
    } else {
      fail(ErrorCode::BadValue,
           fmt::format("{}, where a whole number of bytes belongs", to_string(value.kind)));
    }
  }

  // The files lie beside the index: a name that leads elsewhere could read any file of the user.
  void check_file_name(std::string_view name) const {
    const bool plain =
        name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos &&
        name.size() > kFileSuffix.size() && name.ends_with(kFileSuffix) && name.front() != '.';
    if (plain) return;
    fail(ErrorCode::BadValue,
         fmt::format("{} is not the plain name of a .safetensors file beside the index; write one "
                     "such as model-00001-of-00002.safetensors, without a path",
                     quote(name)));
  }

  SafetensorsIndex index_;
  bool map_seen_ = false;
};

// A regular file, opened, and its size.
struct OpenFile {
  std::ifstream stream;
  std::uint64_t size = 0;
};

OpenFile open_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorCode::FileNotFound, "there is no such file", {.file = path.string()});
  }
  if (error || status.type() != fs::file_type::regular) {
    throw Error(ErrorCode::FileUnreadable, "is not a regular file that can be read",
                {.file = path.string()});
  }
  OpenFile file;
  file.size = fs::file_size(path, error);
  file.stream.open(path, std::ios::binary);
  if (error || !file.stream) {
    throw Error(ErrorCode::FileUnreadable, "cannot be opened; check its permissions",
                {.file = path.string()});
  }
  return file;
}

// Reads `count` bytes more, or what there is.
void read_more(OpenFile& file, std::uint64_t count, std::vector<std::byte>& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + count);
  file.stream.read(reinterpret_cast<char*>(bytes.data() + before),
                   static_cast<std::streamsize>(count));
  bytes.resize(before + static_cast<std::size_t>(file.stream.gcount()));
}

std::vector<Tensor> read_file(const fs::path& path) {
  OpenFile file = open_file(path);
  std::vector<std::byte> bytes;
  read_more(file, kSafetensorsPrefix, bytes);
  const std::uint64_t length = safetensors_header_length(bytes, file.size, path.string());
  read_more(file, length, bytes);
  return read_safetensors_tensors(bytes, file.size, path.string());
}

std::string read_text(const fs::path& path) {
  OpenFile file = open_file(path);
  if (file.size > kGreatestSafetensorsHeader) {
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("an index of {} bytes; at most {} are read", file.size,
                            kGreatestSafetensorsHeader),
                {.file = path.string()});
  }
  std::string text(file.size, '\0');
  file.stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.stream.gcount()));
  return text;
}

// A file must hold exactly the tensors, in name order, that the index says it does.
void check_same(const std::vector<Tensor>& held, const std::vector<std::string>& listed,
                const fs::path& index, const std::string& file) {
  const auto refuse = [&](const std::string& tensor, const char* why) {
    throw Error(ErrorCode::BadWeights,
                fmt::format("tensor {} {} {}; the index and its files must agree", quote(tensor),
                            why, quote(file)),
                {.file = index.string(), .pointer = "/weight_map/" + pointer_token(tensor)});
  };
  for (std::size_t i = 0; i < std::max(held.size(), listed.size()); ++i) {
    if (i == held.size() || (i < listed.size() && listed[i] < held[i].name)) {
      refuse(listed[i], "is listed in, but is not in,");
    }
    if (i == listed.size() || held[i].name < listed[i]) {
      refuse(held[i].name, "is in, but is not listed in,");
    }
  }
}

std::vector<Tensor> read_indexed(const fs::path& path) {
  const SafetensorsIndex index = read_safetensors_index(read_text(path), path.string());
  std::map<std::string, std::vector<std::string>> by_file;
  for (const auto& entry : index.entries) by_file[entry.file].push_back(entry.tensor);
  std::vector<Tensor> tensors;
  std::uint64_t total = 0;
  for (const auto& [file, listed] : by_file) {
    std::vector<Tensor> held = read_file(path.parent_path() / file);
    check_same(held, listed, path, file);
    for (Tensor& tensor : held) {
      // Each is within its file's size, and so are they all together.
      total += bytes_of(tensor).value_or(0);
      tensors.push_back(std::move(tensor));
    }
  }
  if (index.total_size && *index.total_size != total) {
    throw Error(ErrorCode::BadWeights,
                fmt::format("total_size is {}, but the tensors of the files have {} bytes",
                            *index.total_size, total),
                {.file = path.string(), .pointer = "/metadata/total_size"});
  }
  return tensors;
}

std::string model_name(const fs::path& path, std::string_view suffix) {
  const std::string file = path.filename().string();
  std::string stem = file.substr(0, file.size() - suffix.size());
  if (stem != "model") return stem;
  std::string directory = fs::absolute(path).lexically_normal().parent_path().filename().string();
  return directory.empty() ? stem : directory;
}

}  // namespace

SafetensorsIndex read_safetensors_index(std::string_view text, const std::string& file) {
  return IndexReader(text, file).index();
}

Manifest read_safetensors(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const fs::path index = path / "model.safetensors.index.json";
    return read_safetensors(fs::exists(index, error) ? index : path / "model.safetensors");
  }
  const std::string name = path.filename().string();
  const auto is = [&](std::string_view suffix) {
    return name.size() > suffix.size() && name.ends_with(suffix);
  };
  const bool index = is(kIndexSuffix);
  if (!index && !is(kFileSuffix)) {
    throw Error(
        ErrorCode::BadValue,
        "not a model: write a path that ends in .safetensors or .safetensors.index.json, or "
        "the directory of such files",
        {.file = path.string()});
  }
  std::string model = model_name(path, index ? kIndexSuffix : kFileSuffix);
  std::vector<Tensor> tensors = index ? read_indexed(path) : read_file(path);
  try {
    return Manifest(std::move(model), std::move(tensors));
  } catch (const Error& refused) {
    throw Error(refused.code(), refused.message(), {.file = path.string()});
  }
}

}  // namespace holdfast
