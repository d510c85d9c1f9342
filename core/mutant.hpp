// Deliberate defects, one at a time, to see that the fuzzer finds them
// (tests/storm/storm_mutants.cpp).
//
// A normal build has none: `mutated` is a constant, and nothing is left of the hooks. A build with
// -DHOLDFAST_MUTANTS=ON (preset `mutants`) has all of them, and one is planted at a time.
#pragma once

namespace holdfast {

enum class Mutant {
  None,
  SkipDrain,              // a buffer is given back while it is read
  SkipEpochCheck,         // commands of a coordinator that is gone count
  SkipIncarnationCheck,   // words of a worker's former life count
  CountSpot,              // a spot worker counts as a safe holder
  CountPartial,           // a part of a shard counts as a holder of it
  ServeUnverified,        // a block is offered before its digest is known to be right
  LoseWakeUp,             // who waits for a source is forgotten when one comes
  RedecideAfterRestart,   // a new coordinator decides again what was decided
  ReaskBeforeCompletion,  // a block is asked for again before its read has ended
  KeepDeadLease,          // a dead reader's grant stays
  InPlaceBeforeOffload,   // a retained copy is overwritten before enough others are there
  AcceptSecondRoot,       // a version gets other bytes than it had
};

inline constexpr int kMutants = 13;  // None included

#ifdef HOLDFAST_MUTANTS
inline Mutant planted = Mutant::None;  // of this process
[[nodiscard]] inline bool mutated(Mutant mutant) {
  return planted == mutant;
}
#else
[[nodiscard]] constexpr bool mutated(Mutant /*mutant*/) {
  return false;
}
#endif

}  // namespace holdfast
