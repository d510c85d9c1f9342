// Reads what tensors a model has from the header of a .safetensors file, or from a sharded model's
// index and the headers of its files. The tensors' data is never read.
//
// Format: 8 bytes, the length N of the header (little-endian); N bytes of JSON, an object of
// {dtype, shape, data_offsets} by tensor name and, optionally, string to string `__metadata__`; the
// data, to which the offsets are relative. Source: the format's description at
// https://github.com/huggingface/safetensors (README, "Format"). As there, the header is at most
// 100 MB, keys are unique, and the tensors cover the data without hole or overlap to the file's
// end.
//
// Nothing is believed: each function throws Error with the byte offset (binary files), or line,
// column and JSON pointer (the index), where the input is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/weights/manifest.hpp"

namespace holdfast {

// The greatest header and the greatest index that are read.
inline constexpr std::uint64_t kGreatestSafetensorsHeader = 100'000'000;

// The tensors of one file, in name order. `bytes` is the beginning of the file, header included;
// `file_size` the size of all of it; `file` its name for messages.
[[nodiscard]] std::vector<Tensor> read_safetensors_tensors(std::span<const std::byte> bytes,
                                                           std::uint64_t file_size,
                                                           const std::string& file);

// The same as a manifest of a model of this name.
[[nodiscard]] Manifest read_safetensors_header(std::span<const std::byte> bytes,
                                               std::uint64_t file_size, const std::string& model);

// What a model.safetensors.index.json says.
struct SafetensorsIndex {
  struct Entry {
    std::string tensor;
    std::string file;  // a plain name ending in .safetensors, beside the index
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries;               // by tensor
  std::optional<std::uint64_t> total_size;  // of the tensors' data, in bytes
};

// `file` names the index in messages.
[[nodiscard]] SafetensorsIndex read_safetensors_index(std::string_view text,
                                                      const std::string& file);

// A model from a path: a .safetensors file, a .safetensors.index.json whose files lie beside it
// (each must hold exactly the tensors that the index says), or a directory with a `model` of either
// kind, the index first. The model's name is the file's, or, if that is just "model", the
// directory's.
[[nodiscard]] Manifest read_safetensors(const std::filesystem::path& path);

}  // namespace holdfast
