#include "core/io/yaml_document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/io/text_file.hpp"
#include "core/io/yaml_parser.hpp"
#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

const char* noun(yaml::Kind kind) {
  switch (kind) {
    case yaml::Kind::Null:
      return "nothing";
    case yaml::Kind::Scalar:
      return "a single value";
    case yaml::Kind::List:
      return "a list";
    case yaml::Kind::Map:
      return "a map of keys";
  }
  return "something else";
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.:/+@#").find(c) != std::string_view::npos;
}

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void YamlValue::refuse(ErrorCode code, std::string_view message) const {
  throw Error(code,
              label_.empty() ? std::string(message) : fmt::format("{}: {}", quote(label_), message),
              place());
}

void YamlValue::refuse_kind(std::string_view wanted) const {
  refuse(ErrorCode::BadValue, fmt::format("{} stands here; write {}", noun(tree_->kind), wanted));
}

const std::string& YamlValue::scalar(std::string_view wanted) const {
  if (tree_->kind != yaml::Kind::Scalar) refuse_kind(wanted);
  return tree_->text;
}

std::string YamlValue::text() const {
  const std::string& text = scalar("a text");
  if (text.empty()) refuse(ErrorCode::BadValue, "the text is empty; write at least one character");
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7F) {
      refuse(ErrorCode::BadValue, fmt::format("the text holds a control character (0x{:02x}); "
                                              "remove it",
                                              code));
    }
  }
  return text;
}

std::string YamlValue::name() const {
  const std::string& name = scalar("a name");
  constexpr std::size_t kLongest = 200;
  if (name.empty()) refuse(ErrorCode::BadValue, "the name is empty");
  if (name.size() > kLongest) {
    refuse(ErrorCode::BadValue, fmt::format("the name {} has {} characters; at most {}",
                                            quote(name), name.size(), kLongest));
  }
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    refuse(ErrorCode::BadValue,
           fmt::format("{} is not a name; use letters, digits and _ - . : / + @ #", quote(name)));
  }
  return name;
}

std::int64_t YamlValue::integer(std::int64_t least, std::int64_t most) const {
  const std::string wanted = fmt::format("a whole number from {} to {}", least, most);
  const std::string& text = scalar(wanted);
  const auto value = parse_whole<std::int64_t>(text);
  if (tree_->quoted || !value) {
    refuse(ErrorCode::BadValue, fmt::format("{} is not a whole number; write {}{}", quote(text),
                                            wanted, tree_->quoted ? ", without quotes" : ""));
  }
  if (*value < least || *value > most) {
    refuse(ErrorCode::BadValue, fmt::format("{} is out of range; write {}", *value, wanted));
  }
  return *value;
}

double YamlValue::number(double least, double most) const {
  const std::string wanted = fmt::format("a number from {} to {}", least, most);
  const std::string& text = scalar(wanted);
  const auto value = parse_whole<double>(text);
  if (tree_->quoted || !value || !std::isfinite(*value)) {
    refuse(ErrorCode::BadValue, fmt::format("{} is not a number; write {}{}", quote(text), wanted,
                                            tree_->quoted ? ", without quotes" : ""));
  }
  if (*value < least || *value > most) {
    refuse(ErrorCode::BadValue, fmt::format("{} is out of range; write {}", *value, wanted));
  }
  return *value;
}

bool YamlValue::boolean() const {
  const std::string& text = scalar("true or false");
  if (!tree_->quoted && text == "true") return true;
  if (!tree_->quoted && text == "false") return false;
  refuse(ErrorCode::BadValue, fmt::format("{} is neither true nor false; write one of them{}",
                                          quote(text), tree_->quoted ? ", without quotes" : ""));
}

Bytes YamlValue::bytes(Zero zero) const {
  const auto value = parse_bytes(scalar("bytes with a unit, such as 4MiB"));
  if (!value) refuse(ErrorCode::BadUnit, value.error());
  if (zero == Zero::Refused && *value == Bytes(0)) {
    refuse(ErrorCode::BadValue, "zero makes no sense here; write for example 4MiB");
  }
  return *value;
}

Rate YamlValue::rate(Zero zero) const {
  const auto value = parse_rate(scalar("a rate with a unit, such as 400Gbps or 50GB/s"));
  if (!value) refuse(ErrorCode::BadUnit, value.error());
  if (zero == Zero::Refused && *value == Rate(0)) {
    refuse(ErrorCode::BadValue, "zero makes no sense here; write for example 400Gbps or 50GB/s");
  }
  return *value;
}

