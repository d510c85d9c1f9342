// Carries out one worker's part of a plan: a passive state machine without clock, thread or input
// and output of its own. Simulation and hardware run the same object through the same loop
// (loop.hpp).
//
// Rules
//   1. Reads are posted in ascending order on each edge, at most `window` of them not yet here.
//   2. A block is read when its parent is known to have it: from the start where the parent is a
//      holder, otherwise after the parent said so (message.hpp).
//   3. A block counts, and is offered to children, only after its digest was right (at once where
//      the demand says not to verify).
//   4. Children hear of a verified block at once, unless the last message to that child is younger
//      than the edge's have interval; then what comes until that time is told in one message. Each
//      message repeats the 64 to 127 blocks before its news.
//   5. Who waits for word from a parent asks again: `ask_interval` after the parent's last news (or
//      16 have intervals, if that is more), then twice as long each time up to `ask_interval_most`.
//   6. Every wait has a deadline: a read its own, everything together `no_progress`. After that all
//      parents are given up (rule 7) or, where nobody gives others, the engine ends: Failed is its
//      last command. When a read ran out of its time, later ones get twice as much, up to half of
//      `no_progress`: many readers may queue at one source, more than any plan knows of, and with
//      less time than the queue takes each would lose its place for ever.
//   7. A parent is given up when it is lost (WorkerLost, PeerGone), when a read of it fails, when a
//      block of it has the wrong digest, and when nothing comes of anybody (rule 6). The assignment
//      then turns to an alternate by itself (Reparented): the plan's, else those of
//      `add_alternate`, in the order in which they came (once the stripe was dropped or given anew:
//      those that were named after that alone); never to one that is lost or was given up for this
//      stripe. With nobody left it says NeedParent and waits for `assign` or `add_alternate`. What
//      is verified is never read again.
//   8. A local range has at most one read: who reads blocks that an earlier parent was asked for
//      waits until those reads and digests are done; they are cancelled, and count if they come.
//   9. A source is slow when a read of it is open and nothing came of it for four planned block
//      times (and at least `least_slow_time`): SlowSource is said once, and again only after four
//      blocks came in at most eight block times. It goes on reading: slow is not dead.
//  10. Who is a child's alternate in the plan, or was told to expect it, takes it as a child when
//      that asks.
//  11. At most `peer_reads` reads are open at one parent, and `port_reads` or `port_bytes` at one
//      port of ours; assignments that this holds up take turns.
//
// Memory beside the shared tables: two bits a block of the stripes it receives (verified; offered
// by the parent), about 110 bytes an assignment and 60 a child; below 4 KiB for the plans of this
// library's planners, a star's root excepted (whose children need no words: they take no memory
// either). Complexity: O(1) amortised a block and child, no allocation once the commands' vector
// has grown. Deterministic. One thread at a time; the tables may be shared between threads.
//
//   WorkerEngine engine(tables, WorkerId(3U), {});
//   Time next = engine.step(TimePassed{}, now, commands);  // posts the first reads
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/engine_types.hpp"
#include "core/engine/message.hpp"
#include "core/engine/update_tables.hpp"

namespace holdfast {

struct EngineConfig {
  Time read_deadline = seconds(600);            // of one block, from its post; see rule 6
  Time no_progress = seconds(1'200);            // see EngineFailure::waited
  Time least_have_interval = microseconds(20);  // raises the have interval of fast edges
  Time ask_interval = milliseconds(100);
  Time ask_interval_most = seconds(10);
  Time retry_interval = microseconds(100);   // after WouldBlock with no read open
  Time least_slow_time = milliseconds(100);  // see rule 9
  // Open reads (of blocks): rule 11. A port or peer without any is always given one.
  std::uint32_t peer_reads = 1'024;
  std::uint32_t port_reads = 4'096;
  Bytes port_bytes = Bytes(std::uint64_t{4} << 30);
  // False: nobody hears NeedParent, and the engine ends where it would say it.
  bool await_parent = true;
};

// Blocks from .. to - 1 of a stripe (in its own order) from one parent.
struct Assignment {
  StripeId stripe;
  WorkerId parent;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t window = 2;
  bool parent_has_all = false;  // a holder: no word needed
  Path path;                    // from the parent's port to ours
  Time have_interval;           // as planned for the edge: the parent is not silent for less
  Time block_time = {};         // as planned; zero: the parent is never slow
};

// Somebody who reads a stripe from us.
struct Child {
  StripeId stripe;
  WorkerId worker;
  Path path;  // from our port to the child's
  Time have_interval;
};

class WorkerEngine {
 public:
  // Takes over the worker's edges of the plan, both ways. Children of a holder are left out.
  WorkerEngine(std::shared_ptr<const UpdateTables> tables, WorkerId worker,
               const EngineConfig& config);

