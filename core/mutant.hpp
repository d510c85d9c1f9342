// Deliberate defects, one at a time, to see that the fuzzer finds them (tests/storm/mutants.sh).
//
// A normal build has none: the constant is Mutant::None, and `if constexpr` leaves nothing of the
// hooks. A build with -DHOLDFAST_MUTANT=SkipDrain has that one.
#pragma once

#ifndef HOLDFAST_MUTANT
#define HOLDFAST_MUTANT None
#endif

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

inline constexpr Mutant kMutant = Mutant::HOLDFAST_MUTANT;

[[nodiscard]] constexpr bool mutated(Mutant mutant) {
  return kMutant == mutant && mutant != Mutant::None;
}

}  // namespace holdfast
