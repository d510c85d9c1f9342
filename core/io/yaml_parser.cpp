#include "core/io/yaml_parser.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>

#include "core/quote.hpp"

namespace holdfast::yaml {
namespace {

// Reads a string_view without copying it.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    // The get area is never written to; the interface is older than const.
    char* begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

// Length of the UTF-8 sequence that starts `text`; zero if it is not a valid one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// What has to be known before yaml-cpp sees the text. It ends silently at a byte 0x04, and it holds
// all tokens of a flow collection until that closes, some 80 bytes each.
void check_text(std::string_view text, const std::string& file, const Limits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{} bytes of YAML; the limit is {}", text.size(), limits.bytes),
                Place{file, 0, 0, {}, {}});
  }
  Place place{file, 1, 1, {}, {}};
  std::size_t flow_indicators = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) {
      throw Error(ErrorCode::BadSyntax, "not valid UTF-8; save the file as UTF-8", place);
    }
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t' && c != '\r') || code == 0x7F) {
      throw Error(ErrorCode::BadSyntax, fmt::format("control character 0x{:02x}; remove it", code),
                  place);
    }
    if (c == '[' || c == ']' || c == '{' || c == '}' || c == ',') {
      if (++flow_indicators > limits.flow_indicators) {
        throw Error(ErrorCode::LimitExceeded,
                    fmt::format("more than {} of the characters [ ] {{ }} and comma; write long "
                                "lists one item a line, with a dash",
                                limits.flow_indicators),
                    place);
      }
    }
    at += length;
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    }
  }
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, const Limits& limits) : file_(file), limits_(limits) {}

  [[nodiscard]] Tree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      refuse(ErrorCode::BadSyntax, "a second document begins; write one document a file", mark);
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "?", anchor);
    add(mark, Kind::Null);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(ErrorCode::BadSyntax, "aliases (*name) are not supported; repeat the value", mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_plain(mark, tag, anchor);
    Tree& tree = add(mark, Kind::Scalar);
    tree.text = value;
    tree.quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Kind::List);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Kind::Map);
  }
  void OnMapEnd() override {
    Tree& map = *open_.back();
    check_keys(map);
    // A map begins where its first key does: yaml-cpp marks a block map at times with the end of
    // the line before.
    if (!map.children.empty()) {
      map.line = map.children.front().line;
      map.column = map.children.front().column;
    }
    open_.pop_back();
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, std::string message, int line, int column) const {
    throw Error(code, std::move(message), Place{file_, line, column, {}, {}});
  }
  [[noreturn]] void refuse(ErrorCode code, std::string message, const YAML::Mark& mark) const {
    refuse(code, std::move(message), mark.line + 1, mark.column + 1);
  }

  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      refuse(ErrorCode::BadSyntax, "anchors (&name) are not supported; repeat the value", mark);
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(ErrorCode::BadSyntax, "tags (!name) are not supported; leave it out", mark);
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    check_plain(mark, tag, anchor);
    if (open_.size() >= limits_.depth) {
      refuse(ErrorCode::LimitExceeded, fmt::format("nested deeper than {} levels", limits_.depth),
             mark);
    }
    open_.push_back(&add(mark, kind));
  }

  // The pointers in open_ stay valid: only the innermost open value gains children.
  Tree& add(const YAML::Mark& mark, Kind kind) {
    if (++values_ > limits_.values) {
      refuse(ErrorCode::LimitExceeded, fmt::format("more than {} values", limits_.values), mark);
    }
    if (!open_.empty() && open_.back()->kind == Kind::Map &&
        open_.back()->children.size() % 2 == 0 && kind != Kind::Scalar) {
      refuse(ErrorCode::BadSyntax, "a key must be a plain word", mark);
    }
    Tree& tree = open_.empty() ? root_ : open_.back()->children.emplace_back();
    tree.line = mark.line + 1;
    tree.column = mark.column + 1;
    tree.kind = kind;
    return tree;
  }

  // yaml-cpp keeps both of two equal keys.
  void check_keys(const Tree& map) const {
    std::vector<const Tree*> keys;
    keys.reserve(map.children.size() / 2);
    for (std::size_t i = 0; i < map.children.size(); i += 2) keys.push_back(&map.children[i]);
    std::stable_sort(keys.begin(), keys.end(),
                     [](const Tree* a, const Tree* b) { return a->text < b->text; });
    const auto same = std::adjacent_find(
        keys.begin(), keys.end(), [](const Tree* a, const Tree* b) { return a->text == b->text; });
    if (same == keys.end()) return;
    const Tree& first = **same;
    const Tree& second = **(same + 1);
    refuse(
        ErrorCode::Duplicate,
        fmt::format("key {} stands here and in line {}; keep one", quote(second.text), first.line),
        second.line, second.column);
  }

  const std::string& file_;
  const Limits& limits_;
  Tree root_;
  std::vector<Tree*> open_;  // from the root to the innermost list or map
  std::size_t values_ = 0;
  std::size_t documents_ = 0;
};

}  // namespace

Tree parse(std::string_view text, const std::string& file, const Limits& limits) {
  check_text(text, file, limits);
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  TreeBuilder builder(file, limits);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const bool placed = !error.mark.is_null();
    throw Error(
        ErrorCode::BadSyntax, fmt::format("not well-formed YAML: {}", error.msg),
        Place{file, placed ? error.mark.line + 1 : 0, placed ? error.mark.column + 1 : 0, {}, {}});
  }
  return builder.take();
}

}  // namespace holdfast::yaml
