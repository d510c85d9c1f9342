#include "core/weights/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

struct DTypeInfo {
  DType dtype;
  const char* name;
  std::uint64_t bytes;
};
// In the order of the enumerators.
constexpr auto kDTypes = std::to_array<DTypeInfo>({
    {DType::Bool, "BOOL", 1},
    {DType::U8, "U8", 1},
    {DType::I8, "I8", 1},
    {DType::F8E4M3, "F8_E4M3", 1},
    {DType::F8E5M2, "F8_E5M2", 1},
    {DType::F8E8M0, "F8_E8M0", 1},
    {DType::I16, "I16", 2},
    {DType::U16, "U16", 2},
    {DType::F16, "F16", 2},
    {DType::BF16, "BF16", 2},
    {DType::I32, "I32", 4},
    {DType::U32, "U32", 4},
    {DType::F32, "F32", 4},
    {DType::I64, "I64", 8},
    {DType::U64, "U64", 8},
    {DType::F64, "F64", 8},
    {DType::C64, "C64", 8},
});

}  // namespace

std::uint64_t bytes_of(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype)).bytes;
}

const char* to_string(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype)).name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (name == info.name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(const Tensor& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end()) return 0;
  std::uint64_t bytes = bytes_of(tensor.dtype);
  for (const std::uint64_t size : tensor.shape) {
    if (size > std::numeric_limits<std::uint64_t>::max() / bytes) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

Manifest::Manifest(std::string model, std::vector<Tensor> tensors)
    : model_(std::move(model)), tensors_(std::move(tensors)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  offsets_.reserve(tensors_.size() + 1);
  offsets_.push_back(0);
  CanonicalHasher hasher;
  hasher.add(std::string_view(model_)).add(std::uint64_t{tensors_.size()});
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (tensor.name.empty()) {
      throw Error(ErrorCode::BadWeights, "a tensor has no name; give each tensor a name");
    }
    if (i > 0 && tensor.name == tensors_[i - 1].name) {
      throw Error(ErrorCode::BadWeights,
                  fmt::format("tensor {} is there twice; names must differ", quote(tensor.name)));
    }
    const auto bytes = holdfast::bytes_of(tensor);
    if (!bytes || *bytes > std::numeric_limits<std::uint64_t>::max() - offsets_.back()) {
      throw Error(ErrorCode::BadWeights,
                  fmt::format("tensor {}: the size of {} does not fit 64 bits; check its shape",
                              quote(tensor.name), bytes ? "the model up to it" : "the tensor"));
    }
    offsets_.push_back(offsets_.back() + *bytes);
    hasher.add(std::string_view(tensor.name)).add(std::string_view(to_string(tensor.dtype)));
    hasher.add(std::uint64_t{tensor.shape.size()});
    for (const std::uint64_t size : tensor.shape) hasher.add(size);
  }
  if (offsets_.back() == 0) {
    throw Error(ErrorCode::BadWeights,
                fmt::format("model {} has no bytes; a model needs a tensor that is not empty",
                            quote(model_)));
  }
  hash_ = hasher.finish();
}

Bytes Manifest::bytes(std::size_t tensor) const {
  return Bytes(offsets_[tensor + 1] - offsets_[tensor]);
}

}  // namespace holdfast
