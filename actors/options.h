// The options of a session and of a run, and the statistics of a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/print_sink.h"
#include "graph/limits.h"
#include "graph/op_policy.h"
#include "graph/passes/pass_set.h"

namespace tagflow::devices {
class CancelList;
}

namespace tagflow::actors {

class Backend;       // actors/session/backend.h
class Engine;        // actors/runtime/engine.h
class Inspector;     // actors/session/inspector.h
class Observer;      // actors/watch/observer.h
class SessionState;  // internal
class SharedState;   // what outlives runs: opaque
class Trace;         // actors/watch/trace.h

// How batches of tokens travel between actors. The results are the same.
enum class HandOff : uint8_t {
  kDirect,   // run the receiver in the same time slice if it is idle
  kMailbox,  // every batch through the CAF mailbox: the plain reference
  kRandom,   // either, by a seeded coin: for stress tests
};

struct SessionOptions {
  // The engine that the session runs on. Null: the engine of the process, or an
  // engine of its own if the next three options differ from those of the
  // process's engine.
  std::shared_ptr<Engine> engine;
  // Where the partitions run: Note [Backends] in actors/session/backend.h.
  // Null: on `devices`, in this process.
  std::shared_ptr<Backend> backend;
  // Worker threads; 0: those of the engine.
  int workers = 0;
  // See EngineOptions.
  bool pin_workers = false;
  HandOff hand_off = HandOff::kDirect;
  // The passes that rewrite the part of a graph that a signature needs. None:
  // every node fires.
  graph::PassSet passes;
  // Overrides parallel_iterations of every loop if > 0.
  int window = 0;
  // Limits on calls of recursive functions: how deep they may nest, and how
  // many may be open at once, nested or side by side. A run that exceeds a
  // limit fails.
  int max_call_depth = 10000;
  int max_open_calls = 1 << 17;
  // The most nodes of the graph, and of the part that a signature needs with
  // its functions inlined. More is ResourceExhausted.
  size_t max_nodes = graph::Limits().max_nodes;
  // The devices: "cpu:2,stream:1:memory=64MiB"; see devices/device_registry.h.
  // There always is a CPU. Sessions of one engine with the same text share the
  // devices, and the limits of their memory.
  std::string devices;
  // The state that outlives runs: variables, queues, tables. Null: the session
  // has a state of its own. Otherwise it shares the state of another session,
  // Session::shared_state(), and its engine, unless `engine` names it, too. The
  // text of `devices` must be the same, or empty.
  std::shared_ptr<SharedState> state;
  // A node that cannot run on the device that it requests runs on a CPU, with a
  // warning.
  bool soft_placement = false;
  // Places every node that may run on several devices on a random one of them,
  // to test the engine and graphs. The value is the seed.
  std::optional<uint64_t> scatter;
  // Starts a Recv late if what it receives is needed late, to save memory.
  bool schedule_receives = true;
  // Tensors of float32, "name:port" or "*" for all, that are sent to other
  // devices as 16 bits, and lose precision. "*" does not include tensors that
  // are only fetched. A name that matches no transfer of a signature causes a
  // warning.
  std::vector<std::string> lossy;
  // Writes what each device runs to bytes, and compiles what it reads from
  // them: a test of graph/file/program_file.h. Results are the same.
  bool through_wire = false;
  // The seed of random ops whose own seeds are both 0. None: the seed of the
  // state, which is drawn when the state is created.
  std::optional<uint64_t> seed;
  // Default time-out of a run, or of the preparation of a signature; none if
  // zero.
  std::chrono::nanoseconds timeout{0};
  // How many runs may be active at once. Further runs wait for their turn, in
  // the order of their arrival. Runs that wait for an external event do not
  // count.
  int max_active_runs = 256;
  // How many runs of run_async() may wait for their turn: further ones are
  // rejected with ResourceExhausted. (run() blocks its caller instead.)
  int max_queued_runs = 1 << 16;
  // How many compiled signatures are kept: the most recently used ones.
  int max_signatures = 1024;
  // Which ops the graph may have, and which files they may use; by default all.
  // extend() checks the ops, of functions too, before anything of the graph
  // runs. Sessions that share a state may differ in this.
  graph::OpPolicy policy;
  // Receives what the graph prints. Empty: the streams of the process.
  devices::PrintSink print_sink;
  // Receives warnings about a graph, each of them once, and about callbacks
  // that threw. Empty: warnings are printed to stderr. It must be thread-safe,
  // and must not call the session.
  std::function<void(const std::string&)> on_warning;
};

// Asks a run, or the compilation before it, to stop. Copies refer to the same
// request. Thread-safe.
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

// Which runs go first when all workers are busy. A cheap run beside expensive
// ones gets its turn without a priority.
enum class Priority : uint8_t { kNormal, kHigh };

struct RunOptions {
  Priority priority = Priority::kNormal;
  // Of the whole call, from the compilation of the signature on, if it is not
  // compiled yet. Zero: the session's default.
  std::chrono::nanoseconds timeout{0};
  std::optional<CancelToken> cancel;
  // Called some twenty times a second by the thread that waits in run(), while
  // it has nothing to do; false cancels the run. Empty: nobody is asked. It is
  // not used by run_async().
  std::function<bool()> goes_on;
  // Sees every firing, delivery, start and retirement; null: none. It must
  // outlive the run, or, if a time-out or a cancellation ends the run early,
  // the session.
  Observer* observer = nullptr;
  // Records the run at a far lower cost than an observer; null: none. It must
  // live as long as an observer.
  Trace* trace = nullptr;
  // Looks at the run while it goes on, and stops it; null: nobody does. It must
  // live as long as an observer.
  Inspector* inspector = nullptr;
};

// What a run did.
struct RunStats {
  uint64_t fired = 0;       // nodes computed
  uint64_t dead = 0;        // nodes skipped
  uint64_t frames = 0;      // frame instances started, without the root
  uint64_t iterations = 0;  // iterations started, of all frames
  uint64_t hops = 0;        // batches handed to another actor
  uint64_t offloaded = 0;   // kernels run on a lane
  uint64_t launched = 0;    // kernels run on an accelerator
  uint64_t stale = 0;       // batches for a generation that was over
  // The largest ring of a frame, in this or an earlier run: an upper bound of
  // the iterations that were in flight at once.
  int max_in_flight = 0;
  double seconds = 0;

  // The counts that add up.
  static constexpr uint64_t RunStats::*kSums[] = {
      &RunStats::fired,      &RunStats::dead, &RunStats::frames,
      &RunStats::iterations, &RunStats::hops, &RunStats::offloaded,
      &RunStats::launched,   &RunStats::stale};
};

}  // namespace tagflow::actors
