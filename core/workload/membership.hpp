// Who is there when: workers of an elastic pool come, are told that they will lose their machine,
// leave and vanish. A seat is a place for one replica (a group of workers that hold one copy); its
// number is all that is known of it here.
//
//   SpotProcess process;
//   process.arrivals_per_hour = 30;
//   process.lifetime = Distribution::exponential(3600);  // seconds
//   for (const MemberEvent& event : spot_events(process, 64, seconds(7200), seed)) ...
//
// Pure functions; deterministic for a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "core/workload/distribution.hpp"

namespace holdfast {

enum class MemberEventKind {
  Join,    // the replica's workers start and hold nothing
  Notice,  // its provider says that it will be taken away; it goes on until then
  Leave,   // it leaves by itself, as the protocol wants it
  Kill,    // it is gone without another word
};

[[nodiscard]] const char* to_string(MemberEventKind kind);  // "join", "notice", "leave", "kill"
[[nodiscard]] Parsed<MemberEventKind> parse_member_event(std::string_view name);

struct MemberEvent {
  Time at;
  MemberEventKind kind = MemberEventKind::Join;
  std::uint32_t seat = 0;
  Time gone;  // Notice: when it is taken away, never() if nothing says; elsewhere without meaning
  friend bool operator==(const MemberEvent&, const MemberEvent&) = default;
};

// Spot machines as clouds offer them: offers come at random (a Poisson process) and take the lowest
// free seat; an offer that finds none is lost. Each machine stays for a drawn lifetime and is then
// taken away, most of them after a notice.
struct SpotProcess {
  double arrivals_per_hour = 0;  // of the whole pool; zero: nobody but those of the beginning
  std::uint32_t initial = 0;     // seats taken at time zero, the lowest ones
  Distribution lifetime = Distribution::exponential(3600);  // seconds
  Time notice;                    // before the end; zero: none. A shorter life is told at its start
  std::uint32_t unannounced = 0;  // share that gets no notice, in millionths
};

// Events below `horizon`, by time, then seat, then as they follow each other. A longer horizon only
// appends. Each seat alternates Join, [Notice,] Kill. At most `kMostMemberEvents` (a process that
// wants more is cut there). O(events x log seats).
inline constexpr std::size_t kMostMemberEvents = 1'000'000;
[[nodiscard]] std::vector<MemberEvent> spot_events(const SpotProcess& process, std::uint32_t seats,
                                                   Time horizon, std::uint64_t seed);

// What is wrong with a history: the index of the first event that cannot be, and why. Times must
// not fall, who joins is not there, everything else happens to who is there, and a second notice
// means nothing. `present`: the seats at the start. O(events).
struct MemberFault {
  std::size_t index = 0;
  std::string message;
};
[[nodiscard]] std::optional<MemberFault> fault_of(std::span<const MemberEvent> events,
                                                  std::vector<char> present);

}  // namespace holdfast
