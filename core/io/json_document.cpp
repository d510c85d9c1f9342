#include "core/io/json_document.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/io/json_events.hpp"

namespace holdfast {
namespace {

using Json = nlohmann::json;

class TreeBuilder final : public JsonEvents {
 public:
  TreeBuilder(std::string_view text, const std::string& file)
      : JsonEvents(text, file, Places::LineAndColumn) {}

  Json build() {
    read();
    return std::move(root_);
  }

 private:
  void begin_object() override { open_.push_back(add(Json::object())); }
  void begin_array() override { open_.push_back(add(Json::array())); }
  void end() override { open_.pop_back(); }
  void scalar(const JsonScalar& value) override {
    switch (value.kind) {
      case JsonScalar::Kind::Null:
        add(nullptr);
        break;
      case JsonScalar::Kind::Boolean:
        add(value.number != 0);
        break;
      case JsonScalar::Kind::Unsigned:
        add(value.number);
        break;
      case JsonScalar::Kind::Negative:
        add(-1);  // nothing that is read here may be negative: only the sign counts
        break;
      case JsonScalar::Kind::Real:
        add(value.real);
        break;
      case JsonScalar::Kind::String:
        add(std::string(value.text));
        break;
    }
  }

  // Elements of an open array are not moved while one of them is open: nothing is added then.
  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key(open_.size())] = std::move(value));
  }

  Json root_;
  std::vector<Json*> open_;
};

}  // namespace

bool JsonValue::is_null() const {
  return json_->is_null();
}

void JsonValue::refuse(ErrorCode code, const std::string& message) const {
  throw Error(code, message, place());
}

void JsonValue::refuse_type(const char* wanted) const {
  refuse(ErrorCode::BadValue, fmt::format("{} must stand here", wanted));
}

JsonValue JsonValue::at(std::string_view key) const {
  if (!json_->is_object()) refuse_type("an object");
  const auto found = json_->find(std::string(key));
  if (found == json_->end()) {
    refuse(ErrorCode::MissingKey,
           fmt::format("key '{}' is missing: the file was not written by this version", key));
  }
  return {*file_, *found, fmt::format("{}/{}", pointer_, pointer_token(key))};
}

std::vector<JsonValue> JsonValue::list() const {
  if (!json_->is_array()) refuse_type("an array");
  std::vector<JsonValue> values;
  values.reserve(json_->size());
  for (std::size_t i = 0; i < json_->size(); ++i) {
    values.emplace_back(*file_, (*json_)[i], fmt::format("{}/{}", pointer_, i));
  }
  return values;
}

std::string JsonValue::text() const {
  if (!json_->is_string()) refuse_type("a string");
  return json_->get<std::string>();
}

bool JsonValue::boolean() const {
  if (!json_->is_boolean()) refuse_type("true or false");
  return json_->get<bool>();
}

std::uint64_t JsonValue::count() const {
  if (!json_->is_number_unsigned()) refuse_type("a whole number from 0 on, of at most 64 bits,");
  return json_->get<std::uint64_t>();
}

double JsonValue::number(double least, double most) const {
  const double value = json_->is_number() ? json_->get<double>() : std::nan("");
  if (!(value >= least && value <= most)) {
    refuse_type(fmt::format("a number from {} to {}", least, most).c_str());
  }
  return value;
}

std::optional<double> JsonValue::number_or_null(double least, double most) const {
  if (is_null()) return std::nullopt;
  return number(least, most);
}

Hash128 JsonValue::hash() const {
  const Parsed<Hash128> hash = parse_hash(text());
  if (!hash) refuse(ErrorCode::BadValue, hash.error());
  return *hash;
}

JsonDocument::JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::parse(std::string_view text, std::string file) {
  JsonDocument document;
  document.file_ = std::make_unique<std::string>(std::move(file));
  document.json_ = std::make_unique<Json>(TreeBuilder(text, *document.file_).build());
  return document;
}

}  // namespace holdfast
