// Inspector: looks at the runs of a session while they go on, and stops them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/diagnosis/step_view.h"
#include "actors/runtime/hold.h"
#include "actors/watch/observer.h"

namespace tagflow::actors {

// One part of a run: all of it, or that of another process.
struct SeenPart {
  std::string task;              // "/job:worker/task:1"; empty: this process
  std::optional<StepView> view;  // none: it was not at rest in time
};

// What holds the parts of a run in other processes. Thread-safe.
class RemoteHold {
 public:
  virtual ~RemoteHold() = default;
  // Waits for the answers, not much longer than that.
  virtual std::vector<SeenPart> look(std::chrono::nanoseconds patience) = 0;
  // As those of Hold, for each part.
  virtual void stop_at(const std::optional<StopPoint>& stop) = 0;
  virtual void advance(const std::string& frame) = 0;
};

// For runs that have it in their options. While nobody calls it, it costs an
// allocation per run. A look brings the newest run to rest for a moment: Note
// [Holds] in actors/runtime/hold.h. Stops are for all runs, also for those that
// begin later. Thread-safe.
class Inspector {
 public:
  // What a tensor was last.
  struct Watched {
    std::string tensor;  // "loop/mul:0"
    std::string tag;     // empty: it was not computed since it is watched
    std::string value;
    uint64_t times = 0;  // that it was computed
  };
  // The most tensors that are watched at a time.
  static constexpr size_t kMostWatched = 16;

  Inspector();
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // The newest run that was at rest within that time; none if none runs, or
  // if none was. `is_running` says whether any run is not over.
  std::optional<StepView> look(std::chrono::nanoseconds patience,
                               bool* is_running = nullptr);
  // The same, of all processes that have a part of the run.
  std::vector<SeenPart> look_at_parts(std::chrono::nanoseconds patience,
                                      bool* is_running = nullptr);
  // Stops iterations there, before they begin; they wait until one of the next
  // two is called, or until their run ends by an error.
  void stop_at(StopPoint stop);
  // Stops nothing any more, and lets go on what is stopped.
  void go_on();
  // Lets go what is stopped, and stops at the next iteration of that frame
  // (empty: of any loop) that begins.
  void advance(const std::string& frame);
  std::optional<StopPoint> stop() const;

  // Sees these tensors, "NODE:PORT", from the next look on, in iterations that
  // begin then. It slows down the whole run, as any observer does; with none,
  // no more. InvalidArgument for what is no tensor's name; ResourceExhausted
  // for more than kMostWatched.
  Status watch(const std::vector<std::string>& tensors);
  std::vector<Watched> watched() const;
  // --- By the session
  std::shared_ptr<Hold> add_step();

 private:
  class Watch;

  std::vector<std::shared_ptr<Hold>> open_holds();
  void attach_watch(Step& step);
  void tell(const std::optional<StopPoint>& stop);

  const std::unique_ptr<Watch> watch_;
  mutable std::mutex mutex_;                // guards the below
  std::vector<std::weak_ptr<Hold>> holds_;  // the newest last
  std::optional<StopPoint> stop_;
};

}  // namespace tagflow::actors
