#include "core/engine/transport.hpp"

namespace holdfast {

const char* to_string(ReadStatus status) {
  switch (status) {
    case ReadStatus::Ok:
      return "ok";
    case ReadStatus::DeadlineExceeded:
      return "deadline exceeded";
    case ReadStatus::Cancelled:
      return "cancelled";
    case ReadStatus::PeerGone:
      return "peer gone";
    case ReadStatus::AccessDenied:
      return "access denied";
    case ReadStatus::OutOfRange:
      return "out of range";
  }
  return "unknown";
}

}  // namespace holdfast
