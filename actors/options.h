// What a session, and each of its runs, is asked for; what a run reports.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/passes/pass_set.h"

namespace tagflow::devices {
class CancelList;
}

namespace tagflow::actors {

class Engine;        // actors/runtime/engine.h
class Observer;      // actors/watch/observer.h
class SessionState;  // internal
class SharedState;   // what outlives runs: opaque
class Trace;         // actors/watch/trace.h

// How batches of tokens travel between actors. The results are the same.
enum class HandOff : uint8_t {
  kDirect,   // run the receiver in the same time slice where it is idle
  kMailbox,  // every batch through the CAF mailbox: the plain reference
  kRandom,   // either, by a seeded coin: for stress tests
};

struct SessionOptions {
  // What the session runs on; null: the engine of the process, or, where one of
  // the next three asks for what that does not have, one of its own.
  std::shared_ptr<Engine> engine;
  // Worker threads; 0: those of the engine.
  int workers = 0;
  // See EngineOptions.
  bool pin_workers = false;
  HandOff hand_off = HandOff::kDirect;
  // What is done to the part of a graph that a signature needs. None: every
  // node fires.
  graph::PassSet passes;
  // Overrides parallel_iterations of every loop where > 0.
  int window = 0;
  // Calls of recursive functions inside one another, and all that are open at
  // once, side by side too: what makes more fails.
  int max_call_depth = 10000;
  int max_open_calls = 1 << 17;
  // What there is to run on: "cpu:2,stream:1:memory=64MiB"; see
  // devices/device_registry.h. There always is a CPU. Sessions of one engine
  // with the same text share the devices, and the limits of their memory.
  std::string devices;
  // What outlives runs: variables, queues, tables. Null: a state of its own;
  // else that of another session, Session::shared_state(), which must have the
  // same engine and the same text of `devices`.
  std::shared_ptr<SharedState> state;
  // A node that cannot run where it asks to, runs on a CPU, with a warning.
  bool soft_placement = false;
  // Puts every node that may run elsewhere on a device drawn at random: a test
  // of the engine, and of graphs.
  std::optional<uint64_t> scatter;
  // Starts a Recv late where what it receives is needed late, to save memory.
  bool schedule_receives = true;
  // Tensors of float32, "name:port" or "*" for all, that are sent to other
  // devices as 16 bits, and lose digits. "*" leaves alone what is only fetched.
  // A name that means no transfer of a signature is warned of.
  std::vector<std::string> lossy;
  // Of random ops whose seeds are both 0. None: that of the state, which draws
  // one when it is made.
  std::optional<uint64_t> seed;
  // Default time-out of a run; none where zero.
  std::chrono::nanoseconds timeout{0};
  // How many runs are active at once. Further ones wait for their turn, in the
  // order in which they came; those that wait for something outside of them do
  // not count.
  int max_active_runs = 256;
  // How many runs of run_async() wait for their turn at most: one more is
  // answered with ResourceExhausted. (run() keeps its caller waiting.)
  int max_queued_runs = 1 << 16;
  // Signatures that are kept compiled, those that were used last.
  int max_signatures = 1024;
  // Receives warnings: of a graph, each of them once, and of callbacks that
  // threw. Empty: they are printed to stderr. It must be thread-safe, and must
  // not call the session.
  std::function<void(const std::string&)> on_warning;
};

// Asks a run to stop. Copies refer to the same request. Thread-safe.
class CancelToken {
 public:
  CancelToken();
  // Calls the cancel hooks of waiting kernels, and the `done` of runs that have
  // not started, on this thread: the caller must hold no lock that they take.
  void cancel();
  bool cancelled() const;

 private:
  friend class SessionState;
  std::shared_ptr<devices::CancelList> hooks_;
};

// Which runs go first where workers are few. A run of low cost beside heavy
// ones needs none to get its turn.
enum class Priority : uint8_t { kNormal, kHigh };

struct RunOptions {
  Priority priority = Priority::kNormal;
  // Zero: the session's default.
  std::chrono::nanoseconds timeout{0};
  std::optional<CancelToken> cancel;
  // Sees every firing, delivery, start and retirement; null: none. Must
  // outlive the run; where that is cut short by a time-out or a cancellation,
  // the session.
  Observer* observer = nullptr;
  // Records the run, for far less than an observer costs; null: none. Must
  // outlive the run as an observer must.
  Trace* trace = nullptr;
};

// What a run did.
struct RunStats {
  uint64_t fired = 0;       // nodes computed
  uint64_t dead = 0;        // nodes skipped
  uint64_t frames = 0;      // frame instances started, the root apart
  uint64_t iterations = 0;  // iterations started, of all frames
  uint64_t hops = 0;        // batches handed to another actor
  uint64_t offloaded = 0;   // kernels run on a lane
  uint64_t launched = 0;    // kernels run on an accelerator
  uint64_t stale = 0;       // batches for a generation that was over
  // The largest ring of a frame, in this or an earlier run: no more iterations
  // were in flight at once.
  int max_in_flight = 0;
  double seconds = 0;
};

}  // namespace tagflow::actors
