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

std::string to_string(const EngineFailure& failure, const WorkerName& name_of) {
  const auto name = [&](WorkerId worker) {
    return name_of ? name_of(worker) : fmt::format("worker {}", worker.value());
  };
  std::string text = fmt::format(
      "{}: {} needs block {} (stripe {}) from {}: ", to_string(failure.kind), name(failure.worker),
      failure.block.value(), failure.stripe.value(), name(failure.source));
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
