#include "sim/run_in_child.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/error.hpp"
#include "sim/child_process.hpp"

namespace holdfast::sim {
namespace {

enum class FrameKind : std::uint8_t { Progress = 1, Result, Refused };

// A child reports progress now and then: a silence this long means that it hangs.
constexpr int kSilenceMs = 10 * 60 * 1000;

void send(ChildProcess::Channel& out, FrameKind kind, std::span<const std::byte> payload) {
  out.send(static_cast<std::uint8_t>(kind), payload);
}

void send_refusal(ChildProcess::Channel& out, const Error& error) {
  std::vector<std::byte> payload(1 + error.message().size());
  payload[0] = static_cast<std::byte>(error.code());
  std::memcpy(payload.data() + 1, error.message().data(), error.message().size());
  send(out, FrameKind::Refused, payload);
}

using Work = std::function<std::vector<std::byte>(const ProgressFunction&)>;

void carry_out(ChildProcess::Channel& out, const Work& work) {
  try {
    const std::vector<std::byte> result = work([&out](double fraction) {
      std::array<std::byte, sizeof(double)> payload;
      std::memcpy(payload.data(), &fraction, sizeof(fraction));
      send(out, FrameKind::Progress, payload);
    });
    send(out, FrameKind::Result, result);
  } catch (const Error& error) {
    send_refusal(out, error);
  }
}

}  // namespace

std::vector<std::byte> run_in_a_child(const ProgressFunction& progress, const Work& work) {
  ChildProcess child([&](ChildProcess::Channel& out) { carry_out(out, work); });
  while (auto frame = child.next(kSilenceMs)) {
    switch (static_cast<FrameKind>(frame->kind)) {
      case FrameKind::Progress: {
        double fraction = 0;
        if (frame->payload.size() == sizeof(fraction) && progress) {
          std::memcpy(&fraction, frame->payload.data(), sizeof(fraction));
          progress(fraction);
        }
        break;
      }
      case FrameKind::Result:
        return std::move(frame->payload);
      case FrameKind::Refused: {
        if (frame->payload.empty()) break;
        const auto* text = reinterpret_cast<const char*>(frame->payload.data());
        throw Error(static_cast<ErrorCode>(frame->payload[0]),
                    std::string(text + 1, frame->payload.size() - 1));
      }
    }
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("the simulation process ended without a result: {}; this is a fault of "
                          "the program or of SimGrid, please report it with the scenario",
                          child.how_it_ended()));
}

}  // namespace holdfast::sim
