// YAML in which every value knows its place, and in which nothing is ignored.
//
// A document is parsed into a tree of its own (yaml-cpp delivers the events), so that hostile input
// is cut short while it is being read. Refused, each with file:line:column: duplicate keys,
// anchors, aliases, tags, several documents, control characters, invalid UTF-8, nesting deeper than
// 64, more than 64 MB, 4 million values or 2 million flow indicators ("[]{},").
//
// A reader asks a map for the keys that it knows and then calls `finish`, which refuses those that
// nobody asked for and names the nearest known one. A key that is known but would change nothing is
// refused with `no_effect`. Getters throw Error with the place of the value and say what to write.
//
//   const YamlDocument document = YamlDocument::load("cluster.yaml");
//   YamlMap map = document.root().map();
//   const Rate capacity = map.require("capacity").rate(Zero::Refused);
//   const std::int64_t count = map.require("count").integer(1, 4096);
//   if (count == 1) map.no_effect("spread", "there is only one");
//   map.finish();
//
// Values and maps are views: the document must outlive them. Thread safety: const members may be
// called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace holdfast {

namespace yaml {

enum class Kind : std::uint8_t { Null, Scalar, List, Map };

// One value of the tree. A map's children are key, value, key, value ...
struct Tree {
  std::string text;
  std::vector<Tree> children;
  int line = 0;  // from 1
  int column = 0;
  Kind kind = Kind::Null;
  bool quoted = false;
};

}  // namespace yaml

class YamlMap;

enum class Zero { Allowed, Refused };

class YamlValue {
 public:
  // `label` names the value in messages; the key under which it stands.
  YamlValue(const std::string& file, const yaml::Tree& tree, std::string_view label)
      : file_(&file), tree_(&tree), label_(label) {}

  [[nodiscard]] Place place() const { return {*file_, tree_->line, tree_->column, {}, {}}; }
  [[nodiscard]] std::string_view label() const { return label_; }
  [[nodiscard]] bool is_null() const { return tree_->kind == yaml::Kind::Null; }
  [[nodiscard]] bool is_scalar() const { return tree_->kind == yaml::Kind::Scalar; }
  [[nodiscard]] bool is_list() const { return tree_->kind == yaml::Kind::List; }
  [[nodiscard]] bool is_map() const { return tree_->kind == yaml::Kind::Map; }

  // Free text: any scalar that is not empty; line breaks allowed, no other control characters.
  [[nodiscard]] std::string text() const;
  // A name: 1 to 200 letters, digits or any of "_-.:/+@#" (what needs no escaping in a table, a
  // path or JSON).
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
  // For fractions and factors; never for bytes, rates or times.
  [[nodiscard]] double number(double least, double most) const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] Bytes bytes(Zero zero = Zero::Allowed) const;
  [[nodiscard]] Rate rate(Zero zero = Zero::Allowed) const;
  [[nodiscard]] Time time(Zero zero = Zero::Allowed) const;
  // One of the given words.
  template <class E>
  [[nodiscard]] E one_of(const std::vector<std::pair<std::string, E>>& words) const {
    std::vector<std::string> names;
    names.reserve(words.size());
    for (const auto& word : words) names.push_back(word.first);
    return words[index_of(names)].second;
  }
  // Items in order; refused if it is not a list. An empty list is a list.
  [[nodiscard]] std::vector<YamlValue> list() const;
  [[nodiscard]] YamlMap map() const;

  // Throws Error(code, "'label': message") with this place.
  [[noreturn]] void refuse(ErrorCode code, std::string_view message) const;

 private:
  friend class YamlMap;
  [[nodiscard]] const std::string& scalar(std::string_view wanted) const;
  [[nodiscard]] std::size_t index_of(const std::vector<std::string>& names) const;
  [[noreturn]] void refuse_kind(std::string_view wanted) const;

  const std::string* file_;
  const yaml::Tree* tree_;
  std::string_view label_;
};

class YamlMap {
 public:
  explicit YamlMap(const YamlValue& value) : value_(value), asked_(value.tree_->children.size()) {}

  [[nodiscard]] Place place() const { return value_.place(); }
  [[nodiscard]] const YamlValue& value() const { return value_; }
  [[nodiscard]] bool has(std::string_view key) const { return index(key).has_value(); }

  // The value of a key; `key` must outlive the map (write a literal).
  [[nodiscard]] std::optional<YamlValue> find(std::string_view key);
  // The same, MissingKey if it is not there.
  [[nodiscard]] YamlValue require(std::string_view key);
  // For a key that is known, but changes nothing here: throws NoEffect if it is there.
  void no_effect(std::string_view key, std::string_view because);
  // Every key with its value, in the order of the text: for maps whose keys are names. They all
  // count as asked for.
  [[nodiscard]] std::vector<std::pair<YamlValue, YamlValue>> entries();

  // Throws UnknownKey at the first key that nobody asked for. Call it last.
  void finish() const;

 private:
  [[nodiscard]] std::optional<std::size_t> index(std::string_view key) const;

  YamlValue value_;
  std::vector<bool> asked_;              // by position of the key among the children
  std::vector<std::string_view> known_;  // keys that were asked for, present or not
};

class YamlDocument {
 public:
  // `name` stands for the file in messages.
  [[nodiscard]] static YamlDocument parse(std::string_view text, std::string name);
  [[nodiscard]] static YamlDocument load(const std::string& path);

  [[nodiscard]] YamlValue root() const { return {*file_, *tree_, ""}; }
  [[nodiscard]] const std::string& file() const { return *file_; }

 private:
  YamlDocument() = default;
  // Behind pointers so that views stay valid when the document moves.
  std::unique_ptr<std::string> file_;
  std::unique_ptr<yaml::Tree> tree_;
};

}  // namespace holdfast
