// Trace: records what a run does and when, in a few bytes per node.
//
// Note [Trace words]
// Each thread appends words of 32 bits to a buffer of its own: the upper three
// bits are the kind of the word, the others an index i.
//
//   kActivity  the thread turns to an iteration of frame instance i; which one
//              follows in two words
//   kLane      the same, for one kernel that was sent to this thread
//   kNode      node i of the frame's plan fires
//   kSkip      it is dead, and skipped
//   kCompute   it was deferred when it fired; now its kernel runs
//   kArrival   a token comes along arrival i
//   kResult    a token comes back from the call, or to the Recv, that node i is
//   kClock     the clock follows, in two words; i is 1 if the thread leaves
//              the iteration with nothing else to turn to
//
// To read the clock costs more than to fire a cheap node. So a thread reads it
// before and after an expensive kernel, when it becomes busy or idle, and
// sometimes when it turns to an iteration. Events between two readings share
// the time between them evenly.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/device.h"

namespace tagflow::actors {

struct FramePlan;  // actors/plan/plan.h
class Trace;

// One thread's words. Written by that thread only.
class TraceBuffer {
 public:
  enum Word : uint32_t {
    kActivity = 0u << 29,
    kLane = 1u << 29,
    kNode = 2u << 29,
    kSkip = 3u << 29,
    kCompute = 4u << 29,
    kArrival = 5u << 29,
    kResult = 6u << 29,
    kClock = 7u << 29,
  };
  static constexpr uint32_t kIndex = (1u << 29) - 1;
  static constexpr size_t kBlock = 1024;  // words
  static constexpr ptrdiff_t kWordsPerLook = 32;

  explicit TraceBuffer(Trace& trace) : trace_(trace) {}

  void add(Word kind, uint32_t index) {
    if (has_room(1)) *at_++ = kind | (index & kIndex);
  }
  // `kind` is kActivity or kLane.
  void switch_to(Word kind, uint32_t frame, int64_t iteration) {
    if (next_look_ == nullptr || at_ >= next_look_) clock();
    if (!has_room(3)) return;
    *at_++ = kind | (frame & kIndex);
    add_long(iteration);
  }
  void clock() { look(0); }
  // The thread leaves the iteration, and has no other one to record.
  void leave() {
    look(1);
    next_look_ = nullptr;
  }

  // The cheapest clock: it costs a third of the system's clock.
  static int64_t ticks() {
#ifdef __x86_64__
    return int64_t(__builtin_ia32_rdtsc());
#else
    return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
  }

 private:
  friend class Trace;
  struct Block {
    uint32_t* words = nullptr;  // the trace's
    size_t used = 0;            // for all blocks but the last
  };

  // Counts the words that are dropped.
  bool has_room(ptrdiff_t words) { return end_ - at_ >= words || grow(); }
  bool grow();
  void look(uint32_t leaves) {
    if (!has_room(3)) return;
    *at_++ = kClock | leaves;
    add_long(ticks());
    next_look_ = end_ - at_ > kWordsPerLook ? at_ + kWordsPerLook : end_;
  }
  void add_long(int64_t value) {
    *at_++ = uint32_t(uint64_t(value));
    *at_++ = uint32_t(uint64_t(value) >> 32);
  }

  Trace& trace_;
  uint32_t* at_ = nullptr;  // in the last block
  uint32_t* end_ = nullptr;
  uint32_t* next_look_ = nullptr;  // where the next reading is due
  std::vector<Block> blocks_;
  uint64_t dropped_ = 0;
  bool is_full_ = false;
};

// The recorded properties of a node: a copy, since the trace may outlive the
// node.
struct TraceNode {
  std::string name;
  std::string op;
  bool is_enter = false;
  bool is_exit = false;
  bool is_next_iteration = false;
  std::string sender;  // of a Recv: the device that its token comes from
};

// The names in a frame's plan.
struct TracePlan {
  std::string device;    // full name
  std::string frame;     // "" for the root
  bool is_body = false;  // of a function
  std::vector<TraceNode> nodes;
  std::vector<TraceNode> arrivals;
  std::vector<std::string> exits;
};

// A frame instance, and the iteration that started it: the root is its own
// caller.
struct TraceFrame {
  const TracePlan* plan = nullptr;
  devices::Tag instance;
  devices::Tag caller;
};

// An interval of a thread's time, or a moment.
struct TraceEvent {
  enum Kind : uint8_t {
    kNode,      // a node fires
    kCompute,   // a deferred kernel runs
    kSkip,      // a node is skipped
    kActivity,  // the thread is busy with an iteration
    kArrive,    // a token comes into an iteration
  };
  Kind kind = kNode;
  int64_t begin = 0;  // nanoseconds since the trace was made
  int64_t end = 0;
  std::string_view device;
  std::string_view frame;
  devices::Tag tag;
  const TraceNode* node = nullptr;  // null for an activity
};

// What an accelerator did: a kernel on its execution stream, or a copy.
struct TraceLaunch {
  std::string device;  // full name
  devices::AcceleratorActivity::Stream stream;
  std::string node;   // of a kernel
  int64_t bytes = 0;  // of a copy
  int64_t begin = 0;  // nanoseconds since the trace was made
  int64_t end = 0;
};

// What one process recorded. Frames and events point into `plans`, or into the
// trace that gave it.
struct TracePart {
  struct Track {
    uint64_t thread = 0;             // no two of a process have the same
    std::vector<TraceEvent> events;  // in the order of their beginnings
  };
  std::chrono::steady_clock::time_point start;  // its time 0
  std::vector<TracePlan> plans;
  std::vector<TraceFrame> frames;
  std::vector<Track> tracks;
  std::vector<TraceLaunch> launches;
  uint64_t dropped = 0;

