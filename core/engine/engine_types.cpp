#include "core/engine/engine_types.hpp"

#include <fmt/format.h>

namespace holdfast {

const char* to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::ReadFailed:
      return "ReadFailed";
    case FailureKind::DigestMismatch:
      return "DigestMismatch";
    case FailureKind::SourceLost:
      return "SourceLost";
    case FailureKind::NoProgress:
      return "NoProgress";
  }
  return "unknown";
}

std::string to_string(const EngineFailure& failure) {
  std::string text = fmt::format(
      "{}: worker {} needs block {} (stripe {}) from worker {}: ", to_string(failure.kind),
      failure.worker.value(), failure.block.value(), failure.stripe.value(),
      failure.source.value());
  switch (failure.kind) {
    case FailureKind::ReadFailed:
      text += fmt::format("the read ended with '{}'", to_string(failure.status));
      break;
    case FailureKind::DigestMismatch:
      text += fmt::format("its digest is {:016x}, the version's is {:016x}", failure.found,
                          failure.expected);
      break;
    case FailureKind::SourceLost:
      text += "that worker is gone";
      break;
    case FailureKind::NoProgress:
      text += fmt::format("nothing arrived for {}", rounded(failure.waited));
      break;
  }
  return text;
}

}  // namespace holdfast
