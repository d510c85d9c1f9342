#include "core/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace holdfast {

std::string to_string(const Place& place) {
  std::string text = place.file;
  if (place.line > 0) {
    text += text.empty() ? fmt::format("line {}", place.line) : fmt::format(":{}", place.line);
    if (place.column > 0) text += fmt::format(":{}", place.column);
  }
  if (!place.pointer.empty()) {
    text += fmt::format("{}(at {})", text.empty() ? "" : " ", place.pointer);
  }
  if (place.offset) text += fmt::format("{}(byte {})", text.empty() ? "" : " ", *place.offset);
  return text;
}

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::BadUnit:
      return "BadUnit";
    case ErrorCode::BadSyntax:
      return "BadSyntax";
    case ErrorCode::BadValue:
      return "BadValue";
    case ErrorCode::UnknownKey:
      return "UnknownKey";
    case ErrorCode::MissingKey:
      return "MissingKey";
    case ErrorCode::NoEffect:
      return "NoEffect";
    case ErrorCode::Duplicate:
      return "Duplicate";
    case ErrorCode::UnknownName:
      return "UnknownName";
    case ErrorCode::BadTopology:
      return "BadTopology";
    case ErrorCode::BadWeights:
      return "BadWeights";
    case ErrorCode::LayoutMismatch:
      return "LayoutMismatch";
    case ErrorCode::BadPlan:
      return "BadPlan";
    case ErrorCode::LimitExceeded:
      return "LimitExceeded";
    case ErrorCode::FileNotFound:
      return "FileNotFound";
    case ErrorCode::FileUnreadable:
      return "FileUnreadable";
    case ErrorCode::FileUnwritable:
      return "FileUnwritable";
    case ErrorCode::Unsupported:
      return "Unsupported";
  }
  return "Unknown";
}

Error::Error(ErrorCode code, std::string message, Place place)
    : code_(code), message_(std::move(message)), place_(std::move(place)) {
  const std::string where = to_string(place_);
  what_ = fmt::format("{}{}{} [{}]", where, where.empty() ? "" : ": ", message_, to_string(code_));
}

}  // namespace holdfast