  // More work, at any time; the next step acts on it, and asks a parent that has not everything for
  // word (unless it is the first). Precondition: the range lies in the stripe.
  // Blocks that are verified already are not read again. An unfinished assignment of the stripe
  // that overlaps is dropped wholly, its reads are cancelled: give a child's whole rest at once. An
  // empty range is complete at once. The number of an assignment that is over may be given again.
  EdgeNumber assign(const Assignment& assignment);
  // Ends all assignments of a stripe at the next step: what is missing there is wanted no more,
  // open reads are cancelled. What is verified stays, and is served.
  void drop(StripeId stripe);
  // One more whom assignments of the stripe may turn to; one that wants a parent does so at the
  // next step. `has_all`: complete, no word needed. Says that the worker is alive, if it was lost.
  void add_alternate(StripeId stripe, WorkerId worker, const Path& path, bool has_all);
  // One more child, at any time; the next step tells it what is there. One that is there already is
  // told everything again.
  void add_child(const Child& child);
  // Somebody whose alternate we are, though not in the tables: no word until it asks.
  void expect_child(const Child& child);
  // No more words to it. Harmless if it is no child.
  void remove_child(StripeId stripe, WorkerId worker);

  // Appends commands to `out`; they are to be carried out in order before the next step. Returns
  // when to step again at the latest (Time::never() if nothing is due). `now` never falls.
  Time step(const EngineEvent& event, Time now, std::vector<EngineCommand>& out);

  // The bytes of a SendMessage; `out` has room for kMaxMessageBytes. Returns the length.
  std::size_t write_message(const SendMessage& message, std::span<std::byte> out) const;

  [[nodiscard]] WorkerId worker() const { return worker_; }
  [[nodiscard]] const UpdateTables& tables() const { return *tables_; }
  // What a read that is posted now gets: rule 6.
  [[nodiscard]] Time read_deadline() const { return config_.read_deadline; }
  [[nodiscard]] bool complete() const { return missing_ == 0; }
  [[nodiscard]] bool failed() const { return failed_; }
  // Complete, and each child was told of every block it can still need from us.
  [[nodiscard]] bool told_everything() const { return missing_ == 0 && !fresh_ && due_.empty(); }
  // True after `assign` and `add_child` until the next step: step with TimePassed.
  [[nodiscard]] bool fresh() const { return fresh_; }
  [[nodiscard]] std::uint64_t missing() const { return missing_; }  // blocks assigned, not verified
  [[nodiscard]] bool has(StripeId stripe, std::uint32_t index) const;

  // The first block of the stripe that is not verified; its length if none.
  [[nodiscard]] std::uint32_t first_missing(StripeId stripe) const;
  // Reads and digests that are open.
  [[nodiscard]] std::uint32_t open_work() const;
  // Who sends what is open of the assignment: the parent before the last change until that is done.
  [[nodiscard]] WorkerId source(EdgeNumber edge) const;

  [[nodiscard]] EdgeNumber assignments() const { return static_cast<EdgeNumber>(edges_.size()); }
  [[nodiscard]] Assignment assignment(EdgeNumber edge) const;
  [[nodiscard]] BlockId block(EdgeBlock at) const;
  [[nodiscard]] std::size_t children() const { return children_.size(); }
  [[nodiscard]] Child child(std::size_t number) const;

  // Messages that made no sense or came from someone who is no parent or child: ignored.
  [[nodiscard]] std::uint64_t ignored_messages() const { return ignored_; }
  // Bytes that this engine takes, vectors included, shared tables excluded.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  enum class EdgeState : std::uint8_t {
    Active,
    Wanted,   // has no parent
    Dropped,  // wants nothing any more; may have open reads
  };
  struct InEdge {
    WorkerId parent;
    WorkerId former;                  // while `held`: whom the open reads were posted to
    std::uint32_t stripe = 0;         // index into stripes_
    std::uint32_t next_edge = kNone;  // of the same stripe
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t next = 0;  // the first that was never posted
    std::uint32_t left = 0;  // not verified
    std::uint32_t window = 2;
    std::uint32_t open = 0;       // posted and not here
    std::uint32_t digesting = 0;  // here and not verified
    Path path;
    EdgeState state = EdgeState::Active;
    bool parent_has_all = false;
    bool blocked = false;  // a post was refused: wait for a completion
    bool held = false;     // posts nothing until earlier reads of the range are done
    bool fresh = false;    // in fresh_edges_
    bool slow = false;
    std::uint8_t paced = 0;                       // while slow: blocks that came since pace_from
    std::uint8_t asks = 0;                        // unanswered: each doubles the wait
    FailureKind cause = FailureKind::NoProgress;  // Wanted: why
    Time have_interval;
    Time block_time;
    Time ask_at;     // if there is no word until then
    Time pace_from;  // the last block came, or the first read was opened
  };
  struct ChildState {
    WorkerId worker;
    std::uint32_t stripe = 0;
    std::uint32_t next_child = kNone;  // of the same stripe
    std::uint32_t low = kNone;         // news: the blocks from low to high that are verified
    std::uint32_t high = 0;
    bool due = false;  // has an entry in due_
    bool gone = false;
    bool expected = false;  // while gone: comes back by asking
    Path path;
    Time have_interval;
    Time quiet_until;  // no message before
  };
  struct StripeState {
    StripeId id;
    std::uint32_t blocks = 0;
    std::uint32_t first_word = kNone;  // in bits_: verified words, then offered words; none: holder
    std::uint32_t first_edge = kNone;
    std::uint32_t first_child = kNone;
    bool planned_over = false;  // the plan's alternate was given up
  };
  struct Alternate {
    StripeId stripe;
    WorkerId worker;
    Path path;
    bool has_all = false;
  };
  struct Due {
    Time at;
    std::uint32_t child = 0;
  };