  // One of which nothing is known, as if one event had been dropped.
  static TracePart missing();
  TracePart() = default;
  TracePart(TracePart&&) = default;
  TracePart& operator=(TracePart&&) = default;
};

// Records runs whose options name it (RunOptions::trace). It keeps the first
// `max_words` words, and one launch per sixteen words. Of a run in other
// processes it gets what each of them has recorded, which keeps as many words
// as there is room for here. Thread-safe, except for part() and what follows,
// which must not be called while a run is active.
class Trace {
 public:
  static constexpr size_t kMaxWords = size_t{1} << 20;

  explicit Trace(size_t max_words = kMaxWords);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  // The buffer of the calling thread.
  TraceBuffer& buffer();
  // Returns the number of the instance, which words use as index.
  uint32_t add_frame(const FramePlan& plan, std::string_view device,
                     const devices::Tag& instance, const devices::Tag& caller);

  // Adds an activity of an accelerator, which may belong to another run.
  void add_activity(std::string_view device,
                    const devices::AcceleratorActivity& activity);

  // Adds what a process of this name has recorded, with its start on the clock
  // of this process. What would be before this trace was made has its time 0.
  // A thread has one track in all parts of a process. REQUIRES: times are at
  // most kMaxTime, and the start is within as much of now
  static constexpr int64_t kMaxTime = int64_t{1} << 60;
  void add_part(std::string_view process, TracePart part);
  // How many words the parts leave of `max_words`: each of their events is one.
  size_t room() const;

  // What this process has recorded. This must outlive it.
  TracePart part() const;
  // What it has of other processes, as if this one had recorded it. This must
  // outlive it. Thread-safe.
  TracePart others() const;
  const std::vector<TraceFrame>& frames() const { return frames_; }
  // Those of each stream are in the order of their ends.
  const std::vector<TraceLaunch>& launches() const { return launches_; }
  // Each thread's events, in the order of their beginnings; an activity comes
  // before the events inside it.
  std::vector<std::vector<TraceEvent>> tracks() const;
  // How many words and launches were dropped for lack of room, or events of
  // other processes.
  uint64_t dropped() const;

 private:
  friend class TraceBuffer;
  // The readings of two clocks at one moment.
  struct Moment {
    int64_t ticks = 0;
    std::chrono::steady_clock::time_point time;
  };
  static Moment now();

  // Null if there are no more.
  uint32_t* take_block();
  TraceBuffer& find_buffer();
  const TracePlan* copy_of(const FramePlan& plan, std::string_view device);
  double ns_per_tick() const;      // since the trace was made
  uint64_t count_dropped() const;  // REQUIRES: the lock is held
  std::vector<TraceEvent> decode(const TraceBuffer& buffer,
                                 double ns_per_tick) const;

  const uint64_t id_;
  const Moment start_ = now();
  // The memory for all words is allocated and touched in advance: a page fault
  // during the run costs more than the recording.
  const size_t num_blocks_;
  const std::unique_ptr<uint32_t[]> words_;
  std::atomic<size_t> blocks_taken_{0};
  std::atomic<bool> is_full_{false};
  mutable std::mutex mutex_;  // guards the below, but not what buffers hold
  std::vector<std::pair<std::thread::id, std::unique_ptr<TraceBuffer>>>
      buffers_;
  std::unordered_map<uint64_t, TracePlan> plans_;  // by FramePlan::id
  std::vector<TraceFrame> frames_;
  std::vector<TraceLaunch> launches_;
  uint64_t dropped_launches_ = 0;
  // Of other processes.
  std::vector<std::vector<TracePlan>> part_plans_;
  std::map<std::pair<std::string, uint64_t>, std::vector<TraceEvent>>
      part_tracks_;  // by process and thread
  size_t part_events_ = 0;
  uint64_t part_dropped_ = 0;
};

}  // namespace tagflow::actors