Time YamlValue::time(Zero zero) const {
  const auto value = parse_time(scalar("a time with a unit, such as 15ms"));
  if (!value) refuse(ErrorCode::BadUnit, value.error());
  if (zero == Zero::Refused && *value == Time(0)) {
    refuse(ErrorCode::BadValue, "zero makes no sense here; write for example 15ms");
  }
  return *value;
}

std::vector<YamlValue> YamlValue::list() const {
  if (tree_->kind != yaml::Kind::List) refuse_kind("a list: items with a dash, or [a, b]");
  std::vector<YamlValue> items;
  items.reserve(tree_->children.size());
  for (const yaml::Tree& child : tree_->children) items.emplace_back(*file_, child, label_);
  return items;
}

YamlMap YamlValue::map() const {
  if (tree_->kind != yaml::Kind::Map) refuse_kind("a map: lines of 'key: value'");
  return YamlMap(*this);
}

std::size_t YamlValue::index_of(const std::vector<std::string>& names) const {
  const std::string& text = scalar(fmt::format("one of {}", fmt::join(names, ", ")));
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    refuse(ErrorCode::BadValue,
           fmt::format("{} is not known here{}", quote(text), suggestion(text, names)));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::optional<std::size_t> YamlMap::index(std::string_view key) const {
  const std::vector<yaml::Tree>& children = value_.tree_->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    if (children[i].text == key) return i;
  }
  return std::nullopt;
}

std::optional<YamlValue> YamlMap::find(std::string_view key) {
  known_.push_back(key);
  const auto at = index(key);
  if (!at) return std::nullopt;
  asked_[*at] = true;
  const std::vector<yaml::Tree>& children = value_.tree_->children;
  return YamlValue(*value_.file_, children[*at + 1], children[*at].text);
}

YamlValue YamlMap::require(std::string_view key) {
  if (const auto found = find(key)) return *found;
  // A key that nobody has asked for yet may be this one, misspelt; the reader's error says so.
  std::vector<std::string> unasked;
  for (std::size_t i = 0; i < asked_.size(); i += 2) {
    if (!asked_[i]) unasked.push_back(value_.tree_->children[i].text);
  }
  const auto near = nearest(key, unasked);
  value_.refuse(ErrorCode::MissingKey,
                fmt::format("key '{}' is missing{}", key,
                            near ? fmt::format("; is {} meant to be it?", quote(*near)) : ""));
}

void YamlMap::no_effect(std::string_view key, std::string_view because) {
  if (!find(key)) return;
  const yaml::Tree& written = value_.tree_->children[*index(key)];
  YamlValue(*value_.file_, written, written.text)
      .refuse(ErrorCode::NoEffect,
              fmt::format("this key changes nothing, because {}; leave it out", because));
}

std::vector<std::pair<YamlValue, YamlValue>> YamlMap::entries() {
  const std::vector<yaml::Tree>& children = value_.tree_->children;
  std::vector<std::pair<YamlValue, YamlValue>> all;
  all.reserve(children.size() / 2);
  for (std::size_t i = 0; i < children.size(); i += 2) {
    asked_[i] = true;
    all.emplace_back(YamlValue(*value_.file_, children[i], value_.label_),
                     YamlValue(*value_.file_, children[i + 1], children[i].text));
  }
  return all;
}

void YamlMap::finish() const {
  const std::vector<yaml::Tree>& children = value_.tree_->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    if (asked_[i]) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    YamlValue(*value_.file_, children[i], value_.label_)
        .refuse(ErrorCode::UnknownKey, fmt::format("unknown key {}{}", quote(children[i].text),
                                                   suggestion(children[i].text, known)));
  }
}

YamlDocument YamlDocument::parse(std::string_view text, std::string name) {
  YamlDocument document;
  document.file_ = std::make_unique<std::string>(std::move(name));
  document.tree_ = std::make_unique<yaml::Tree>(yaml::parse(text, *document.file_));
  return document;
}

YamlDocument YamlDocument::load(const std::string& path) {
  return parse(read_text_file(path, yaml::Limits().bytes), path);
}

}  // namespace holdfast
