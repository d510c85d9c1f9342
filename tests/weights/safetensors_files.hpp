// Files for the tests of the safetensors readers.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace holdfast {

// A header behind its length.
inline std::string with_length(const std::string& header) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xffU);
  }
  return file + header;
}

// `start`, then a hole up to `size`.
inline void write_sparse(const std::filesystem::path& path, const std::string& start,
                         std::uint64_t size) {
  std::ofstream(path, std::ios::binary) << start;
  std::filesystem::resize_file(path, size);
}

// Removed with everything in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace holdfast
