// Strict reading of JSON as events, for input that nobody vouches for.
//
// Refused, each with its place: what is not well-formed (bytes that are not UTF-8 included), a key
// that is there twice in one object, nesting beyond 64 levels, and anything but white space after
// the document. Memory grows with the keys of the open objects only; no document is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/error.hpp"

namespace holdfast {

struct JsonScalar {
  enum class Kind { Null, Boolean, Unsigned, Negative, Real, String };
  Kind kind = Kind::Null;
  std::uint64_t number = 0;  // Unsigned; Boolean: 1 for true
  double real = 0;           // Real; an integer beyond 64 bits comes as one
  std::string_view text;     // String; valid during the event
};

// "a string", "a negative number", ...
[[nodiscard]] const char* to_string(JsonScalar::Kind kind);

class JsonEvents {
 public:
  JsonEvents(const JsonEvents&) = delete;
  JsonEvents& operator=(const JsonEvents&) = delete;
  virtual ~JsonEvents() = default;

 protected:
  // `text` is one file, or from byte `start` on a part of it, and must outlive the reader.
  // Places of errors are line and column for text files, byte offsets for binary ones.
  enum class Places { LineAndColumn, ByteOffset };
  JsonEvents(std::string_view text, std::string file, Places places, std::uint64_t start = 0);

  // Reads it all. Throws Error, or what the event functions throw.
  void read();

  // The events. During `begin_*` and `end` the container itself is the innermost one.
  virtual void begin_object() = 0;
  virtual void begin_array() = 0;
  virtual void end() = 0;
  virtual void scalar(const JsonScalar& value) = 0;

  // Open containers, the root's included.
  [[nodiscard]] std::size_t depth() const { return frames_.size(); }
  // The key last read in the open object of a level (from 1, the root).
  [[nodiscard]] const std::string& key(std::size_t level) const { return frames_[level - 1].key; }
  // Where the token of the event begins in `text`.
  [[nodiscard]] std::size_t token() const { return token_; }
  [[nodiscard]] Place place() const;
  // The place of a token that was seen earlier.
  [[nodiscard]] Place place(std::size_t token, std::string pointer) const;
  [[noreturn]] void fail(ErrorCode code, const std::string& message) const;

 private:
  class Handler;
  struct Frame {
    bool array = false;
    std::size_t index = 0;  // of the next element
    std::string key;
    std::unordered_set<std::string> keys;
  };
  [[nodiscard]] std::string pointer() const;

  std::string_view text_;
  std::string file_;
  Places places_;
  std::uint64_t start_;
  std::vector<Frame> frames_;
  std::size_t consumed_ = 0;  // bytes that the parser has taken
  std::size_t before_ = 0;    // the same when the token before was complete
  std::size_t token_ = 0;
};

// A JSON pointer's reference token (RFC 6901), safe to print.
[[nodiscard]] std::string pointer_token(std::string_view key);

}  // namespace holdfast
