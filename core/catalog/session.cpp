#include "core/catalog/session.hpp"

#include "core/error.hpp"

namespace holdfast {

void validate(const SessionConfig& config) {
  if (config.window == 0) {
    throw Error(ErrorCode::BadValue, "a session's window must be at least one frame");
  }
  if (config.ack_delay < Time() || config.ack_delay >= config.timeout ||
      config.timeout > config.timeout_cap) {
    throw Error(ErrorCode::BadValue,
                "a session's times must be in the order 0 <= ack_delay < timeout <= timeout_cap, "
                "but they are " +
                    to_string(config.ack_delay) + ", " + to_string(config.timeout) + ", " +
                    to_string(config.timeout_cap));
  }
}

const char* to_string(FrameAnswer answer) {
  switch (answer) {
    case FrameAnswer::Taken:
      return "taken";
    case FrameAnswer::OtherKey:
      return "belongs to another epoch or incarnation";
    case FrameAnswer::Impossible:
      return "acknowledges what was never sent";
  }
  return "unknown";
}

}  // namespace holdfast
