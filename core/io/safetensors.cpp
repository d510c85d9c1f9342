#include "core/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/io/json_events.hpp"
#include "core/io/safetensors_file.hpp"
#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostDimensions = 64;
constexpr std::string_view kMetadata = "__metadata__";

struct Entry {
  Tensor tensor;
  std::uint64_t begin = 0;  // of its data
  std::uint64_t end = 0;
  std::size_t token = 0;  // where the header speaks of it
};

class HeaderReader : private JsonEvents {
 public:
  HeaderReader(std::string_view header, std::uint64_t data_bytes, const std::string& file)
      : JsonEvents(header, file, Places::ByteOffset, kSafetensorsPrefix), data_bytes_(data_bytes) {}

  std::vector<Tensor> tensors() {
    read();
    check_coverage();
    std::vector<Tensor> tensors;
    tensors.reserve(entries_.size());
    for (Entry& entry : entries_) tensors.push_back(std::move(entry.tensor));
    std::sort(tensors.begin(), tensors.end(),
              [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
    return tensors;
  }

 private:
  // Levels: 1 the header, 2 a tensor or the metadata, 3 a tensor's shape or offsets.
  bool in_metadata() const { return depth() >= 1 && key(1) == kMetadata; }

  void begin_object() override {
    if (depth() == 1 || (depth() == 2 && in_metadata())) return;
    if (depth() > 2) refuse("an object", depth() - 1);
    if (key(1).empty()) fail(ErrorCode::BadWeights, "a tensor has no name; give it one");
    Entry& entry = entries_.emplace_back();
    entry.tensor.name = key(1);
    entry.token = token();
    seen_ = {};
  }

  void begin_array() override {
    if (depth() != 3 || in_metadata() || !(is_shape() || is_offsets())) {
      refuse("an array", depth() - 1);
    }
    offsets_read_ = 0;
  }

  void scalar(const JsonScalar& value) override {
    if (depth() == 2 && in_metadata()) {
      if (value.kind != JsonScalar::Kind::String) refuse(to_string(value.kind), depth());
    } else if (depth() == 2 && key(2) == "dtype" && value.kind == JsonScalar::Kind::String) {
      read_dtype(value.text);
    } else if (depth() == 3 && value.kind == JsonScalar::Kind::Unsigned) {
      is_shape() ? read_dimension(value.number) : read_offset(value.number);
    } else {
      refuse(to_string(value.kind), depth());
    }
  }

  void end() override {
    if (depth() == 3) {
      (is_shape() ? seen_.shape : seen_.offsets) = true;
      if (is_offsets() && offsets_read_ != 2) {
        fail(ErrorCode::BadValue, "data_offsets needs two numbers, begin and end");
      }
    }
    if (depth() != 2 || in_metadata()) return;
    const char* missing = !seen_.dtype     ? "dtype"
                          : !seen_.shape   ? "shape"
                          : !seen_.offsets ? "data_offsets"
                                           : nullptr;
    const Entry& entry = entries_.back();
    if (missing != nullptr) {
      throw Error(ErrorCode::MissingKey,
                  fmt::format("tensor {} has no {}", quote(entry.tensor.name), missing),
                  place_of(entry, ""));
    }
    check_size(entry);
  }

  bool is_shape() const { return key(2) == "shape"; }
  bool is_offsets() const { return key(2) == "data_offsets"; }

  // A value inside `level` containers that is of the wrong kind, or whose key nobody knows.
  [[noreturn]] void refuse(const char* kind, std::size_t level) const {
    static const std::vector<std::string> known{"dtype", "shape", "data_offsets"};
    const char* wanted = "a whole number from 0";
    if (level == 0) {
      wanted = "an object";
    } else if (in_metadata()) {
      wanted = level == 1 ? "an object of strings" : "a string";
    } else if (level == 1) {
      wanted = "a tensor's object {dtype, shape, data_offsets}";
    } else if (level == 2) {
      if (std::find(known.begin(), known.end(), key(2)) == known.end()) {
        fail(ErrorCode::UnknownKey,
             fmt::format("a tensor has no key {}{}", quote(key(2)), suggestion(key(2), known)));
      }
      wanted = key(2) == "dtype" ? "a string" : "an array of numbers";
    }
    fail(ErrorCode::BadValue, fmt::format("{}, where {} belongs", kind, wanted));
  }

  void read_dtype(std::string_view name) {
    const auto dtype = parse_dtype(name);
    if (!dtype) {
      fail(ErrorCode::Unsupported,
           fmt::format("the dtype {} is unknown, or its elements are not whole bytes; convert the "
                       "tensor to another, for example BF16",
                       quote(name)));
    }
    entries_.back().tensor.dtype = *dtype;
    seen_.dtype = true;
  }

  void read_dimension(std::uint64_t size) {
    auto& shape = entries_.back().tensor.shape;
    if (shape.size() == kMostDimensions) {
      fail(ErrorCode::LimitExceeded,
           fmt::format("a shape of more than {} dimensions", kMostDimensions));
    }
    shape.push_back(size);
  }

  void read_offset(std::uint64_t offset) {
    if (offsets_read_ == 2) {
      fail(ErrorCode::BadValue, "data_offsets has more than two numbers; it needs begin and end");
    }
    (offsets_read_ == 0 ? entries_.back().begin : entries_.back().end) = offset;
    ++offsets_read_;
  }

  void check_size(const Entry& entry) const {
    const auto refuse_offsets = [&](const std::string& why) {
      throw Error(ErrorCode::BadWeights,
                  fmt::format("tensor {}: {}", quote(entry.tensor.name), why),
                  place_of(entry, "/data_offsets"));
    };
    if (entry.begin > entry.end) {
      refuse_offsets(
          fmt::format("its data begins at {} and ends before that, at {}", entry.begin, entry.end));
    }
    if (entry.end > data_bytes_) {
      refuse_offsets(
          fmt::format("its data ends at {}, but the file holds {} bytes of data; is it "
                      "truncated?",
                      entry.end, data_bytes_));
    }
    const auto bytes = bytes_of(entry.tensor);
    if (!bytes || *bytes != entry.end - entry.begin) {
      refuse_offsets(fmt::format("its shape and dtype make {} bytes, its offsets {}",
                                 bytes ? std::to_string(*bytes) : "more than 2^64",
                                 entry.end - entry.begin));
    }
  }

  // The tensors, by place, must lie end to end from the first byte of data to the last.
  void check_coverage() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t covered = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin != covered) {
        throw Error(ErrorCode::BadWeights,
                    fmt::format("tensor {}: its data begins at {}, the one before ends at {}; "
                                "tensors must neither overlap nor leave holes",
                                quote(entry.tensor.name), entry.begin, covered),
                    place_of(entry, "/data_offsets"));
      }
      covered = entry.end;
    }
    if (covered != data_bytes_) {
      throw Error(ErrorCode::BadWeights,
                  fmt::format("the tensors end after {} bytes of data, the file after {}; a file "
                              "must hold nothing else",
                              covered, data_bytes_),
                  place(0, ""));
    }
  }

  Place place_of(const Entry& entry, const char* rest) const {
    return place(entry.token, "/" + pointer_token(entry.tensor.name) + rest);
  }

  struct Seen {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
  };
  std::uint64_t data_bytes_;
  std::vector<Entry> entries_;
  Seen seen_;
  int offsets_read_ = 0;
};

}  // namespace

