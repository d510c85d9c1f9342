// The one exception of Holdfast: set-up, parsing and configuration throw it; expected outcomes
// (infeasible, unsupported) are values and never come this way.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace holdfast {

enum class ErrorCode {
  BadUnit,         // a quantity that does not parse or is out of range
  BadSyntax,       // YAML, JSON or binary input that is not well-formed
  BadValue,        // well-formed, but a value that makes no sense there
  UnknownKey,      // a key that no reader knows
  MissingKey,      // a key that must be there
  NoEffect,        // a key that would change nothing in this input
  Duplicate,       // two things of one name
  UnknownName,     // a reference to nothing
  BadTopology,     // disconnected, zero capacity, uneven division ...
  BadWeights,      // a manifest, safetensors file or layout that cannot be used
  LayoutMismatch,  // a layout would separate a segment, or does not divide the model
  BadPlan,         // a plan file that does not match its format
  LimitExceeded,   // over a documented input limit
  FileNotFound,
  FileUnreadable,
  FileUnwritable,
  Unsupported,  // valid input that this version cannot carry out
};

// Where in an input something is wrong. Fields that do not apply stay empty: YAML and JSON syntax
// have line and column (both from 1), JSON meaning has a pointer, binary input has a byte offset.
struct Place {
  std::string file{};
  int line = 0;
  int column = 0;
  std::string pointer{};
  std::optional<std::uint64_t> offset{};
};

// "file:line:column", "file (at /pointer)" or "file (byte 17)"; empty for an empty place.
[[nodiscard]] std::string to_string(const Place& place);
[[nodiscard]] const char* to_string(ErrorCode code);

class Error : public std::exception {
 public:
  // `message` says what was wrong and what to write instead, without the place.
  Error(ErrorCode code, std::string message, Place place = {});

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const Place& place() const { return place_; }
  // "place: message [code]"
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  Place place_;
  std::string what_;
};

}  // namespace holdfast
