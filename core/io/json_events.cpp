#include "core/io/json_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kDeepest = 64;

// Counts how far the parser has read, which its events do not tell.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  std::size_t* count_;
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

const char* to_string(JsonScalar::Kind kind) {
  switch (kind) {
    case JsonScalar::Kind::Null:
      return "null";
    case JsonScalar::Kind::Boolean:
      return "true or false";
    case JsonScalar::Kind::Unsigned:
      return "a number";
    case JsonScalar::Kind::Negative:
      return "a negative number";
    case JsonScalar::Kind::Real:
      return "a number that is no 64-bit integer";
    case JsonScalar::Kind::String:
      return "a string";
  }
  return "a value";
}

std::string pointer_token(std::string_view key) {
  std::string safe = quote(key);
  safe = safe.substr(1, safe.size() - 2);
  std::string token;
  for (const char c : safe) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

// Adapts the library's events: keeps the frames and the place of the current token.
class JsonEvents::Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(JsonEvents& events) : events_(events) {}

  bool null() override { return scalar({}); }
  bool boolean(bool value) override {
    return scalar({JsonScalar::Kind::Boolean, value ? 1U : 0U, 0, {}});
  }
  bool number_integer(std::int64_t) override {
    return scalar({JsonScalar::Kind::Negative, 0, 0, {}});
  }
  bool number_unsigned(std::uint64_t value) override {
    return scalar({JsonScalar::Kind::Unsigned, value, 0, {}});
  }
  bool number_float(double value, const std::string&) override {
    return scalar({JsonScalar::Kind::Real, 0, value, {}});
  }
  bool string(std::string& value) override {
    return scalar({JsonScalar::Kind::String, 0, 0, value});
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // never in JSON text

  bool start_object(std::size_t) override {
    open(false);
    events_.begin_object();
    return true;
  }
  bool start_array(std::size_t) override {
    open(true);
    events_.begin_array();
    return true;
  }
  bool key(std::string& name) override {
    next_token();
    Frame& frame = events_.frames_.back();
    frame.key = name;
    if (!frame.keys.insert(name).second) {
      events_.fail(ErrorCode::Duplicate,
                   fmt::format("the key {} is there twice; keep one", quote(name)));
    }
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's own place and the input it repeats are dropped: ours is in file coordinates.
    std::string_view why = error.what();
    if (const auto at = why.find("syntax error"); at != std::string_view::npos) {
      why.remove_prefix(at);
    } else if (const auto colon = why.rfind(": "); colon != std::string_view::npos) {
      why.remove_prefix(colon + 2);
    }
    why = why.substr(0, why.find("; last read"));
    const std::size_t at = position == 0 ? 0 : position - 1;
    throw Error(ErrorCode::BadSyntax, fmt::format("not well-formed JSON ({})", why.substr(0, 200)),
                events_.place(std::min(at, events_.text_.size()), events_.pointer()));
  }

 private:
  // Between two tokens stand only white space, commas and colons.
  void next_token() {
    const std::string_view text = events_.text_;
    std::size_t at = events_.before_;
    while (at < text.size() && (is_space(text[at]) || text[at] == ',' || text[at] == ':')) ++at;
    events_.token_ = at;
    events_.before_ = events_.consumed_;
  }
  void count_element() {
    if (!events_.frames_.empty()) ++events_.frames_.back().index;
  }
  bool scalar(const JsonScalar& value) {
    next_token();
    events_.scalar(value);
    count_element();
    return true;
  }
  void open(bool array) {
    next_token();
    if (events_.frames_.size() == kDeepest) {
      events_.fail(ErrorCode::LimitExceeded,
                   fmt::format("nested deeper than {} levels; write it flatter", kDeepest));
    }
    events_.frames_.emplace_back().array = array;
  }
  bool close() {
    next_token();
    events_.end();
    events_.frames_.pop_back();
    count_element();
    if (events_.frames_.empty()) check_rest();
    return true;
  }
  // The library takes a zero byte for the end of the text, so what follows is looked at here.
  void check_rest() {
    const std::string_view text = events_.text_;
    std::size_t at = events_.consumed_;
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) return;
    throw Error(ErrorCode::BadSyntax,
                "something follows the JSON document; only white space may (is the file damaged?)",
                events_.place(at, ""));
  }

  JsonEvents& events_;
};

JsonEvents::JsonEvents(std::string_view text, std::string file, Places places, std::uint64_t start)
    : text_(text), file_(std::move(file)), places_(places), start_(start) {}

void JsonEvents::read() {
  Handler handler(*this);
  consumed_ = before_ = token_ = 0;
  const char* end = text_.data() + text_.size();
  nlohmann::json::sax_parse(CountingIterator(text_.data(), &consumed_),
                            CountingIterator(end, &consumed_), &handler);
}

std::string JsonEvents::pointer() const {
  constexpr std::size_t kLongest = 300;
  std::string pointer;
  for (const Frame& frame : frames_) {
    if (!frame.array && frame.key.empty() && frame.keys.empty()) break;  // before the first key
    pointer += '/';
    pointer += frame.array ? std::to_string(frame.index) : pointer_token(frame.key);
    if (pointer.size() > kLongest) return pointer.substr(0, kLongest) + "...";
  }
  return pointer;
}

Place JsonEvents::place() const {
  return place(token_, pointer());
}

Place JsonEvents::place(std::size_t token, std::string pointer) const {
  Place place;
  place.file = file_;
  place.pointer = std::move(pointer);
  if (places_ == Places::ByteOffset) {
    place.offset = start_ + token;
    return place;
  }
  const std::string_view before = text_.substr(0, token);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 if there is none
  place.line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  place.column = static_cast<int>(token - line_start) + 1;
  return place;
}

void JsonEvents::fail(ErrorCode code, const std::string& message) const {
  throw Error(code, message, place());
}

}  // namespace holdfast
