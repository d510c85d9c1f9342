// The model: named tensors, and the model space in which all byte ranges are expressed.
//
// Model space: the tensors sorted by name (byte-wise), each row-major and unsharded, back to back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.hpp"
#include "core/units.hpp"

namespace holdfast {

// The element types of safetensors whose elements are whole bytes.
enum class DType {
  Bool,
  U8,
  I8,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  I64,
  U64,
  F64,
  C64,
};

[[nodiscard]] std::uint64_t bytes_of(DType dtype);
[[nodiscard]] const char* to_string(DType dtype);  // safetensors' names: "BF16", "F8_E4M3", ...
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name);  // the same names

struct Tensor {
  std::string name;
  DType dtype = DType::BF16;
  std::vector<std::uint64_t> shape;  // empty: a scalar
};

// Size of a tensor: its dtype's bytes times its dimensions, zero if any of them is zero; nothing if
// that does not fit 64 bits.
[[nodiscard]] std::optional<std::uint64_t> bytes_of(const Tensor& tensor);

class Manifest {
 public:
  // Sorts the tensors. Throws Error(BadWeights) on a duplicate or empty name, on a size that
  // overflows 64 bits and on a model of no bytes. Tensors of zero bytes are kept: they hold no
  // bytes, and moving them is a no-op.
  Manifest(std::string model, std::vector<Tensor> tensors);

  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }
  [[nodiscard]] std::uint64_t offset(std::size_t tensor) const { return offsets_[tensor]; }
  [[nodiscard]] Bytes bytes(std::size_t tensor) const;
  [[nodiscard]] Bytes total() const { return Bytes(offsets_.back()); }
  // Over the model's name and the tensors' names, dtypes and shapes.
  [[nodiscard]] const Hash128& hash() const { return hash_; }

 private:
  std::string model_;
  std::vector<Tensor> tensors_;
  std::vector<std::uint64_t> offsets_;  // one more than tensors; the last is the total
  Hash128 hash_;
};

}  // namespace holdfast