  // Saturates, so that "no deadline" settings stay never().
  static constexpr Time after(Time now, Time wait) {
    return wait >= Time::never() - now ? Time::never() : now + wait;
  }

  std::uint32_t stripe_state(StripeId stripe);
  [[nodiscard]] std::uint32_t find_stripe(StripeId stripe) const;
  [[nodiscard]] bool verified(const StripeState& stripe, std::uint32_t index) const;
  [[nodiscard]] bool offered(const StripeState& stripe, std::uint32_t index) const;
  [[nodiscard]] Time usual_ask_wait(const InEdge& edge) const;
  [[nodiscard]] Time ask_wait(const InEdge& edge) const;
  [[nodiscard]] Time next_deadline() const;

  [[nodiscard]] std::optional<Alternate> next_alternate(const InEdge& edge) const;
  [[nodiscard]] bool may_start(EdgeNumber number) const;
  [[nodiscard]] bool over_budget(const InEdge& edge) const;
  [[nodiscard]] Time slow_after(const InEdge& edge) const;
  [[nodiscard]] std::uint32_t first_missing(const InEdge& edge) const;
  std::uint32_t child_place(const Child& child);
  [[nodiscard]] std::uint32_t find_child(std::uint32_t stripe, WorkerId worker) const;

  void begin_fresh();
  void begin(EdgeNumber number);
  void introduce(std::uint32_t child);
  void post(EdgeNumber number);
  void block_edge(InEdge& edge);
  void unblock();
  void close(EdgeNumber number);
  void forget_offers(const InEdge& edge);
  void be_patient();
  void give_up_parent(EdgeNumber number, FailureKind cause, const EngineFailure& detail,
                      std::uint32_t index);
  void turn_to(EdgeNumber number, const Alternate& to);
  void drained(EdgeNumber number);
  void start_held(std::uint32_t stripe);
  void pace(InEdge& edge);
  void check_pace();
  void ask(EdgeNumber number);
  void count(EdgeBlock at);
  void offer(std::uint32_t child, std::uint32_t from, std::uint32_t to);
  void tell(ChildState& child);
  void send_have(WorkerId to, StripeId stripe, std::uint32_t first, std::uint32_t end);
  void fire_due();
  void ask_again();
  void check_progress();
  void give_up_all();
  bool take_offer(InEdge& edge, const Have& have);
  void fail(FailureKind kind, EdgeNumber edge, std::uint32_t index, EngineFailure detail);

  void on(const BlockRead& event);
  void on(const BlockDigested& event);
  void on(const PostRefused& event);
  void on(const MessageFrom& event);
  void on(const WorkerLost& event);
  void on(const TimePassed&) {}
  [[nodiscard]] bool ours(const MessageSubject& about) const;
  bool on_have(WorkerId from, const Have& have);
  bool on_ask(WorkerId from, const Ask& ask);

  std::shared_ptr<const UpdateTables> tables_;
  WorkerId worker_;
  EngineConfig config_;
  Time now_;
  Time patient_from_;                          // not before: the next doubling of the read deadline
  std::vector<EngineCommand>* out_ = nullptr;  // during a step

  std::vector<InEdge> edges_;
  std::vector<ChildState> children_;
  std::vector<StripeState> stripes_;
  std::vector<std::uint32_t> by_stripe_;  // indices of stripes_, ascending by stripe id
  std::vector<std::uint64_t> bits_;
  std::vector<Due> due_;               // heap: children with news that must wait, earliest first
  std::vector<Alternate> alternates_;  // beside the plan's
  std::vector<WorkerId> lost_;         // ascending
  std::vector<std::uint32_t> fresh_edges_;  // given after the last step
  std::vector<std::uint32_t> fresh_children_;

  std::uint64_t missing_ = 0;
  std::uint64_t ignored_ = 0;
  Time progress_;                    // when something last arrived
  Time ask_check_ = Time::never();   // not later than any edge's ask_at
  Time retry_at_ = Time::never();    // unblock then
  Time slow_check_ = Time::never();  // not later than any edge's pace_from + slow_after
  std::uint64_t windows_ = 0;        // of all assignments together
  std::uint32_t blocked_ = 0;        // edges
  EdgeNumber turn_ = 0;              // whom unblock asks first
  bool started_ = false;             // the plan's own edges and children were begun
  bool fresh_ = true;
  bool failed_ = false;
};

}  // namespace holdfast
