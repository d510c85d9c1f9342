// JSON of which only some keys are read, as a tree whose values know where they stand.
//
//   const JsonDocument document = JsonDocument::parse(text, "summary.json");
//   for (const JsonValue& run : document.root().at("runs").list()) {
//     run.at("makespan_s").number(0, 1e9);  // throws Error: summary.json (at /runs/3/makespan_s)
//   }
//
// What JsonEvents refuses is refused here, with line and column: syntax, double keys, depth. Values
// of another type or range, and keys that are not there, are refused with their JSON pointer. Keys
// that nobody asks for are left alone: files of a later version may say more. Input of a known,
// closed shape is for json_shape.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"

namespace holdfast {

// A view: the document must outlive it.
class JsonValue {
 public:
  JsonValue(const std::string& file, const nlohmann::json& json, std::string pointer)
      : file_(&file), json_(&json), pointer_(std::move(pointer)) {}

  [[nodiscard]] Place place() const { return {*file_, 0, 0, pointer_, {}}; }
  [[nodiscard]] bool is_null() const;

  // A member of an object: MissingKey if it is not there.
  [[nodiscard]] JsonValue at(std::string_view key) const;
  // The elements of an array.
  [[nodiscard]] std::vector<JsonValue> list() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  // A whole number of at most 64 bits.
  [[nodiscard]] std::uint64_t count() const;
  // Any number in the range, finite.
  [[nodiscard]] double number(double least, double most) const;
  // Nothing for null.
  [[nodiscard]] std::optional<double> number_or_null(double least, double most) const;
  [[nodiscard]] Bytes bytes() const { return Bytes(count()); }
  [[nodiscard]] Rate rate() const { return Rate(count()); }
  [[nodiscard]] Hash128 hash() const;

  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const;

 private:
  [[noreturn]] void refuse_type(const char* wanted) const;

  const std::string* file_;
  const nlohmann::json* json_;
  std::string pointer_;
};

class JsonDocument {
 public:
  // `file` names the text in errors. O(length of the text).
  [[nodiscard]] static JsonDocument parse(std::string_view text, std::string file);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  [[nodiscard]] JsonValue root() const { return {*file_, *json_, ""}; }

 private:
  JsonDocument();
  // Behind pointers so that values stay valid when the document moves.
  std::unique_ptr<std::string> file_;
  std::unique_ptr<nlohmann::json> json_;
};

}  // namespace holdfast