std::uint64_t safetensors_header_length(std::span<const std::byte> bytes, std::uint64_t file_size,
                                        const std::string& file) {
  if (bytes.size() < kSafetensorsPrefix || file_size < kSafetensorsPrefix) {
    throw Error(ErrorCode::BadSyntax,
                "the file ends within the 8 bytes of the header's length; is it truncated?",
                {.file = file, .offset = std::min<std::uint64_t>(bytes.size(), file_size)});
  }
  std::uint64_t length = 0;
  for (std::size_t i = kSafetensorsPrefix; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  }
  if (length > kGreatestSafetensorsHeader) {
    throw Error(
        ErrorCode::LimitExceeded,
        fmt::format("a header of {} bytes; at most {} are read (is this a safetensors file?)",
                    length, kGreatestSafetensorsHeader),
        {.file = file, .offset = 0});
  }
  if (length > file_size - kSafetensorsPrefix) {
    throw Error(
        ErrorCode::BadSyntax,
        fmt::format("a header of {} bytes in a file of {}; is it truncated?", length, file_size),
        {.file = file, .offset = 0});
  }
  return length;
}

std::vector<Tensor> read_safetensors_tensors(std::span<const std::byte> bytes,
                                             std::uint64_t file_size, const std::string& file) {
  const std::uint64_t length = safetensors_header_length(bytes, file_size, file);
  if (bytes.size() - kSafetensorsPrefix < length) {
    throw Error(ErrorCode::BadSyntax,
                fmt::format("the header of {} bytes could be read only in part", length),
                {.file = file, .offset = bytes.size()});
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kSafetensorsPrefix;
  if (length == 0 || text[0] != '{') {
    throw Error(ErrorCode::BadSyntax, "the header does not begin with '{'",
                {.file = file, .offset = kSafetensorsPrefix});
  }
  const std::uint64_t data_bytes = file_size - kSafetensorsPrefix - length;
  return HeaderReader(std::string_view(text, length), data_bytes, file).tensors();
}

Manifest read_safetensors_header(std::span<const std::byte> bytes, std::uint64_t file_size,
                                 const std::string& model) {
  return Manifest(model, read_safetensors_tensors(bytes, file_size, model));
}

}  // namespace holdfast
